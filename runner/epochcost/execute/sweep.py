"""Doing a sweep of batch sizes: size after size until it ends, and the record of its end.

Which size comes next is decided in ``plan.sweep``; how one is measured is ``execute.run``'s and
passed in. A size that runs out of memory is a point of the sweep and no failure of the run.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from epochcost.errors import EpochcostError
from epochcost.measure.environment import detect_environment
from epochcost.measure.gpus import shown_gpus
from epochcost.measure.job import OutOfMemory
from epochcost.measure.memory import available_memory_bytes, tells_out_of_memory
from epochcost.plan.sweep import MeasuredSize, Point, SizeFailure, Sweep, SweepEnd, next_size
from epochcost.plan.trial import Trial
from epochcost.results.limits import LIMIT_VERSION, BatchLimit, FailedSize
from epochcost.results.records import Result
from epochcost.results.rounds import summary_of
from epochcost.units import memory

# The result of a size, or why it has none.
Attempt = Callable[[Trial], Result | EpochcostError]
# An interval of two or three samples may reach below zero; a rate of it must stay finite.
_LOWEST_SHARE = 1e-3


@dataclass(frozen=True)
class SweepResult:
    """All points of a sweep that is over, the results of those that ran, and the end."""

    results: tuple[Result, ...]
    limit: BatchLimit


def is_out_of_memory(error: EpochcostError) -> bool:
    """Whether a trial has no result because memory ended, in whichever process."""
    return isinstance(error, OutOfMemory) or tells_out_of_memory(str(error))


def run_sizes(sweep: Sweep, hardware: str, room_bytes: int | None, attempt: Attempt) -> SweepResult:
    """Try size after size until the sweep ends; ``room_bytes`` is what there was at its begin."""
    points: list[Point] = []
    results: dict[int, Result] = {}
    while not isinstance(size := next_size(sweep, points), SweepEnd):
        met = attempt(sweep.at(size))
        if isinstance(met, Result):
            results[size] = met
            summary = summary_of(met.measurement)
            low = max(summary.interval.low, _LOWEST_SHARE * summary.mean)
            points.append(MeasuredSize(size, low, summary.mean, summary.interval.high))
        else:
            first_line = str(met).splitlines()[0]
            points.append(SizeFailure(size, first_line, is_out_of_memory(met)))
    ordered = tuple(results[size] for size in sorted(results))
    return SweepResult(ordered, _limit(sweep, hardware, room_bytes, points, ordered, size))


def trial_room_bytes(trial: Trial) -> int | None:
    """The memory that a trial may take now, of this host or of its GPU; None: not known."""
    if trial.provider == "cpu":
        return available_memory_bytes()
    gpus = shown_gpus()
    whole = gpus[trial.session.device].memory_bytes if trial.session.device < len(gpus) else None
    limits = [size for size in (whole, trial.session.device_memory_limit_bytes) if size is not None]
    return min(limits, default=None)


def _limit(
    sweep: Sweep,
    hardware: str,
    room_bytes: int | None,
    points: Sequence[Point],
    results: Sequence[Result],
    end: SweepEnd,
) -> BatchLimit:
    failed = sorted((p for p in points if isinstance(p, SizeFailure)), key=lambda p: p.batch_size)
    of_memory = end.cause == "memory"
    return BatchLimit(
        limit_version=LIMIT_VERSION,
        sweep_id=sweep.id,
        trial=sweep.trial,
        hardware=hardware,
        ended_at=dt.datetime.now(dt.UTC),
        cause=end.cause,
        reason=end.reason + (_room_words(room_bytes, results) if of_memory else ""),
        sizes=tuple(result.trial.batch_size for result in results),
        failed=tuple(
            FailedSize(batch_size=p.batch_size, words=p.reason, of_memory=p.of_memory)
            for p in failed
        ),
        environment=detect_environment(),
    )


def _room_words(room_bytes: int | None, results: Sequence[Result]) -> str:
    there = "" if room_bytes is None else f" of {memory(room_bytes)}"
    peak = peak_bytes(results[-1]) if results else None
    last = "" if peak is None else f"; batch {results[-1].trial.batch_size:,} held {memory(peak)}"
    return there + last


def peak_bytes(result: Result) -> int | None:
    """The most that the trial's worker held: of the host, or of the device for CUDA."""
    measured = result.measurement
    if result.trial.provider == "cpu":
        return measured.peak_memory_bytes
    return None if measured.conditions is None else measured.conditions.device_memory_bytes
