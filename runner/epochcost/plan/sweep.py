"""Search over batch sizes (a sweep): the next batch size to try, or the reason to stop.

The batch size doubles until memory runs out, throughput falls, a step takes too long, or no larger
batch exists. Bisection then finds the largest batch size that fits in memory.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Literal

from pydantic import BaseModel, ConfigDict

from epochcost.plan.trial import Count, Trial
from epochcost.units import seconds

Cause = Literal["memory", "throughput", "maximum", "time", "failure"]

# Bisection ends when the smallest size that failed is at most a sixteenth above the largest that
# ran: the memory of two processes at the same size differs by more.
_RESOLUTION = 16
# Throughput must fall at two sizes in a row, because the machine may have been busy during one.
_FALLEN_SIZES = 2
# Throughput must fall by this share, because a smaller change hardly changes a bill.
_FALLEN_SHARE = 0.05
# A sweep ends if a step takes longer than this multiple of its trial's time budget.
_LONGEST_STEP_BUDGETS = 3


@dataclass(frozen=True)
class Sweep:
    """A series of trials that differ only in their batch size, each in ``rounds`` processes.

    ``trial`` has the smallest size. ``bound`` says why no size above ``largest`` is tried.
    """

    trial: Trial
    largest: int
    bound: str
    rounds: int = 1

    @property
    def id(self) -> str:
        """Sixteen hexadecimal digits that identify the sweep, independent of its batch sizes."""
        return self.at(0).id

    @property
    def title(self) -> str:
        """A title: the model, the smallest and the largest batch size, and what ends the sweep."""
        first = self.trial
        named = f"{first.model} {first.mode} {first.provider}"
        ends = f"batch {first.batch_size}, doubled until memory ends or throughput falls"
        variant = f", {first.variant}" if first.variant else ""
        return f"{named} {ends}, at most {self.largest:,} ({self.bound}){variant}"

    def at(self, batch_size: int) -> Trial:
        """The sweep's trial with this batch size; its id does not depend on the sweep."""
        return self.trial.model_copy(update={"batch_size": batch_size})


@dataclass(frozen=True)
class MeasuredSize:
    """A batch size that ran, with the mean time of a step and its 95 % interval."""

    batch_size: int
    low_seconds: float
    mean_seconds: float
    high_seconds: float

    @property
    def highest_rate(self) -> float:
        """Examples per second at the low end of the step time's interval."""
        return self.batch_size / self.low_seconds

    @property
    def lowest_rate(self) -> float:
        """Examples per second at the high end of the step time's interval."""
        return self.batch_size / self.high_seconds


class FailedSize(BaseModel):
    """A batch size that failed (``of_memory``: for lack of memory) and the error's first line."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    batch_size: Count
    words: str
    of_memory: bool


@dataclass(frozen=True)
class SweepEnd:
    """The end of a sweep: its cause, and the reason as text."""

    cause: Cause
    reason: str


Point = MeasuredSize | FailedSize


def next_size(sweep: Sweep, points: Sequence[Point]) -> int | SweepEnd:
    """The next batch size of a sweep to try, or the end of the sweep with its reason.

    A size that ran out of memory is an upper limit, unless a larger size ran.
    """
    ran = sorted(
        (p for p in points if isinstance(p, MeasuredSize)), key=lambda point: point.batch_size
    )
    for broke in (p for p in points if isinstance(p, FailedSize) and not p.of_memory):
        return SweepEnd("failure", f"batch {broke.batch_size:,} failed: {broke.words}")
    largest = ran[-1].batch_size if ran else 0
    broken = (p.batch_size for p in points if isinstance(p, FailedSize))
    failed = min((size for size in broken if size > largest), default=None)
    # Throughput is compared only between doubled sizes, so not after bisection has begun.
    if failed is None and (end := _end_by_throughput(ran)):
        return end
    if failed is None and largest >= sweep.largest:
        return SweepEnd("maximum", sweep.bound)
    if failed is not None and failed - largest <= max(1, largest // _RESOLUTION):
        return SweepEnd("memory", f"batch {failed:,} ran out of memory")
    larger = next((size for size in ladder(sweep) if size > largest), sweep.largest)
    size = larger if failed is None else (largest + failed) // 2
    return _too_slow(sweep, ran, size) or size


def ladder(sweep: Sweep) -> Iterator[int]:
    """All batch sizes of an undisturbed sweep: the smallest, doubled sizes, and the largest."""
    size = sweep.trial.batch_size
    while size < sweep.largest:
        yield size
        size *= 2
    yield sweep.largest


def _end_by_throughput(ran: Sequence[MeasuredSize]) -> SweepEnd | None:
    best = max(ran, key=lambda point: point.lowest_rate, default=None)
    last = ran[-_FALLEN_SIZES:]
    if best is None or len(last) < _FALLEN_SIZES or best.batch_size >= last[0].batch_size:
        return None
    enough = best.lowest_rate * (1 - _FALLEN_SHARE)
    if any(point.highest_rate >= enough for point in last):
        return None
    sizes = " and ".join(f"{point.batch_size:,}" for point in last)
    return SweepEnd("throughput", f"examples/s fell: batch {sizes} below batch {best.batch_size:,}")


def _too_slow(sweep: Sweep, ran: Sequence[MeasuredSize], size: int) -> SweepEnd | None:
    if not ran:
        return None
    expected = ran[-1].mean_seconds * size / ran[-1].batch_size
    budget = sweep.trial.budget_seconds
    if Decimal(expected) <= _LONGEST_STEP_BUDGETS * budget:
        return None
    step = f"a step of batch {size:,} would take about {seconds(expected)}"
    return SweepEnd("time", f"{step}; a trial's budget is {seconds(float(budget))}")
