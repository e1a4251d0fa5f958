"""What leaving out shows: errors, refusals, coverage, and what anchors are worth."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from epochcost.errors import InputError
from epochcost.predict.design import Devices, Placed
from epochcost.predict.rates import read_rates
from epochcost.predict.regret import regret
from epochcost.predict.tables import described, placed
from epochcost.predict.trust import LEFT, percent, score
from predict.tables import FACTS, MODELS, devices, row, rows, write


def read(path: Path, table: list[dict[str, str]]) -> tuple[list[Placed], Devices]:
    """A table's rows on the made-up devices."""
    known = Devices(devices())
    return placed(read_rates(write(path / "t.csv", table)), known, {})[0], known


def test_percent_is_of_the_larger_over_the_smaller():
    """Twice and half the time are the same error."""
    assert percent(math.log(2)) == percent(-math.log(2)) == pytest.approx(100)


@pytest.mark.parametrize("left", LEFT[:2])
def test_predictions_beat_the_roofline_and_hold_the_truth(tmp_path: Path, left: str):
    """On rows that follow a law, errors are below the roofline's and intervals hold most rows."""
    found = score(*read(tmp_path, rows()), left, 0)  # type: ignore[arg-type]
    assert found.rows == len(FACTS) * len(MODELS)
    assert found.refused == 0
    assert found.median_percent < found.roofline_median_percent
    assert found.p90_percent < found.roofline_p90_percent
    assert found.coverage > 0.75


def test_an_anchor_corrects_a_device_that_does_not_keep_to_its_facts(tmp_path: Path):
    """Where one device is twice as fast as its facts say, one measurement on it tells."""
    table = rows()
    for one in table:
        if one["accelerator"] == "Maker C1":
            one["value"] = repr(2 * float(one["value"]))
    given = read(tmp_path, table)
    without, with_one = score(*given, "accelerator", 0), score(*given, "accelerator", 1)
    assert with_one.p90_percent < without.p90_percent


def test_a_model_that_no_other_device_ran_is_refused(tmp_path: Path):
    """Its level follows from nothing: it counts as an error above all others."""
    found = score(*read(tmp_path, [*rows(), row("alone", "Maker A1", 7.0)]), "accelerator", 0)
    assert (found.rows, found.refused) == (len(rows()) + 1, 1)
    assert found.p90_percent < math.inf


def test_scores_do_not_depend_on_the_order_of_rows(tmp_path: Path):
    """Rows in another order are the same rows."""
    table = rows()
    shuffled = [table[at] for at in np.random.default_rng(1).permutation(len(table))]
    one = score(*read(tmp_path, table), "accelerator", 0)
    other = score(*read(tmp_path, shuffled), "accelerator", 0)
    assert one.median_percent == pytest.approx(other.median_percent)
    assert one.p90_percent == pytest.approx(other.p90_percent)


def test_devices_that_a_hardware_spec_describes_are_known(tmp_path: Path):
    """The facts of a spec's accelerators make a device; one without them is refused by name."""
    text = (
        'id = "new"\nname = "New"\nprovider = "Lab"\nsource = "made up"\n\n[[accelerators]]\n'
        'name = "E1"\nmemory_gib = 16\nmemory_gb_per_second = 500\n'
    )
    spec = tmp_path / "new.toml"
    spec.write_text(text + "peak_fp32_tflops = 20\n", encoding="utf-8")
    (device,) = described([spec])
    found = Devices([*devices(), device]).named("e1")
    assert found is not None
    assert found.memory_gb_per_second == 500
    spec.write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match=r"new.toml: E1: expected facts .* no peak_fp32_tflops"):
        described([spec])


def test_the_pick_of_predictions_costs_what_the_cheapest_costs(tmp_path: Path):
    """Where rates follow a law, who follows predictions pays at most a tenth more in most cases."""
    given = read(tmp_path, rows())
    prices = {
        chip.lower(): peak**0.7 * bandwidth**0.3 for chip, (_, peak, bandwidth) in FACTS.items()
    }
    by_predictions, by_roofline = regret(*given, prices)
    assert by_predictions.choices == by_roofline.choices == len(MODELS)
    assert by_predictions.within_a_tenth >= by_roofline.within_a_tenth
    assert by_predictions.within_a_tenth >= 0.5
    assert by_predictions.median_percent <= by_predictions.p90_percent


def test_fewer_than_five_candidates_are_no_choice(tmp_path: Path):
    """Devices without a price do not count."""
    found, _ = regret(*read(tmp_path, rows()), {"a1": 1.0, "a2": 2.0, "b1": 1.0, "b2": 2.0})
    assert found.choices == 0


def test_how_long_a_run_took_is_no_rate(tmp_path: Path):
    """Times to a target and of epochs are left out of what is learnt from."""
    table = [row("dense", "Maker A1", 90.0, unit="s"), row("dense", "Maker A1", 9.0)]
    assert len(read(tmp_path, table)[0]) == 1
