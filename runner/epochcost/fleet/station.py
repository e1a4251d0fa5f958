"""A station measures cells on a target one by one: it runs a job and collects the results.

A cell whose machine is lost waits again. At its end, a station gives its machine back.
"""

from __future__ import annotations

import datetime as dt
import secrets
import threading
import time
from collections import Counter
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from epochcost.fleet.engine import Engine, JobState
from epochcost.fleet.intake import Intake
from epochcost.fleet.ledger import Lease, Ledger
from epochcost.fleet.shell import EngineError
from epochcost.plan.cell import Cell
from epochcost.results.records import Result
from epochcost.results.sidecars import BatchLimit, Payment
from epochcost.results.store import ID_DIGITS, write_sidecar
from epochcost.specs.target import Target

POLL_SECONDS = 5.0
# A job's end on its machine and its answer to a poll may be late by this.
_GRACE_SECONDS = 60
# Seconds between the tries of a call.
_PAUSES = (2, 4, 8, 16)
# After this number of failed cells in a row, the target itself is at fault.
_MOST_FAILURES = 3
Waits = Generator[float, None, None]


@dataclass(frozen=True)
class Launch:
    """The parts of a launch that its stations share.

    ``folder`` receives result files; ``intake`` copies valid ones into the project. ``options`` are
    for `epochcost run`. ``losses`` counts lost machines by cell id, if the cell waits again.
    """

    folder: Path
    intake: Intake
    options: tuple[str, ...]
    waiting: list[Cell]
    ledger: Ledger
    reach: Callable[[Target], Engine]
    log: Callable[[str], None]
    clock: Callable[[], float] = time.time
    pause: Callable[[float], None] = time.sleep
    losses: Counter[str] = field(default_factory=Counter)
    _taking: threading.Lock = field(default_factory=threading.Lock)

    def take(self, target: Target) -> Cell | None:
        """Remove and return the first waiting cell for a target's kind of machine, else None."""
        with self._taking:
            cell = next((cell for cell in self.waiting if cell.kind == target.kind), None)
            if cell:
                self.waiting.remove(cell)
            return cell


@dataclass(eq=False)
class Station:
    """A target's machine that measures cells; ``problem`` says why it takes no more, else empty."""

    name: str
    launch: Launch
    engine: Engine
    done: int = 0
    failed: list[str] = field(default_factory=list)
    problem: str = ""
    startup_seconds: list[float] = field(default_factory=list)
    _lease: Lease | None = None
    _failures: int = 0

    def measure(self) -> Waits:
        """Measure waiting cells; yield the seconds that the caller waits before each next step.

        Closing the iterator ends the job and gives the machine back.
        """
        launch = self.launch
        with self._give_back_afterwards():
            while not self.problem and (cell := launch.take(self.engine.target)):
                if not (self.engine.held or self.engine.is_up):
                    # No money is reserved for an installation, because only jobs are billed.
                    self._say(cell, "starting")
                    self.problem = self._error_after_tries(self._start_target_once)
                no_more = launch.ledger.is_idle(launch.clock())
                job = f"{cell.id[:ID_DIGITS]}-{secrets.token_hex(4)}"
                if not self.problem and self._reserve_money(cell, job):
                    yield from self._measure_cell(cell, job)
                    continue
                launch.waiting.insert(0, cell)
                if no_more or self.problem:
                    self.problem = self.problem or "the cap does not allow another trial"
                else:  # other stations have reserved too much money
                    self._give_back_machine()
                    yield POLL_SECONDS

    def end(self, lease: Lease) -> None:
        """End the job of a killed launch's ``lease``, collect results, give the machine back."""
        self._lease = lease
        with self._give_back_afterwards():
            with suppress(EngineError):
                self.engine.cancel(lease.job)
            self._collect_results(None)

    @contextmanager
    def _give_back_afterwards(self) -> Iterator[None]:
        """Catch an error of the ``with`` block as ``self.problem``; then give the machine back."""
        try:
            yield
        except GeneratorExit:
            self.problem = self.problem or "interrupted"
            raise
        except Exception as error:  # a fault of one station must not leave others' machines up
            self.problem = self.problem or str(error) or repr(error)
        finally:
            self._give_back_machine()

    def _start_target_once(self) -> None:
        with self.engine.starting:
            if not self.engine.is_up:
                self.engine.start()
                self.engine.is_up = True

    def _reserve_money(self, cell: Cell, job: str) -> bool:
        """Reserve the highest possible cost of measuring ``cell``; False if too little is left."""
        target, now = self.engine.target, self.launch.clock()
        since = self._lease.since if self._lease and self.engine.held else now
        lease = Lease(
            target=target,
            job=job,
            since=since,
            until=now + target.attempt_seconds,
            reserved=self.engine.tariff.most(self.launch.losses[cell.id], now - since),
        )
        if allowed := self.launch.ledger.reserve(self.name, lease):
            self._lease = lease
        return allowed

    def _measure_cell(self, cell: Cell, job: str) -> Waits:
        state: JobState | None = None
        try:
            state = yield from self._run_job(cell, job)
        except EngineError as error:
            if not error.passing:
                raise
            state = JobState("lost", str(error))
        finally:
            self._record_cell_outcome(cell, job, state)

    def _run_job(self, cell: Cell, job: str) -> Generator[float, None, JobState]:
        launch, engine, target = self.launch, self.engine, self.engine.target
        if not engine.is_up:
            self._say(cell, "starting")
            self._start_target_once()
        arguments = ("--hardware", target.hardware, "--provider", target.provider)
        engine.submit(job, (*launch.options, *arguments, "--trial", cell.id))
        last = JobState("queued")
        self._say(cell, *last)
        patience = engine.limit_seconds + _GRACE_SECONDS
        late = launch.clock() + patience
        while launch.clock() < late:
            yield POLL_SECONDS
            try:
                state = engine.poll(job)
            except EngineError as error:
                state = JobState(last.state if error.passing else "lost", str(error))
            else:
                if state.state == "queued" and not engine.held:
                    # Waiting is free, so the lease of a node begins now.
                    self._reserve_money(cell, job)
                    late = launch.clock() + patience
            if state.state not in ("queued", "starting", "running"):
                return state
            if state != last:
                self._say(cell, *state)
            last = state
        return JobState("lost", last.reason or "it did not end at the limit of its time")

    def _record_cell_outcome(self, cell: Cell, job: str, state: JobState | None) -> None:
        """Record a cell as measured or failed, or let the cell wait to be measured again.

        A cell without a result waits again if its machine was lost and a retry is left, or if
        ``state`` is None, because the launch or an error ended the station before the job.
        """
        launch = self.launch
        is_lost = state is None or state.state == "lost"
        fault = ""
        if self.engine.is_up:
            with suppress(EngineError):
                if is_lost:  # it may run on behind a broken connection
                    self.engine.cancel(job)
            self._say(cell, "collecting")
            fault = self._collect_results(cell)
        if result := launch.intake.result_of(cell):
            self._record_payment(cell, result)
            self._say(cell, "done")
            self.done, self._failures = self.done + 1, 0
        elif state is None or (is_lost and launch.losses[cell.id] < self.engine.target.retries):
            launch.losses[cell.id] += state is not None
            launch.waiting.insert(0, cell)
        else:
            reasons = filter(None, (state.reason, fault or self._last_line(job)))
            self._fail(cell, ": ".join(reasons) or "it ended without a complete result")
        if is_lost or not self.engine.held:
            self._give_back_machine()

    def _collect_results(self, cell: Cell | None) -> str:
        """Collect results of ``cell``, or of all cells if None; return the first problem, or ""."""
        staged = (self.launch.folder / self.name).absolute()
        reason = self._error_after_tries(partial(self.engine.collect, staged))
        return self.launch.intake.take_in(staged, cell) or reason

    def _error_after_tries(self, call: Callable[[], None], *, always: bool = False) -> str:
        """Try a call, again after each of ``_PAUSES``; return "", or the text of the last error.

        Unless ``always``, only a temporary error leads to another call.
        """
        for pause in (*_PAUSES, None):
            try:
                call()
                return ""
            except Exception as error:  # a fault of an engine must not leave its machine up
                reason = str(error) or repr(error)
                passing = always or (isinstance(error, EngineError) and error.passing)
            if pause is None or not passing:
                break
            self.launch.pause(pause)
        return reason

    def _last_line(self, job: str) -> str:
        with suppress(EngineError):
            return self.engine.logs(job).strip().rpartition("\n")[2]
        return ""

    def _say(self, cell: Cell, state: str, reason: str = "") -> None:
        said = f"{state}: {reason}" if reason else state
        self.launch.log(f"{self.name}: {cell.title}: {said}")

    def _fail(self, cell: Cell, reason: str) -> None:
        self._say(cell, "failed", reason)
        self.failed.append(f"{cell.title}: {reason}")
        self._failures += 1
        if self._failures == _MOST_FAILURES:
            self.problem = f"{_MOST_FAILURES} trials in a row failed, the last: {reason}"

    def _record_payment(self, cell: Cell, result: Result | BatchLimit) -> None:
        tariff, target, now = self.engine.tariff, self.engine.target, self.launch.clock()
        lease, startup = self._lease, None
        assert lease is not None, "a job has a machine"
        begun = lease.until - target.attempt_seconds
        # Only the first job of a lease waits for the start of its machine.
        if self.engine.held and begun - lease.since < 1 and isinstance(result, Result):
            first_step = result.measurement.started_at.timestamp() - begun
            if 0 < first_step < now - begun:
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
            seconds=max(now - begun, 1),
            startup_seconds=startup,
        )
        write_sidecar(self.launch.intake.results, payment)

    def _give_back_machine(self) -> None:
        lease, self._lease = self._lease, None
        # Each try counts, because the machine costs money until its end.
        if lease and (reason := self._error_after_tries(partial(self._settle, lease), always=True)):
            self.problem = f"its machine may still be up: {reason}"

    def _settle(self, lease: Lease) -> None:
        self.engine.tear_down(lease.job)
        if self.engine.held:
            self.engine.is_up = False
        seconds = min(self.launch.clock(), lease.until) - lease.since
        self.launch.ledger.settle(self.name, self.engine.tariff.cost(seconds))
