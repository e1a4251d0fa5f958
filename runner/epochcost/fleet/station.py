"""A station measures cells on a target, one after the other: start, submit, follow, collect.

A cell whose machine was lost waits again. However a station ends, it ends its job, collects its
results and gives the machine back.
"""

from __future__ import annotations

import datetime as dt
import secrets
import threading
import time
from collections.abc import Callable, Generator
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from epochcost.fleet.cells import Cell, Intake, Queue
from epochcost.fleet.engine import Engine, JobState
from epochcost.fleet.ledger import Lease, Ledger, Tariff
from epochcost.fleet.shell import EngineError
from epochcost.results.records import Result
from epochcost.results.sidecars import BatchLimit, Payment
from epochcost.results.store import write_sidecar

POLL_SECONDS = 5.0
# A job's end on its machine and its answer to a poll may be late by this.
_GRACE_SECONDS = 60
_TRIES = 5
_PAUSE_SECONDS = 2.0
# After this number of failed cells in a row, the target itself is at fault.
_MOST_FAILURES = 3
Waits = Generator[float, None, None]


@dataclass(frozen=True)
class Launch:
    """The parts of a launch that its stations share.

    ``folder`` is for files before they are checked. ``options`` are the arguments of `epochcost
    run` for all cells. ``on_event`` gets a station, a cell's title, its new state and the reason.
    ``clock`` returns seconds since 1970; ``pause`` waits some seconds.
    """

    folder: Path
    intake: Intake
    options: tuple[str, ...]
    queue: Queue
    ledger: Ledger
    on_event: Callable[[str, str, str, str], None]
    clock: Callable[[], float] = time.time
    pause: Callable[[float], None] = time.sleep


@dataclass(eq=False)
class Station:
    """A machine of a target that measures cells, and the outcome of these cells.

    ``problem`` is the reason why it takes no more cells; empty if there is none. Stations of the
    same target share the lock ``starting``.
    """

    name: str
    launch: Launch
    tariff: Tariff
    engine: Engine
    starting: threading.Lock = field(default_factory=threading.Lock)
    done: int = 0
    failed: list[tuple[str, str]] = field(default_factory=list)
    problem: str = ""
    startup_seconds: list[float] = field(default_factory=list)
    _cell: Cell | None = None
    _lease: Lease | None = None
    _up: bool = False
    _requested: float | None = None
    _failures: int = 0

    def measure(self) -> Waits:
        """Measure cells of the queue; yields the seconds to wait before continuing the iterator.

        Closing the iterator ends the job and gives the machine back.
        """
        try:
            while not self.problem and (cell := (yield from self._next())):
                yield from self._measure(cell)
        except GeneratorExit:
            self.problem = "interrupted"
            raise
        except Exception as error:  # a fault of one station must not leave others' machines up
            self.problem = str(error) or repr(error)
        finally:
            self._leave()

    def end(self, lease: Lease) -> None:
        """End the job and the machine of a killed launch, and keep the results."""
        self._lease = lease
        self._leave()

    def _next(self) -> Generator[float, None, Cell | None]:
        """Take a cell and reserve its money; wait while other stations hold the money."""
        queue, ledger = self.launch.queue, self.launch.ledger
        while cell := queue.take(self.tariff.target):
            no_more = ledger.is_idle(self.launch.clock())
            if self._reserve(cell):
                self._cell = cell
                return cell
            queue.put_back(cell)
            self._give_back()
            if no_more:
                self.problem = "the cap does not allow another cell"
                return None
            yield POLL_SECONDS
        return None

    def _reserve(self, cell: Cell) -> bool:
        """Write the lease of a machine for a cell, if there is money for it."""
        target, now = self.tariff.target, self.launch.clock()
        since = self._lease.since if self._lease else now
        retries = target.retries - self.launch.queue.losses[cell.id]
        until = now + target.attempt_seconds
        most = self.tariff.most(retries, now - since)
        return self._write(Lease(target=target, since=since, until=until, reserved=most))

    def _write(self, lease: Lease | None, **changes: object) -> bool:
        """Write a changed lease; if only jobs are paid for (Slurm), payment starts now."""
        assert lease is not None, "a machine is reserved"
        now, target = self.launch.clock(), self.tariff.target
        if not target.held:
            changes |= {"since": now, "until": now + target.attempt_seconds}
        changed = lease.model_copy(update=changes)
        if self.launch.ledger.reserve(self.name, changed):
            self._lease = changed
            return True
        return False

    def _measure(self, cell: Cell) -> Waits:
        """Run a cell's job until it is done, failed or lost."""
        try:
            state = yield from self._run(cell)
        except EngineError as error:
            if not error.passing:
                raise
            state = JobState("lost", str(error))
        if state.state == "lost" and self._up:
            self._cancel()  # it may run on behind a broken connection
        self._say(cell, "collecting")
        reason = self._collect(cell)
        losses = self.launch.queue.losses
        if result := self.launch.intake.result_of(cell):
            self._pay(cell, result)
            self._end(cell)
        elif state.state == "lost" and losses[cell.id] < self.tariff.target.retries:
            losses[cell.id] += 1
            self._cell = None
            self.launch.queue.put_back(cell)
        else:
            words = filter(None, (state.reason, reason or self._last_line()))
            self._end(cell, ": ".join(words) or "it ended without a complete result")
        if state.state == "lost" or not self.tariff.target.held:
            self._give_back()

    def _run(self, cell: Cell) -> Generator[float, None, JobState]:
        """Submit a job and follow it to its end; returns its last state."""
        launch, target = self.launch, self.tariff.target
        self._requested = None
        if not self._up:
            self._requested = launch.clock() if target.held else None
            self._say(cell, "starting")
            with self.starting:
                self.engine.start()
            self._up = True
        job = f"{cell.id[:8]}-{secrets.token_hex(4)}"
        self._write(self._lease, job=job)
        arguments = ("--hardware", target.hardware, "--provider", target.provider)
        self.engine.submit(job, (*launch.options, *arguments, "--trial", cell.id))
        last = JobState("queued")
        self._say(cell, *last)
        patience = 60 * target.limit_minutes + _GRACE_SECONDS
        late = launch.clock() + patience
        while launch.clock() < late:
            yield POLL_SECONDS
            try:
                state = self.engine.poll(job)
            except EngineError as error:
                state = JobState(last.state if error.passing else "lost", str(error))
            if state.state not in ("queued", "starting", "running"):
                return state
            if state != last:
                self._say(cell, *state)
            if state.state == "queued" and not target.held:
                late = launch.clock() + patience
                self._write(self._lease)
            last = state
        return JobState("lost", last.reason or "it did not end at the limit of its time")

    def _cancel(self) -> None:
        """End the job, if there is one and the target answers."""
        if self._lease and self._lease.job:
            with suppress(EngineError):
                self.engine.cancel(self._lease.job)

    def _collect(self, cell: Cell | None) -> str:
        """Collect the files of a cell (None: all); returns why a file is missing or refused."""
        staged = (self.launch.folder / self.name).absolute()
        staged.mkdir(parents=True, exist_ok=True)
        reason = self._tried(lambda: self.engine.collect(staged))
        return self.launch.intake.take_in(staged, cell) or reason

    def _tried(self, call: Callable[[], None], *, at_all_costs: bool = False) -> str:
        """Call an engine, again if its error may be temporary; return its last error, or ""."""
        for number in range(_TRIES):
            try:
                call()
            except Exception as error:  # a fault of an engine must not leave its machine up
                reason = str(error) or repr(error)
                if not (at_all_costs or (isinstance(error, EngineError) and error.passing)):
                    break
                self.launch.pause(_PAUSE_SECONDS * 2**number)
            else:
                return ""
        return reason

    def _last_line(self) -> str:
        with suppress(EngineError):
            lines = self.engine.logs(self._lease.job if self._lease else "").splitlines()
            return next(filter(None, map(str.strip, reversed(lines))), "")
        return ""

    def _say(self, cell: Cell, state: str, reason: str = "") -> None:
        self.launch.on_event(self.name, cell.title, state, reason)

    def _end(self, cell: Cell, reason: str = "") -> None:
        """Note that the cell is done, or failed for a reason."""
        self._cell = None
        self._say(cell, "failed" if reason else "done", reason)
        self.done += not reason
        self._failures = self._failures + 1 if reason else 0
        if reason:
            self.failed.append((cell.title, reason))
        if self._failures == _MOST_FAILURES:
            self.problem = f"{_MOST_FAILURES} cells in a row failed, the last: {reason}"

    def _pay(self, cell: Cell, result: Result | BatchLimit) -> None:
        """Record the price paid for a result, and the start-up time of a machine just started."""
        tariff, target, now = self.tariff, self.tariff.target, self.launch.clock()
        assert self._lease is not None, "a result comes from a machine"
        startup: float | None = None
        if isinstance(result, Result) and self._requested:
            first_step = result.measurement.started_at.timestamp() - self._requested
            if 0 < first_step < now - self._requested:
                self.startup_seconds.append(startup := first_step)
        payment = Payment(
            payment_version=1,
            hardware=target.hardware,
            trial_id=cell.id,
            target=target.id,
            price=tariff.price.id,
            hourly=tariff.cost(3600),
            currency=tariff.price.currency,
            engine_price=tariff.is_quoted,
            paid_at=dt.datetime.fromtimestamp(now, dt.UTC),
            seconds=max(now - (self._lease.until - target.attempt_seconds), 1),
            startup_seconds=startup,
        )
        write_sidecar(self.launch.intake.results, payment)

    def _give_back(self) -> None:
        """End the machine, or on Slurm the job, and pay the bill of the lease."""
        lease, self._lease = self._lease, None
        if lease is None:
            return
        held, end = self.tariff.target.held, self.engine.tear_down
        if not held and lease.job:
            end = partial(self.engine.cancel, lease.job)
        if reason := self._tried(end, at_all_costs=True):
            raise EngineError(f"{self.name}: its machine may still be up: {reason}")
        self._up = self._up and not held
        paid_until = min(self.launch.clock(), lease.until)
        paid_seconds = paid_until - lease.since if held or lease.job else 0
        self.launch.ledger.settle(self.name, self.tariff.cost(paid_seconds))

    def _leave(self) -> None:
        """End the job, keep its results, and give the machine back."""
        cell, self._cell = self._cell, None
        try:
            if cell:
                self._say(cell, "collecting", "the launch ends early")
            if self._lease and self._lease.job and (cell or not self._up):
                self._cancel()
                self._collect(cell)
            if cell and self.launch.intake.result_of(cell):
                self._end(cell)
            elif cell:
                self.launch.queue.put_back(cell)
        except Exception as error:
            self.problem = str(error) or repr(error)
        finally:
            try:
                self._give_back()
            except EngineError as error:
                self.problem = str(error)
