"""The work of a run (its assignment), and the events that the run reports."""

from __future__ import annotations

import contextlib
import datetime as dt
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from epochcost.errors import EpochcostError, ResultError
from epochcost.execute.patience import Patience
from epochcost.measure.job import Progress
from epochcost.plan.make import Plan
from epochcost.plan.rounds import Visit
from epochcost.plan.trial import Trial
from epochcost.results.checks import Claim, first_fault
from epochcost.results.records import Result
from epochcost.results.rounds import round_count
from epochcost.results.sidecars import BatchLimit
from epochcost.results.store import ResultStore
from epochcost.specs.catalogue import Catalogue


@dataclass(frozen=True)
class Scheduled:
    """Event: the run will next measure the rounds ``visits``, one round for each visit.

    For rounds added for precision, ``extra_seconds`` is the time left beyond the plan, else None.
    """

    visits: tuple[Visit, ...]
    extra_seconds: float | None = None


@dataclass(frozen=True)
class Started:
    """Event: round ``round`` of a trial's ``rounds`` begins, and the trial is being built.

    ``number`` is the round's position, from 1, among the ``total`` scheduled rounds, including
    skipped ones. In a sweep, both are the number of batch sizes tried so far.
    """

    trial: Trial
    number: int
    total: int
    round: int = 1
    rounds: int = 1


@dataclass(frozen=True)
class Advanced:
    """Event: the worker of a trial has reported its progress."""

    trial: Trial
    progress: Progress


@dataclass(frozen=True)
class _Stored:
    trial: Trial
    result: Result


class RoundStored(_Stored):
    """Event: a round of the trial is measured and stored, and more rounds follow."""


class Finished(_Stored):
    """Event: all rounds of the trial are measured and stored."""


class Skipped(_Stored):
    """Event: the trial is skipped, since this host already has a result of the trial."""


@dataclass(frozen=True)
class Failed:
    """Event: the trial failed, with ``rounds_kept`` rounds stored; the run continues."""

    trial: Trial
    error: EpochcostError
    rounds_kept: int = 0


@dataclass(frozen=True)
class Exhausted:
    """Event: a batch size of a sweep ran out of memory; this is not a failure of the run."""

    trial: Trial
    error: EpochcostError


@dataclass(frozen=True)
class Swept:
    """Event: a sweep over batch sizes has ended; the stored record ``limit`` says why."""

    limit: BatchLimit


@dataclass(frozen=True)
class Waiting:
    """Event: a round waits until other programs use less CPU, for at most ``left_seconds``."""

    reason: str
    left_seconds: float


Outcome = Finished | Skipped | Failed
Event = Waiting | Scheduled | Started | Advanced | RoundStored | Exhausted | Swept | Outcome
OnEvent = Callable[[Event], None]


@dataclass(frozen=True)
class Assignment:
    """The work of a run: a plan, the machine's id (``hardware``) and the store for results.

    If ``resume``, the run keeps valid rounds that this host stored earlier. The run may exceed the
    planned time by ``patience_seconds``, to wait for other programs and to add rounds.
    """

    catalogue: Catalogue
    plan: Plan
    hardware: str
    store: ResultStore
    resume: bool = False
    patience_seconds: float = 0.0


@dataclass(frozen=True)
class RunContext:
    """The assignment of a run, its host, and the function that receives its events.

    ``fingerprint`` is a hash of the host's hardware. ``spec_files`` has digests of the specs as the
    run began. ``memory_bytes`` limits a trial's memory on the host; None means no limit.
    """

    assignment: Assignment
    on_event: OnEvent
    fingerprint: str
    patience: Patience
    spec_files: Mapping[str, str]
    memory_bytes: int | None = None

    def stored(self, trial: Trial) -> Result | None:
        """The stored result of a trial; None if no result is stored.

        Raises ResultError if a newer version of epochcost wrote the stored result.
        """
        store, hardware = self.assignment.store, self.assignment.hardware
        return store.find(trial, hardware, self.fingerprint)

    def resumed(self, trial: Trial) -> Result | None:
        """As ``stored``, but None if a check of `results.checks` finds a fault in the result."""
        result = self.stored(trial)
        if result is None:
            return None
        claim = Claim(result, self.assignment.catalogue, dt.datetime.now(dt.UTC))
        return result if first_fault(claim) is None else None

    def rounds_done(self, trial: Trial) -> int:
        """Number of a trial's rounds that are stored and need not be measured again."""
        if not self.assignment.resume:
            return 0
        with contextlib.suppress(ResultError):
            result = self.resumed(trial)
            return 0 if result is None else round_count(result.measurement)
        return 0
