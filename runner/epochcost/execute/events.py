"""What a run tells while it goes: one frozen value per thing that happened."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from epochcost.errors import EpochcostError
from epochcost.measure.job import Progress
from epochcost.plan.rounds import Visit
from epochcost.plan.trial import Trial
from epochcost.results.limits import BatchLimit
from epochcost.results.records import Result


@dataclass(frozen=True)
class Scheduled:
    """What will be done, in order; the first of all events."""

    visits: tuple[Visit, ...]


@dataclass(frozen=True)
class Started:
    """The trial is being built; ``number`` of ``total`` counts visits from 1, skipped included.

    This is the ``round``th of its ``rounds``.
    """

    trial: Trial
    number: int
    total: int
    round: int = 1
    rounds: int = 1


@dataclass(frozen=True)
class Advanced:
    """The trial's worker got further."""

    trial: Trial
    progress: Progress


@dataclass(frozen=True)
class RoundKept:
    """One more round of the trial is measured and stored with the earlier ones; others follow."""

    trial: Trial
    result: Result
    path: Path


@dataclass(frozen=True)
class Finished:
    """The trial is measured, in all its rounds, and stored."""

    trial: Trial
    result: Result
    path: Path


@dataclass(frozen=True)
class Skipped:
    """The trial was measured on this host before."""

    trial: Trial
    result: Result


@dataclass(frozen=True)
class Failed:
    """The trial has no result, or one of ``rounds_kept`` rounds and no more; the others go on."""

    trial: Trial
    error: EpochcostError
    rounds_kept: int = 0


@dataclass(frozen=True)
class Exhausted:
    """The trial of a sweep ran out of memory: a point of the sweep, and no failure of the run."""

    trial: Trial
    error: EpochcostError


@dataclass(frozen=True)
class Swept:
    """A sweep of batch sizes has ended, and why it did is stored."""

    limit: BatchLimit
    path: Path


Outcome = Finished | Skipped | Failed
Event = Scheduled | Started | Advanced | RoundKept | Exhausted | Swept | Outcome
OnEvent = Callable[[Event], None]
