"""What following forecasts costs, beside the roofline, on rows that follow a law."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from epochcost.predict.design import Devices
from epochcost.predict.rates import read_rates
from epochcost.predict.regret import Regret, regrets
from epochcost.predict.tables import placed
from epochcost.predict.withheld import percent, tried
from predict.tables import FACTS, MODELS, devices, row, rows, write
from predict.test_withheld import PROFILES

KNOWN = Devices(devices())


def found(tmp_path: Path, prices: dict[str, float]) -> tuple[Regret, Regret]:
    """By forecasts and by the roofline, each accelerator withheld."""
    learnt = placed(read_rates(write(tmp_path / "t.csv", rows())), KNOWN, PROFILES)[0]
    return regrets(tried(learnt, KNOWN, "accelerator"), KNOWN, prices)


def test_the_pick_of_forecasts_costs_what_the_cheapest_costs(tmp_path: Path) -> None:
    """Who follows forecasts pays at most a tenth more in most cases."""
    prices = {
        chip.lower(): peak**0.7 * bandwidth**0.3 for chip, (_, peak, bandwidth) in FACTS.items()
    }
    by_forecasts, by_roofline = found(tmp_path, prices)
    assert by_forecasts.choices == by_roofline.choices == len(MODELS)
    assert by_forecasts.within_a_tenth >= by_roofline.within_a_tenth
    assert by_forecasts.within_a_tenth >= 0.5
    assert by_forecasts.median_percent <= by_forecasts.p90_percent


def test_fewer_than_five_candidates_are_no_choice(tmp_path: Path) -> None:
    """Devices without a price do not count."""
    by_forecasts, _ = found(tmp_path, {"a1": 1.0, "a2": 2.0, "b1": 1.0, "b2": 2.0})
    assert by_forecasts.choices == 0


def test_percent_is_of_the_larger_over_the_smaller() -> None:
    """Twice and half the time are the same error."""
    assert percent(math.log(2)) == percent(-math.log(2)) == pytest.approx(100)


def test_how_long_a_run_took_is_no_rate(tmp_path: Path) -> None:
    """Times to a target and of epochs are left out of what is learnt from."""
    table = [row("dense", "Maker A1", 90.0, unit="s"), row("dense", "Maker A1", 9.0)]
    assert len(placed(read_rates(write(tmp_path / "t.csv", table)), KNOWN, {})[0]) == 1
