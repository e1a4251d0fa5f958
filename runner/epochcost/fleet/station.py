"""A station measures cells on a target, one after the other: start, submit, follow, collect.

A cell whose machine was lost is repeated. Every way out of a station ends its job, collects its
results and gives the machine back.
"""

from __future__ import annotations

import datetime as dt
import secrets
import threading
from collections.abc import Callable, Generator
from contextlib import suppress
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Literal

from epochcost.errors import EpochcostError
from epochcost.fleet.cells import Cell, Queue
from epochcost.fleet.collection import Intake
from epochcost.fleet.engine import Command, Engine, EngineError, JobState, State
from epochcost.fleet.ledger import Job, Lease, Ledger
from epochcost.fleet.tariff import Tariff
from epochcost.results.records import Result
from epochcost.results.sidecars import BatchLimit, Payment

POLL_SECONDS = 5.0
# A job's end on its machine and its answer to a poll may be late by this.
_GRACE_SECONDS = 60
_TRIES = 5
_PAUSE_SECONDS = 2.0
# After so many failed cells in a row, the target itself is at fault.
_MOST_FAILURES = 3
CellState = State | Literal["collecting", "done"]
Waits = Generator[float, None, None]


@dataclass(frozen=True, slots=True)
class Moved:
    """Event: a cell on a target has a new state; a failed cell has a reason."""

    target: str
    cell: str
    state: CellState
    reason: str = ""


@dataclass(frozen=True)
class Launch:
    """The parts of a launch that its stations share.

    ``folder`` is for files before they are checked. ``options`` are the arguments of `epochcost
    run` for all cells. ``clock`` returns seconds since 1970; ``pause`` waits some seconds.
    """

    folder: Path
    intake: Intake
    options: tuple[str, ...]
    queue: Queue
    ledger: Ledger
    on_event: Callable[[Moved], None]
    clock: Callable[[], float]
    pause: Callable[[float], None]


@dataclass(eq=False)
class Station:
    """A machine of a target at work, and the outcome of its cells.

    ``problem`` is the reason why it takes no more cells; empty if there is none. Stations of the
    same target share the lock ``starting``. On a machine with several targets, a station waits for
    the end of the station ``after`` which it comes.
    """

    name: str
    launch: Launch
    tariff: Tariff
    engine: Engine
    starting: threading.Lock = field(default_factory=threading.Lock)
    after: Station | None = None
    has_ended: bool = False
    done: int = 0
    failed: list[tuple[str, str]] = field(default_factory=list)
    problem: str = ""
    left_behind: bool = False
    startup_seconds: list[float] = field(default_factory=list)
    _cell: Cell | None = None
    _lease: Lease | None = None
    _up: bool = False
    _requested: float | None = None
    _paid_since: float | None = None
    _failures: int = 0

    def measure(self, left: Lease | None = None, *, only_end: bool = False) -> Waits:
        """Measure the cells of the queue; yields seconds to wait before the next look.

        ``left`` is the lease of a killed launch, which is taken over; with ``only_end``, its job
        is ended instead, and no cell is measured. Closing the iterator ends everything.
        """
        try:
            if left is not None:
                yield from self._take_over(left, only_end=only_end)
            while not only_end and self.after and not self.after.has_ended:
                yield POLL_SECONDS
            while not only_end and not self.problem:
                yield from self._next()
                if self._cell is None:
                    return
                yield from self._measure(self._cell)
        except EpochcostError as error:
            self.problem = str(error)
        finally:
            try:
                self._abandon()
            finally:
                self.has_ended = True

    def _next(self) -> Waits:
        """Take a cell and reserve its money, and wait while others hold cells or money."""
        queue, target = self.launch.queue, self.tariff.target
        while True:
            alone = self.launch.ledger.is_idle
            cell = queue.take(target)
            if cell and self._reserve(cell):
                self._cell = cell
                return
            if cell:
                queue.finish(cell, put_back=True)
            self._give_back()
            if cell and alone:
                self.problem = "the cap does not allow another cell"
            if self.problem or queue.is_over(target):
                return
            yield POLL_SECONDS

    def _reserve(self, cell: Cell) -> bool:
        """Write the lease of a machine for a cell, if there is money for it."""
        now = self.launch.clock()
        since = now if self._lease is None else self._lease.since
        most = self.tariff.most(self.tariff.target.retries, now - since)
        lease = self._new_lease(cell.id, 0, since, most)
        if not self.launch.ledger.reserve(self.name, lease):
            return False
        self._lease = lease
        return True

    def _new_lease(self, cell: str, attempt: int, since: float, reserved: Decimal) -> Lease:
        target, now = self.tariff.target, self.launch.clock()
        arguments = (*self.launch.options, "--hardware", target.hardware)
        arguments += ("--provider", target.provider, "--trial", cell)
        name = f"{cell[:8]}-{secrets.token_hex(4)}"
        job = Job(cell=cell, attempt=attempt, name=name, arguments=arguments, since=now)
        until = now + target.attempt_seconds
        return Lease(target=target, since=since, until=until, reserved=reserved, job=job)

    def _measure(self, cell: Cell) -> Waits:
        """Run a cell's job, again after its machine was lost, until it is done or failed."""
        while lease := self._lease:
            try:
                state = yield from self._run(cell, lease)
            except EngineError as error:
                if not error.passing:
                    raise
                state = JobState("lost", str(error))
            if state.state == "lost" and self._up:
                self._cancel()  # it may run on behind a broken connection
            self._say(cell, "collecting")
            reason = self._collect(cell)
            left = self.tariff.target.retries - lease.job.attempt
            if result := self.launch.intake.result_of(cell):
                self._pay(lease.job, result)
                self._end(cell)
            elif state.state == "lost" and left:
                most = self.tariff.most(left - 1)
                now = self.launch.clock()
                self._give_back(self._new_lease(cell.id, lease.job.attempt + 1, now, most))
                continue
            else:
                reason = state.reason or reason or self._last_line()
                self._end(cell, reason or "it ended without a complete result")
            if state.state == "lost" or not self._held:
                self._give_back()
            return

    def _run(self, cell: Cell, lease: Lease) -> Generator[float, None, JobState]:
        """Submit a job and follow it to its end; returns its last state."""
        if not self._up:
            self._requested = self.launch.clock()
            self._say(cell, "starting")
            with self.starting:
                self.engine.start()
            self._up = True
        self._paid_since = self._paid_since or self.launch.clock()
        job = self._submit(lease.job)
        self._lease = lease.model_copy(update={"job": job})
        self.launch.ledger.reserve(self.name, self._lease)
        self._say(cell, "queued")
        last, late = JobState("queued"), self.launch.clock() + self._limit_seconds + _GRACE_SECONDS
        while self.launch.clock() < late or (last.state == "queued" and not self._held):
            yield POLL_SECONDS
            state = self._poll(job, last)
            if state.state not in ("queued", "starting", "running"):
                return state
            if state != last:
                self._say(cell, state.state, state.reason)
            if last.state == "queued" != state.state and not self._held:
                late = self.launch.clock() + self._limit_seconds + _GRACE_SECONDS
            last = state
        if last.reason:
            return JobState("lost", last.reason)
        self._cancel()
        return JobState("failed", "it did not end at the limit of its time")

    @property
    def _held(self) -> bool:
        return self.tariff.target.engine.held

    @property
    def _limit_seconds(self) -> int:
        return 60 * self.tariff.target.limit_minutes

    def _submit(self, job: Job) -> Job:
        identifier = self.engine.submit(Command(job.name, job.arguments, self._limit_seconds))
        return job.model_copy(update={"id": identifier})

    def _poll(self, job: Job, last: JobState) -> JobState:
        """The state of a job; while the target does not answer, the last state with the reason."""
        now = self.launch.clock()
        try:
            (state,) = self.engine.poll([job.id])
        except EngineError as error:
            return JobState(last.state if error.passing else "lost", str(error))
        if state.state == "queued":
            self._paid_since = now
        return state

    def _end_job(self) -> None:
        if self._lease is not None and self._paid_since is not None:
            job = self._lease.job
            self.engine.cancel((job if job.id else self._submit(job)).id)

    def _cancel(self) -> None:
        """End the job if the target answers."""
        with suppress(EngineError):
            self._end_job()

    def _collect(self, cell: Cell | None) -> str | None:
        """Collect the files of a cell (None: all); returns why a file is missing or refused."""
        staged = self.launch.folder / self.tariff.target.id
        staged.mkdir(parents=True, exist_ok=True)
        reason = self._tried(lambda: self.engine.collect(staged))
        faults = self.launch.intake.take_in(staged, self.tariff.target.hardware, cell)
        return next(iter(faults), reason)

    def _tried(self, call: Callable[[], None], *, at_all_costs: bool = False) -> str | None:
        """Call an engine, again while its errors may pass; returns the reason if it fails."""
        for number in range(_TRIES):
            try:
                call()
            except Exception as error:  # a fault of an engine must not leave its machine up
                reason = str(error) or type(error).__name__
                if not (at_all_costs or (isinstance(error, EngineError) and error.passing)):
                    break
                self.launch.pause(_PAUSE_SECONDS * 2**number)
            else:
                return None
        return reason

    def _last_line(self) -> str:
        """The last line that the job printed."""
        with suppress(EngineError):
            lines = self.engine.logs(self._lease.job.id if self._lease else "").splitlines()
            return next(filter(None, map(str.strip, reversed(lines))), "")
        return ""

    def _say(self, cell: Cell, state: CellState, reason: str = "") -> None:
        self.launch.on_event(Moved(self.name, cell.title, state, reason))

    def _end(self, cell: Cell, reason: str = "") -> None:
        """Note that the cell is done, or failed for a reason."""
        self._cell = None
        self.launch.queue.finish(cell)
        self._say(cell, "failed" if reason else "done", reason)
        self.done += not reason
        self._failures = self._failures + 1 if reason else 0
        if reason:
            self.failed.append((cell.title, reason))
        if self._failures == _MOST_FAILURES:
            self.problem = f"{_MOST_FAILURES} cells in a row failed, the last: {reason}"

    def _pay(self, job: Job, result: Result | BatchLimit) -> None:
        """Record the price paid for a result, and the start-up of a machine that was requested."""
        tariff, now, startup = self.tariff, self.launch.clock(), None
        if self._requested is not None and isinstance(result, Result):
            first_step = result.measurement.started_at.timestamp() - self._requested
            startup = first_step if 0 < first_step < now - self._requested else None
            self.startup_seconds += [] if startup is None else [startup]
        self._requested = None
        payment = Payment(
            payment_version=1,
            hardware=tariff.target.hardware,
            trial_id=job.cell,
            target=tariff.target.id,
            price=tariff.price.id,
            hourly=tariff.cost(3600),
            currency=tariff.price.currency,
            engine_price=tariff.is_quoted,
            paid_at=dt.datetime.fromtimestamp(now, dt.UTC),
            seconds=max(now - job.since, 1),
            startup_seconds=startup,
        )
        self.launch.intake.record(payment)

    def _give_back(self, following: Lease | None = None) -> None:
        """End the lease and pay it; if the machine stays up, its lease stays in the ledger.

        The ``following`` lease keeps its money reserved.
        """
        lease = self._lease
        if lease is None:
            return
        end = self.engine.tear_down if self._held else self._end_job
        reason = self._tried(end, at_all_costs=True)
        now, since = self.launch.clock(), self._paid_since
        self._lease, self._up, self._paid_since = None, self._up and not self._held, None
        if reason is not None:
            self.left_behind = True
            self.launch.ledger.note_stuck(self.name)
            raise EngineError(f"{self.name}: its machine may still be up: {reason}")
        if self._held:
            bill = self.tariff.cost(min(now, lease.until) - lease.since)
        else:
            bill = min(self.tariff.cost(now - since if since else 0), self.tariff.most(0))
        self.launch.ledger.settle(self.name, bill, following)
        self._lease = following

    def _take_over(self, lease: Lease, *, only_end: bool) -> Waits:
        """Continue the job of a killed launch if it is wanted and may go on, else end it."""
        self._lease, self._paid_since = lease, lease.job.since
        cell = None if only_end else self.launch.queue.take(lease.target, lease.job.cell)
        if cell and self._may_go_on(lease):
            self._cell = cell
            yield from self._measure(cell)
            return
        if cell:
            self.launch.queue.finish(cell, put_back=True)
        self._cancel()
        self._collect(None)
        self._give_back()

    def _may_go_on(self, lease: Lease) -> bool:
        """Reserve the money for a job of a killed launch; false if there is not enough.

        The machine may have ended and be started again, so its time so far is paid now.
        """
        now, target = self.launch.clock(), lease.target
        if not self._held:
            return True
        bill = self.tariff.cost(now - lease.since)
        most = self.tariff.most(target.retries - lease.job.attempt)
        longer = {"since": now, "until": now + target.attempt_seconds}
        renewed = lease.model_copy(update={**longer, "reserved": bill + most})
        if now > lease.until or not self.launch.ledger.reserve(self.name, renewed):
            return False
        self._lease = renewed.model_copy(update={"reserved": most})
        self.launch.ledger.settle(self.name, bill, self._lease)
        return True

    def _abandon(self) -> None:
        """End the job, keep its results, and give the machine back."""
        cell = self._cell
        try:
            if cell and self._up:
                self._say(cell, "collecting", "the launch ends early")
                self._cancel()
                self._collect(cell)
        finally:
            if cell and self.launch.intake.result_of(cell):
                self._end(cell)
            elif cell:
                self.launch.queue.finish(cell, put_back=True)
            with suppress(EngineError):
                self._give_back()
