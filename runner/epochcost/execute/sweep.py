"""Report the outcome of each size in a sweep of batch sizes, and record how the sweep ended.

``plan.sweep`` chooses the next size, and ``execute.run`` measures it. A size that runs out of
memory is an outcome of the sweep, not a failure of the run.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence

from epochcost.errors import EpochcostError
from epochcost.measure.environment import detect_environment
from epochcost.measure.gpus import shown_gpus
from epochcost.measure.job import OutOfMemory
from epochcost.measure.memory import available_memory_bytes, tells_out_of_memory
from epochcost.plan.sweep import MeasuredSize, Point, SizeFailure, Sweep, SweepEnd
from epochcost.plan.trial import Trial
from epochcost.results.records import Result
from epochcost.results.rounds import summary_of
from epochcost.results.sidecars import LIMIT_VERSION, BatchLimit, FailedSize
from epochcost.units import memory

# An interval of two or three samples may reach zero; its rate must stay finite.
_LOWEST_SHARE = 1e-3


def is_out_of_memory(error: EpochcostError) -> bool:
    """Whether an error says that this process or its worker ran out of memory."""
    return isinstance(error, OutOfMemory) or tells_out_of_memory(str(error))


def measured_point(result: Result) -> MeasuredSize:
    """The outcome of a batch size that ran."""
    summary = summary_of(result.measurement)
    low = max(summary.interval.low, _LOWEST_SHARE * summary.mean)
    return MeasuredSize(result.trial.batch_size, low, summary.mean, summary.interval.high)


def failed_point(batch_size: int, error: EpochcostError) -> SizeFailure:
    """The outcome of a batch size that did not run."""
    return SizeFailure(batch_size, str(error).splitlines()[0], is_out_of_memory(error))


def trial_room_bytes(trial: Trial) -> int | None:
    """Bytes of memory that a trial may now take on this host or on its GPU; None if unknown."""
    if trial.provider == "cpu":
        return available_memory_bytes()
    gpus = shown_gpus()
    whole = gpus[trial.session.device].memory_bytes if trial.session.device < len(gpus) else None
    limits = [size for size in (whole, trial.session.device_memory_limit_bytes) if size is not None]
    return min(limits, default=None)


def sweep_limit(
    sweep: Sweep,
    hardware: str,
    room_bytes: int | None,
    points: Sequence[Point],
    results: Sequence[Result],
    end: SweepEnd,
) -> BatchLimit:
    """The record of a sweep's end; ``room_bytes`` of memory were free when it began."""
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
    """Peak memory of the trial's worker in bytes: of the host, or of the device for CUDA."""
    measured = result.measurement
    if result.trial.provider == "cpu":
        return measured.peak_memory_bytes
    return None if measured.conditions is None else measured.conditions.device_memory_bytes
