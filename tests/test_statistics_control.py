"""The mean without what a control explains: found again, with an interval that knows its slope."""

from __future__ import annotations

import numpy as np
import pytest

from epochcost.statistics import mean_interval
from epochcost.statistics.control import Slope, Standard, standardised, undisturbed_mean

USUAL = Slope(1.0, 0.2)


def stretches(count: int, length: int) -> list[slice]:
    """So many neighbouring stretches of one length."""
    return [slice(at * length, (at + 1) * length) for at in range(count)]


@pytest.mark.parametrize("slope", [0.7, 1.0, 1.3])
def test_the_undisturbed_mean_is_found_again(slope: float) -> None:
    """However much a step minds the waiting, where that varies its mean is within 2 %."""
    random = np.random.default_rng(7)
    calm = random.normal(0.1, 0.005, 400)
    waited = np.repeat(random.uniform(0, 0.8, 40), 10)
    times = calm * np.exp(slope * waited)
    found = undisturbed_mean(times, waited, stretches(40, 10), [400], USUAL, Standard())
    assert found.mean == pytest.approx(0.1, rel=0.02)
    assert found.low <= 0.1 <= found.high


def test_intervals_hold_the_truth_as_often_as_they_say() -> None:
    """Of 300 series whose slope is drawn as is usual, about 95 % are covered."""
    random = np.random.default_rng(11)
    covered = 0
    for _ in range(300):
        calm = random.normal(1.0, 0.05, 120)
        waited = np.repeat(random.uniform(0.2, 0.5, 12), 10)
        times = calm * np.exp(random.normal(USUAL.mean, USUAL.error) * waited)
        found = undisturbed_mean(times, waited, stretches(12, 10), [120], USUAL, Standard())
        covered += found.low <= 1.0 <= found.high
    assert 0.88 <= covered / 300 <= 0.99


def test_without_waiting_nothing_changes() -> None:
    """On a quiet machine mean and interval are those of the plain series."""
    times = np.random.default_rng(3).normal(0.1, 0.01, 60)
    plain = mean_interval(times)
    found = undisturbed_mean(times, np.zeros(60), stretches(6, 10), [60], USUAL, Standard())
    assert (found.low, found.high) == pytest.approx((plain.low, plain.high))
    assert found.mean == pytest.approx(times.mean())


def test_a_waiting_that_never_varies_leaves_the_interval_wide() -> None:
    """Nothing but what is usual says what part of it a step lost."""
    times = np.random.default_rng(5).normal(2.0, 0.01, 60)
    waited = np.full(60, 0.5)
    found = undisturbed_mean(times, waited, stretches(6, 10), [60], USUAL, Standard())
    assert found.mean == pytest.approx(2 * np.exp(-0.5), rel=0.01)
    assert (found.high - found.low) / 2 == pytest.approx(1.96 * 0.2 * 0.5 * found.mean, rel=0.1)


def test_no_slope_is_steeper_than_any_that_was_seen() -> None:
    """What another cause made grow with the waiting is not all taken for it."""
    waited = np.repeat(np.linspace(0, 1, 10), 10)
    times = np.exp(4 * waited) + np.random.default_rng(1).normal(0, 0.001, 100)
    found = undisturbed_mean(times, waited, stretches(10, 10), [100], USUAL, Standard())
    assert found.mean == pytest.approx(float((times * np.exp(-1.5 * waited)).mean()), rel=0.01)


@pytest.mark.parametrize("rounds", [3, 4, 6])
def test_standardised_means_are_covered(rounds: int) -> None:
    """Of 200 series in two states, whose processes differ besides, 90 to 99 % are covered."""
    random = np.random.default_rng(rounds)
    covered = told = 0
    for _ in range(200):
        second = np.repeat(random.random(rounds) < 0.5, 20)
        levels = np.where(second, 0.75, 1.0) * np.repeat(random.normal(1, 0.02, rounds), 20)
        times = levels * random.normal(1, 0.01, 20 * rounds)
        found = standardised(times, second, 0.6, [20] * rounds)
        if found is not None:
            step = undisturbed_mean(times, np.zeros(20 * rounds), [], [20] * rounds, USUAL, found)
            told += 1
            covered += step.low <= 0.4 * 1.0 + 0.6 * 0.75 <= step.high
    assert told > 120
    assert 0.90 <= covered / told <= 0.99


def test_what_was_hardly_seen_is_not_standardised() -> None:
    """Two rounds are too few for two states, and so is a third of a round of one of them."""
    times, second = np.ones(40), np.repeat([False, True], 20)
    assert standardised(times, second, 0.5, [20, 20]) is None
    brief = np.arange(60) < 6
    assert standardised(np.ones(60), brief, 0.5, [20, 20, 20]) is None
    assert standardised(np.ones(60), np.arange(60) < 20, 0.5, [20, 20, 20]) is not None
