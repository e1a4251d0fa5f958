"""Forecasts: accurate for a known law, wide without data, independent of other questions."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import pytest

from epochcost.graphs.profile import Profile
from epochcost.predict.design import Devices
from epochcost.predict.forecast import Forecaster, Question, as_rate
from epochcost.predict.learnt import placed
from epochcost.predict.rates import read_rates
from predict.tables import MODELS, devices, rows, true_rate, write

KNOWN = Devices(devices())
# Larger works have lower rates, like the levels of the synthetic law.
PROFILES = {
    (model, ""): Profile(1e9 / level, 5e8 / level, 1e6 / level, 0, 1e6 / level, 10**6, 50)
    for level, model in enumerate(sorted(MODELS), 1)
}


@pytest.fixture
def forecaster(tmp_path: Path) -> Forecaster:
    """A forecaster with all synthetic rows except a chip's."""
    table = [one for one in rows() if one["accelerator"] != "Maker C1"]
    found, _ = placed(read_rates(write(tmp_path / "t.csv", table)), KNOWN, PROFILES)
    return Forecaster(found, KNOWN)


def question(model: str, chip: str, **others: object) -> Question:
    """Inference of a synthetic model in fp32 on one chip."""
    device = KNOWN.named(chip)
    assert device is not None
    asked = Question(model, PROFILES[model, ""], "inference", "fp32", 1, "plain", device, 1)
    return replace(asked, **others)  # type: ignore[arg-type]


def test_intervals_hold_the_truth_of_a_chip_that_was_not_seen(forecaster: Forecaster):
    """Intervals contain nine of ten rates of the left-out chip."""
    found = forecaster.forecasts([question(model, "C1") for model in MODELS])
    held = [
        one.low <= true_rate(model, "C1") <= one.high
        for model, one in zip(MODELS, found, strict=True)
    ]
    assert sum(held) >= len(MODELS) - 1
    assert all(one.low < one.per_second < one.high for one in found)


def test_training_takes_three_forward_passes(forecaster: Forecaster):
    """Without training rows, the rate is a third of inference's."""
    inference, training = forecaster.forecasts(
        [question("dense", "A2"), question("dense", "A2", mode="training")]
    )
    assert inference.per_second / training.per_second == pytest.approx(3, rel=0.35)


def test_twice_the_devices_are_about_twice_as_fast_and_less_sure(forecaster: Forecaster):
    """The rate grows with the count, and so does the interval."""
    one, eight = forecaster.forecasts([question("dense", "A2"), question("dense", "A2", count=8)])
    assert eight.per_second / one.per_second == pytest.approx(8, rel=0.2)
    assert eight.high / eight.low > one.high / one.low


@pytest.mark.parametrize("factor", [0.5, 2])
def test_anchors_move_a_machine_to_its_true_speed(tmp_path: Path, factor: float):
    """Three measured works correct a machine half or twice as fast; the interval narrows."""
    found, _ = placed(read_rates(write(tmp_path / "t.csv", rows())), KNOWN, PROFILES)
    anchored = [question(model, "B1") for model in ("dense", "light", "thin")]
    asked = question("wide", "B1")
    plain = Forecaster(found, KNOWN)
    measured = [
        as_rate(one, factor * forecast.per_second)
        for one, forecast in zip(anchored, plain.forecasts(anchored), strict=True)
    ]
    before, after = (
        one.forecasts([asked])[0] for one in (plain, Forecaster(found, KNOWN, measured))
    )
    moved = math.log(after.per_second / before.per_second) / math.log(factor)
    assert 0.6 < moved < 1.1
    assert after.high / after.low < before.high / before.low
    assert after.low < factor * before.per_second < after.high


def test_kept_forecasts_do_not_depend_on_the_place_of_a_table(tmp_path: Path):
    """The same table in another folder uses the stored forecast."""
    cache = tmp_path / "cache"
    for name in ("here", "there"):
        (tmp_path / name).mkdir()
        table = read_rates(write(tmp_path / name / "t.csv", rows()))
        forecaster = Forecaster(placed(table, KNOWN, PROFILES)[0], KNOWN, cache=cache)
        forecaster.forecasts([question("dense", "C1")])
    assert len(list(cache.iterdir())) == 1
