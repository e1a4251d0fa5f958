"""The mean without what a control explains: found again, with an interval that knows its slope."""

from __future__ import annotations

import numpy as np
import pytest

from epochcost.statistics import mean_interval
from epochcost.statistics.control import Slope, undisturbed_mean

USUAL = Slope(0.75, 0.15)


def stretches(count: int, length: int) -> list[slice]:
    """So many neighbouring stretches of one length."""
    return [slice(at * length, (at + 1) * length) for at in range(count)]


@pytest.mark.parametrize("loss", [0.5, 0.75, 1.0])
def test_the_undisturbed_mean_is_found_again(loss: float) -> None:
    """Whatever part of the waiting a step loses, where the waiting varies it is within 2 %."""
    random = np.random.default_rng(7)
    calm = random.normal(0.1, 0.005, 400)
    waited = np.repeat(random.uniform(0, 0.1, 40), 10)
    found = undisturbed_mean(calm + loss * waited, waited, stretches(40, 10), [400], USUAL)
    assert found.mean == pytest.approx(0.1, rel=0.02)
    assert found.low <= 0.1 <= found.high


def test_intervals_hold_the_truth_as_often_as_they_say() -> None:
    """Of 300 series whose loss is drawn as the prior says, about 95 % are covered."""
    random = np.random.default_rng(11)
    covered = 0
    for _ in range(300):
        calm = random.normal(1.0, 0.05, 120)
        waited = np.repeat(random.uniform(0.2, 0.5, 12), 10)
        loss = random.normal(USUAL.mean, USUAL.error)
        times = calm + loss * waited
        found = undisturbed_mean(times, waited, stretches(12, 10), [120], USUAL)
        covered += found.low <= 1.0 <= found.high
    assert 0.88 <= covered / 300 <= 0.99


def test_without_waiting_nothing_changes() -> None:
    """On a quiet machine mean and interval are those of the plain series."""
    times = np.random.default_rng(3).normal(0.1, 0.01, 60)
    plain = mean_interval(times)
    found = undisturbed_mean(times, np.zeros(60), stretches(6, 10), [60], USUAL)
    assert (found.low, found.high) == pytest.approx((plain.low, plain.high))
    assert found.mean == pytest.approx(times.mean())


def test_a_waiting_that_never_varies_leaves_the_interval_wide() -> None:
    """Nothing but the usual loss says what part of it a step lost."""
    times = np.random.default_rng(5).normal(2.0, 0.01, 60)
    waited = np.full(60, 1.0)
    found = undisturbed_mean(times, waited, stretches(6, 10), [60], USUAL)
    assert found.mean == pytest.approx(1.25, rel=0.01)
    assert (found.high - found.low) / 2 == pytest.approx(1.96 * 0.15, rel=0.1)


def test_no_step_loses_more_than_its_threads_waited() -> None:
    """A slope above 1, which chance or another cause made, corrects as 1 does, and time stays."""
    waited = np.repeat(np.linspace(0, 1, 10), 10)
    times = 1.0 + 3 * waited
    random = np.random.default_rng(1).normal(0, 0.01, 100)
    found = undisturbed_mean(times + random, waited, stretches(10, 10), [100], USUAL)
    assert found.mean == pytest.approx(float((times - waited).mean()), rel=0.01)
    assert found.low > 0
