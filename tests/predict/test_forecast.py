"""Forecasts of rates: accurate for a known law, wide without data, and cached."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from epochcost.predict.forecast import Forecaster, Question, as_rate
from epochcost.predict.learnt import placed
from epochcost.predict.rates import read_rates
from predict.tables import KNOWN, MODELS, PROFILES, rows, true_rate, write


@pytest.fixture
def forecaster(tmp_path: Path) -> Forecaster:
    """A forecaster with all synthetic rows except those of the chip C1."""
    table = [entry for entry in rows() if entry["accelerator"] != "Maker C1"]
    rows_of_table = placed(read_rates(write(tmp_path / "t.csv", table)), KNOWN, PROFILES)
    return Forecaster(rows_of_table, KNOWN)


def question(model: str, chip: str, **changes: object) -> Question:
    """Inference of a synthetic model in fp32 on one chip."""
    device = KNOWN.named(chip)
    assert device is not None
    base = Question(model, PROFILES[model, ""], "inference", "fp32", 1, device, 1, software="plain")
    return replace(base, **changes)  # type: ignore[arg-type]


def test_intervals_hold_the_truth_of_a_chip_that_was_not_seen(forecaster: Forecaster):
    """All intervals of the withheld chip but at most one contain the true rate."""
    forecasts = forecaster.forecasts([question(model, "C1") for model in MODELS])
    in_range = [
        forecast.low <= true_rate(model, "C1") <= forecast.high
        for model, forecast in zip(MODELS, forecasts, strict=True)
    ]
    assert sum(in_range) >= len(MODELS) - 1
    assert all(forecast.low < forecast.per_second < forecast.high for forecast in forecasts)


def test_a_forecast_from_a_single_rate_has_no_low_end(forecaster: Forecaster):
    """One published rate predicts others, but tells nothing about the errors."""
    lone = Forecaster(forecaster.published[:1], KNOWN)
    for forecast in lone.forecasts([question(model, "C1") for model in MODELS]):
        assert 0 == forecast.low < forecast.per_second <= forecast.high < math.inf
        assert np.isfinite(forecast.draws.values).all()


def test_ranges_of_rates_that_hosts_limit_are_wider(forecaster: Forecaster):
    """A batch of 1, whose kernels take longer to start than to run, has a wider range."""
    host, device = forecaster.forecasts([question("dense", "C1", batch=size) for size in (1, 1000)])
    assert math.log(host.high / host.low) > 1.5 * math.log(device.high / device.low)


def test_draws_fit_the_ranges_of_small_and_of_large_batches(forecaster: Forecaster):
    """Draws have the same width relative to the range whether the host or the device limits."""
    sizes = {"C1": 1, "C2": 1000, "D1": 1000, "D2": 1000}
    forecasts = forecaster.forecasts(
        [question("dense", chip, batch=size) for chip, size in sizes.items()]
    )
    relative = [np.std(each.draws.values) / math.log(each.high / each.low) for each in forecasts]
    assert max(relative) < 1.3 * min(relative)


def test_training_takes_three_forward_passes(forecaster: Forecaster):
    """Without rows of training, the training rate is about a third of the inference rate."""
    inference, training = forecaster.forecasts(
        [question("dense", "A2"), question("dense", "A2", mode="training")]
    )
    assert inference.per_second / training.per_second == pytest.approx(3, rel=0.35)


def test_twice_the_devices_are_about_twice_as_fast_and_less_sure(forecaster: Forecaster):
    """Eight devices have about eight times the rate of one, and a wider interval."""
    single, eight = forecaster.forecasts(
        [question("dense", "A2"), question("dense", "A2", count=8)]
    )
    assert eight.per_second / single.per_second == pytest.approx(8, rel=0.2)
    assert eight.high / eight.low > single.high / single.low


def test_a_training_is_at_least_as_fast_as_its_parts(forecaster: Forecaster):
    """No larger batch, and no larger machine with that batch, lowers the rate of a device."""
    sizes = [64 * 4**power for power in range(5)]
    rates = [
        [
            forecast.per_second / count
            for forecast in forecaster.forecasts(
                [
                    question("dense", "A2", mode="training", batch=size, count=count)
                    for size in sizes
                ]
            )
        ]
        for count in (1, 8)
    ]
    assert rates[0] == sorted(rates[0])
    assert all(eight <= 1.001 * one for one, eight in zip(*rates, strict=True))


def test_a_published_training_is_at_least_as_fast_as_its_parts(forecaster: Forecaster):
    """The mode of the published program decides, instead of the question's."""
    trained = replace(as_rate(question("dense", "A2"), 1.0).rate, mode="training")
    large, same = forecaster.forecasts(
        [
            question("dense", "A2", mode=mode, batch=16_384, program=trained)
            for mode in ("inference", "training")
        ]
    )
    assert large == same


@pytest.mark.parametrize("factor", [0.5, 2])
def test_anchors_move_a_machine_to_its_true_speed(tmp_path: Path, factor: float):
    """Three measured models correct the rate of a fourth on the same machine."""
    rows_of_table = placed(read_rates(write(tmp_path / "t.csv", rows())), KNOWN, PROFILES)
    anchored = [question(model, "A2") for model in ("dense", "light", "thin")]
    base = question("wide", "A2")
    plain = Forecaster(rows_of_table, KNOWN)
    measured = [
        as_rate(row_forecast, factor * forecast.per_second)
        for row_forecast, forecast in zip(anchored, plain.forecasts(anchored), strict=True)
    ]
    models = plain, Forecaster(rows_of_table, KNOWN, measured)
    before, after = (model.forecasts([base])[0] for model in models)
    moved = math.log(after.per_second / before.per_second) / math.log(factor)
    assert 0.6 < moved < 1.1
    assert after.low < factor * before.per_second < after.high
    # Not the widths of the intervals: the share of the peak that was reached cuts their high ends.
    variances = [model.errors_of([as_rate(base, 1.0)])[0, 0] for model in models]
    assert variances[1] < 0.6 * variances[0]


def test_an_imprecise_measurement_moves_forecasts_less(tmp_path: Path):
    """A measured rate that may be off by a factor of two changes forecasts less than an exact one.

    A measurement of unlimited uncertainty changes nothing.
    """
    rows_of_table = placed(read_rates(write(tmp_path / "t.csv", rows())), KNOWN, PROFILES)
    base = question("wide", "A2")
    plain = Forecaster(rows_of_table, KNOWN).forecasts([base])[0].per_second
    exact = as_rate(base, plain / 3)
    moved = [
        math.log(plain / Forecaster(rows_of_table, KNOWN, [rate]).forecasts([base])[0].per_second)
        for rate in (replace(exact, uncertainty=size) for size in (0.0, math.log(2), 1e3))
    ]
    assert moved[0] > 1.5 * moved[1] > 0
    # Only the mean over all rows, which every row enters, may differ.
    assert abs(moved[2]) < 0.05


def test_kept_forecasts_do_not_depend_on_the_place_of_a_table(tmp_path: Path):
    """The same table in another folder uses the stored forecast."""
    cache = tmp_path / "cache"
    for name in ("here", "there"):
        (tmp_path / name).mkdir()
        table = read_rates(write(tmp_path / name / "t.csv", rows()))
        forecaster = Forecaster(placed(table, KNOWN, PROFILES), KNOWN, cache=cache)
        forecaster.forecasts([question("dense", "C1")])
    assert len(list(cache.iterdir())) == 1


def test_errors_of_one_workload_are_those_of_its_draws(forecaster: Forecaster):
    """The errors of one model have the covariance of its draws; two models share errors."""
    questions = [question(model, chip) for model in ("dense", "wide") for chip in ("A2", "C1")]
    asked = [as_rate(each, 1.0) for each in questions]
    errors = forecaster.errors_of(asked)
    forecasts = forecaster.of(asked)
    for first in (0, 2):
        roots = [np.array(forecasts[at].draws.weights) for at in (first, first + 1)]
        expected = [[float(a[: len(b)] @ b[: len(a)]) for b in roots] for a in roots]
        block = errors[first : first + 2, first : first + 2]
        np.testing.assert_allclose(block, expected, atol=5e-3)
    assert errors[1, 3] > errors[0, 3] >= 0
    np.testing.assert_allclose(errors, errors.T, atol=1e-12)
