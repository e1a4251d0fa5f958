"""Time the steps of a trial: warm up, then sample until the mean is precise.

The clock is read just before and after each step, so that no other work is timed.
"""

from __future__ import annotations

import datetime as dt
import statistics as plain_statistics
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from epochcost.measure.job import Message, Phase, Progress, SamplingRule, WarmUpRule
from epochcost.results.records import StopReason
from epochcost.statistics.interval import relative_half_width

Clock = Callable[[], float]
Step = Callable[[], object]
# A function called between steps with the number of samples and the latest relative half width.
Report = Callable[[int, float | None], None]
Emit = Callable[[Message], None]

# The interval is computed again when the number of samples has grown by this factor. This takes
# little time and gives few chances to stop at an interval that is narrow by chance.
_GROWTH = 1.2
# An interval needs this number of samples, even if the first step takes the whole budget.
_FEWEST_SAMPLES = 3
_REPORT_SECONDS = 0.25


@dataclass(frozen=True)
class Samples:
    """Times of consecutive steps in seconds, and the reason why the sampling ended."""

    seconds: tuple[float, ...]
    stop_reason: StopReason


class _EndTestSchedule:
    def __init__(self, first_step_count: int) -> None:
        self._next = first_step_count

    def is_due(self, step_count: int) -> bool:
        """Whether a test for the phase's end is due; if so, this call schedules the next test."""
        if step_count < self._next:
            return False
        self._next = max(step_count + 1, int(step_count * _GROWTH))
        return True


def is_settled(seconds: Sequence[float], tolerance: float) -> bool:
    """Whether the last third of the steps is as fast as the third before it.

    The medians of the two thirds must differ by at most ``tolerance`` times the earlier median.
    """
    third = len(seconds) // 3
    if third == 0:
        return False
    # Medians, since a single slow step should not delay the sampling. Thirds grow, so they show
    # slow drift of clocks, and a few slow steps at the beginning.
    earlier = plain_statistics.median(seconds[-2 * third : -third])
    later = plain_statistics.median(seconds[-third:])
    return abs(later - earlier) <= tolerance * earlier


def warm_up(
    step: Step,
    clock: Clock,
    settings: WarmUpRule,
    budget_seconds: float,
    report: Report,
    least_steps: int = 1,
) -> tuple[float, ...]:
    """Take steps until their times settle or the warm-up's share of the budget is spent.

    Takes at least ``least_steps`` steps in any case. Returns the time of each step in seconds.
    """
    reporting = PacedReport(report, clock)
    end_tests = _EndTestSchedule(settings.minimum_steps)
    seconds: list[float] = []
    begun = clock()
    limit = settings.budget_share * budget_seconds
    while True:
        before = clock()
        step()
        now = clock()
        seconds.append(now - before)
        if now - begun >= limit and len(seconds) >= least_steps:
            return tuple(seconds)
        ripe = now - begun >= settings.minimum_seconds and end_tests.is_due(len(seconds))
        if ripe and is_settled(seconds, settings.tolerance):
            return tuple(seconds)
        reporting.at(now, len(seconds), None)


def sample(
    step: Step, clock: Clock, sampling: SamplingRule, deadline: float, report: Report
) -> Samples:
    """Time steps until the mean is precise, ``deadline`` passes or ``most_samples`` are taken.

    The stopping rule is the sequential fixed-width interval of Chow & Robbins (1965). Although the
    data decide when sampling ends, the interval keeps its coverage unless the samples are very few.
    """
    reporting = PacedReport(report, clock)
    end_tests = _EndTestSchedule(max(sampling.minimum_samples, _FEWEST_SAMPLES))
    # This share of a long budget is long enough to show slow drift.
    share_seconds = sampling.minimum_share * sampling.budget_seconds
    earliest = clock() + max(sampling.minimum_seconds, share_seconds)
    width: float | None = None
    seconds: list[float] = []
    while True:
        before = clock()
        step()
        now = clock()
        seconds.append(now - before)
        late = now >= deadline and len(seconds) >= _FEWEST_SAMPLES
        spent = late or len(seconds) >= sampling.most_samples
        if spent or (now >= earliest and end_tests.is_due(len(seconds))):
            width = relative_half_width(seconds)
            enough = len(seconds) >= sampling.minimum_samples
            if enough and width <= sampling.relative_half_width:
                return Samples(tuple(seconds), "precise")
        if spent:
            return Samples(tuple(seconds), "budget")
        reporting.at(now, len(seconds), width)


class PacedReport:
    """Limits reports to one every ``_REPORT_SECONDS``, because reports delay short steps."""

    def __init__(self, report: Report, clock: Clock) -> None:
        self._report = report
        self._next = clock()

    def at(self, now: float, count: int, width: float | None) -> None:
        """Report ``count`` samples and the interval's ``width``, unless a report was just made."""
        if now >= self._next:
            self._next = now + _REPORT_SECONDS
            self._report(count, width)


class TrialProgress:
    """Passes a trial's progress to ``emit``: the phase, and the number of samples in it so far."""

    def __init__(self, budget_seconds: float, emit: Emit, clock: Clock) -> None:
        self.clock, self.started_at = clock, dt.datetime.now(dt.UTC)
        self._emit, self._budget_seconds = emit, budget_seconds
        self._started = self._begun = clock()
        self.enter("starting")

    def enter(self, phase: Phase) -> None:
        """Begin a phase of the trial, and report it."""
        self._phase: Phase = phase
        if phase == "warm-up":
            self._begun = self.clock()
        self.report(0, None)

    def report(self, samples: int, width: float | None) -> None:
        """Report the number of samples and the mean's relative half ``width`` (None if unknown)."""
        progress = Progress(
            phase=self._phase,
            samples=samples,
            relative_half_width=width,
            elapsed_seconds=self.clock() - self._begun,
            budget_seconds=self._budget_seconds,
        )
        self._emit(Message(progress=progress))

    def wall_seconds(self) -> float:
        """Seconds since the trial began."""
        return self.clock() - self._started


def to_nanoseconds(seconds: Iterable[float]) -> tuple[float, ...]:
    """Round each time to nanoseconds, but never to zero; more digits are noise."""
    return tuple(max(round(value, 9), 1e-9) for value in seconds)
