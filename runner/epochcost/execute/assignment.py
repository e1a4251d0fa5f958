"""A run's assignment, its context, and the events that it reports."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from epochcost.errors import EpochcostError, ResultError
from epochcost.execute.patience import Patience
from epochcost.measure.job import Progress
from epochcost.plan.make import Plan
from epochcost.plan.rounds import Visit
from epochcost.plan.trial import Trial
from epochcost.results.limits import BatchLimit
from epochcost.results.records import Result
from epochcost.results.rounds import round_count
from epochcost.results.store import ResultStore
from epochcost.specs.catalogue import Catalogue


@dataclass(frozen=True)
class Scheduled:
    """The visits to come, in order; the first of all events."""

    visits: tuple[Visit, ...]


@dataclass(frozen=True)
class Started:
    """The trial is being built: visit ``number`` of ``total``, from 1 and with skipped visits.

    ``round`` of ``rounds`` counts the visits of this trial.
    """

    trial: Trial
    number: int
    total: int
    round: int = 1
    rounds: int = 1


@dataclass(frozen=True)
class Advanced:
    """The trial's worker reported progress."""

    trial: Trial
    progress: Progress


@dataclass(frozen=True)
class RoundStored:
    """A round of the trial is measured and stored with the earlier rounds; more rounds follow."""

    trial: Trial
    result: Result
    path: Path


@dataclass(frozen=True)
class Finished:
    """All rounds of the trial are measured and stored."""

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
    """The trial failed, and only its first ``rounds_kept`` rounds are stored; the run continues."""

    trial: Trial
    error: EpochcostError
    rounds_kept: int = 0


@dataclass(frozen=True)
class Exhausted:
    """The trial of a sweep ran out of memory: a point of the sweep, not a failure of the run."""

    trial: Trial
    error: EpochcostError


@dataclass(frozen=True)
class Swept:
    """A sweep of batch sizes has ended, and its reason is stored."""

    limit: BatchLimit
    path: Path


@dataclass(frozen=True)
class Waiting:
    """The next round waits until the machine is calm, ``left_seconds`` at most."""

    reason: str
    left_seconds: float


Outcome = Finished | Skipped | Failed
Event = Waiting | Scheduled | Started | Advanced | RoundStored | Exhausted | Swept | Outcome
OnEvent = Callable[[Event], None]


@dataclass(frozen=True)
class Assignment:
    """The plan of a run and the folder of its results, which are measured as ``hardware``.

    ``resume`` keeps the results of this very host and measures the rest. Each trial of a sweep may
    take ``memory_bytes`` of this host, None: all that is available. The run may take
    ``patience_seconds`` longer than planned, to wait for other programs and to repeat trials that
    are not precise.
    """

    catalogue: Catalogue
    plan: Plan
    hardware: str
    store: ResultStore
    resume: bool = False
    memory_bytes: int | None = None
    patience_seconds: float = 0.0


@dataclass(frozen=True)
class RunContext:
    """An assignment on the host ``fingerprint``, and the listener to its events.

    A trial may take ``memory_bytes`` of the host; None: no limit.
    """

    assignment: Assignment
    on_event: OnEvent
    fingerprint: str
    patience: Patience
    memory_bytes: int | None = None

    def stored(self, trial: Trial) -> Result | None:
        """The stored result of a trial; raises ResultError if this run must not replace it."""
        store, hardware = self.assignment.store, self.assignment.hardware
        return store.find(trial, hardware, self.fingerprint)

    def path_of(self, trial: Trial) -> Path:
        """The file of the trial's result."""
        assignment = self.assignment
        return assignment.store.path_of(trial, assignment.hardware, self.fingerprint)

    def rounds_done(self, trial: Trial) -> int:
        """Number of rounds that need not be measured again."""
        if not self.assignment.resume:
            return 0
        with contextlib.suppress(ResultError):
            result = self.stored(trial)
            return 0 if result is None else round_count(result.measurement)
        return 0
