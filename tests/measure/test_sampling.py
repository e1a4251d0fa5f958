"""Warm-up and sampling stop at the right time, on a clock that only steps move."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from epochcost.measure import sampling
from epochcost.measure.job import SamplingRule, WarmUpRule
from epochcost.measure.sampling import is_settled, sample, warm_up
from epochcost.statistics.interval import mean_interval, relative_half_width


class Machine:
    """A clock, and a step that takes the next of the given times, then always the last one."""

    def __init__(self, seconds: list[float]) -> None:
        self.now = 1000.0
        self._seconds = iter(seconds)
        self._last = seconds[-1]
        self.reports: list[tuple[int, float | None]] = []

    def clock(self) -> float:
        """The current time."""
        return self.now

    def step(self) -> None:
        """Take a step."""
        self.now += next(self._seconds, self._last)

    def report(self, samples: int, width: float | None) -> None:
        """Store a report, and let a hundredth of a second pass."""
        self.reports.append((samples, width))
        self.now += 0.01

    def sample(self, deadline: float = 1e9, **settings: float) -> sampling.Samples:
        """Sample this machine's step."""
        wanted = SamplingRule.model_validate({"minimum_seconds": 0, "minimum_share": 0, **settings})
        return sample(self.step, self.clock, wanted, deadline, self.report)

    def warm_up(self, budget_seconds: float = 1e9, **settings: float) -> tuple[float, ...]:
        """Warm this machine up."""
        wanted = WarmUpRule.model_validate({"minimum_seconds": 0, **settings})
        return warm_up(self.step, self.clock, wanted, budget_seconds, self.report)


def noisy(length: int, mean: float = 0.01, spread: float = 0.1, seed: int = 0) -> list[float]:
    """Draw step times with this mean and spread."""
    return list(mean * np.random.default_rng(seed).normal(1, spread, length).clip(0.1))


def test_a_steady_step_needs_the_minimum_only() -> None:
    """Equal times are precise at the minimum of samples."""
    samples = Machine([0.01]).sample(minimum_samples=30)
    assert len(samples.seconds) == 30
    assert samples.stop_reason == "precise"


def test_more_noise_takes_more_samples() -> None:
    """Sampling goes on until the interval of the mean is as narrow as requested."""
    quiet = Machine(noisy(5000, spread=0.05)).sample(relative_half_width=0.02)
    loud = Machine(noisy(5000, spread=0.3)).sample(relative_half_width=0.02)
    assert len(loud.seconds) > 4 * len(quiet.seconds)
    assert loud.stop_reason == "precise"
    assert relative_half_width(loud.seconds) <= 0.02


def test_the_budget_ends_what_is_not_precise() -> None:
    """After the deadline sampling stops, with the budget as the reason."""
    machine = Machine(noisy(10_000, spread=0.5))
    samples = machine.sample(deadline=machine.now + 1, relative_half_width=0.001)
    assert samples.stop_reason == "budget"
    assert sum(samples.seconds) == pytest.approx(1, rel=0.2)


def test_a_step_longer_than_the_budget_is_taken_three_times() -> None:
    """Three samples are taken even if the budget is too short for them."""
    samples = Machine([50.0, 60.0, 70.0]).sample(deadline=1001)
    assert samples.seconds == (50.0, 60.0, 70.0)
    assert samples.stop_reason == "budget"


def test_few_samples_are_never_called_precise() -> None:
    """Fewer samples than the minimum end with the reason budget, even if all are equal."""
    assert Machine([10.0]).sample(deadline=1045, minimum_samples=30).stop_reason == "budget"


def test_a_precise_mean_at_the_deadline_is_called_precise() -> None:
    """At a deadline between two checks a last check decides the reason."""
    machine = Machine([0.5] * 10 + [1.5] * 10 + [1.0])
    samples = machine.sample(deadline=1033.5, minimum_samples=10, relative_half_width=0.4)
    assert samples.stop_reason == "precise"


def test_a_burst_of_fast_steps_is_not_believed() -> None:
    """Sampling lasts at least the minimum time, whatever the number of samples."""
    samples = Machine([1e-4]).sample(minimum_samples=30, minimum_seconds=0.5)
    assert sum(samples.seconds) >= 0.45


def test_stored_samples_are_bounded() -> None:
    """The number of samples is limited, so that very short steps do not fill the disk."""
    samples = Machine([1e-9]).sample(minimum_seconds=10, most_samples=500)
    assert len(samples.seconds) == 500


def test_only_the_step_is_timed() -> None:
    """Samples exclude the time of reports and checks."""
    machine = Machine([0.2])
    samples = machine.sample(minimum_samples=30)
    assert samples.seconds == pytest.approx([0.2] * 30)
    assert len(machine.reports) > 10


def test_sequential_stopping_keeps_the_coverage() -> None:
    """Stopping at a narrow interval keeps the coverage: 90 % or more of 200 trials."""
    covered = 0
    for trace in _dependent_traces(200):
        interval = mean_interval(Machine(trace).sample(relative_half_width=0.05).seconds)
        covered += interval.low <= 0.01 <= interval.high
    assert covered >= 180


def _dependent_traces(count: int) -> Iterator[list[float]]:
    rng = np.random.default_rng(7)
    for _ in range(count):
        state, trace = 0.0, []
        for shock in rng.standard_normal(4000):
            state = 0.5 * state + shock
            trace.append(0.01 * max(0.1, 1 + 0.1 * state))
        yield trace


def test_the_first_slow_steps_are_warmed_away() -> None:
    """Warm-up continues until the slow first steps are over."""
    seconds = Machine([1.0] * 6 + [0.1]).warm_up(minimum_steps=10)
    assert len(seconds) > 12
    assert is_settled(seconds, 0.05)


def test_the_captures_of_both_cuda_graphs_are_warmed_away() -> None:
    """Warm-up includes both slow captures, even if the first uses up the warm-up's time."""
    machine = Machine([0.4, 0.3, 0.08])
    seconds = warm_up(machine.step, machine.clock, WarmUpRule(), 1, machine.report, 2)
    assert seconds == pytest.approx((0.4, 0.3))


def test_one_slow_step_does_not_prolong_the_warm_up() -> None:
    """One slow step does not prolong the warm-up, since medians decide."""
    seconds = Machine([0.1] * 8 + [5.0] + [0.1]).warm_up(minimum_steps=10)
    assert len(seconds) == 10


def test_a_drift_is_not_settled() -> None:
    """Times that fall by 2 % at each step do not settle, so the limit ends the warm-up."""
    machine = Machine([0.98**n for n in range(400)])
    seconds = machine.warm_up(budget_seconds=100, budget_share=0.2)
    assert sum(seconds) == pytest.approx(20, rel=0.1)
    assert not is_settled(seconds, 0.05)


def test_warm_up_lasts_its_minimum_time() -> None:
    """Fast steps are repeated for the minimum time, in which clocks can rise."""
    assert sum(Machine([0.001]).warm_up(minimum_seconds=0.25)) >= 0.2
