"""A station measures cells on one target: start, submit, follow, collect and give back.

One cell at a time runs on a machine. A cell whose machine was lost is repeated. Every way out of a
station ends its jobs, collects their results and gives the machine back.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Generator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Literal

from epochcost.errors import EpochcostError
from epochcost.fleet.budget import Budget, Tariff
from epochcost.fleet.cells import Cell, Queue
from epochcost.fleet.collection import EVERYTHING, Intake
from epochcost.fleet.engine import Command, Engine, EngineError, JobState
from epochcost.fleet.ledger import FOLDER, Job, Lease, Ledger
from epochcost.specs.catalogue import Catalogue
from epochcost.specs.target import Target

POLL_SECONDS = 10.0
# A job's end on its machine and its answer to a poll may be late by this.
_GRACE_SECONDS = 60
_TRIES = 5
_PAUSE_SECONDS = 2.0
# After so many failed cells in a row, the target itself is at fault.
_MOST_FAILURES = 3
CellState = Literal["queued", "starting", "running", "collecting", "done", "failed"]


@dataclass(frozen=True, slots=True)
class Moved:
    """Event: a cell on a target has a new state, or is failed for a reason."""

    target: str
    cell: str
    state: CellState
    reason: str = ""


@dataclass(frozen=True)
class Launch:
    """The parts of a launch that its stations share.

    ``options`` are the arguments of `epochcost run` that are equal for all cells. ``clock`` returns
    seconds since 1970; ``pause`` waits some seconds.
    """

    catalogue: Catalogue
    intake: Intake
    options: tuple[str, ...]
    queue: Queue
    budget: Budget
    ledger: Ledger
    on_event: Callable[[Moved], None]
    clock: Callable[[], float]
    pause: Callable[[float], None]

    def staging(self, target: str) -> Path:
        """The folder for files that a target's engine collects, before they are checked."""
        folder = self.catalogue.root.absolute() / FOLDER / target
        folder.mkdir(parents=True, exist_ok=True)
        return folder


@dataclass
class _Running:
    cell: Cell
    job: Job
    submitted: float
    paid_since: float | None = None
    state: str = "queued"
    running_since: float | None = None


@dataclass(eq=False)
class Station:
    """A target at work: its engine, its lease of a machine, and what became of its cells.

    ``problem`` is the reason why the target takes no more cells; empty if there is none.
    """

    launch: Launch
    tariff: Tariff
    engine: Engine
    done: int = 0
    failed: list[tuple[str, str]] = field(default_factory=list)
    problem: str = ""
    left_behind: bool = False
    _lease: Lease | None = None
    _up: bool = False
    _jobs: dict[str, _Running] = field(default_factory=dict)
    _failures_in_a_row: int = 0

    def measure(
        self, left: Lease | None = None, *, only_end: bool = False
    ) -> Generator[float, None, None]:
        """Measure the cells of the queue; yields seconds to wait before the next look.

        ``left`` is the lease of a killed launch, which is taken over; with ``only_end``, its jobs
        are ended instead, and no cell is measured. Closing the iterator ends everything.
        """
        queue, budget = self.launch.queue, self.launch.budget
        try:
            if left is not None:
                self._take_over(left, only_end=only_end)
            while not only_end:
                nothing_reserved = budget.idle
                self._fill()
                if self._jobs:
                    yield POLL_SECONDS
                    self._follow()
                    continue
                self._give_back()
                if self.problem or queue.is_over(self._target):
                    return
                if nothing_reserved:
                    self.problem = "the cap does not allow another cell"
                    return
                yield POLL_SECONDS
        except EpochcostError as error:
            self.problem = str(error)
        finally:
            self._abandon()

    @property
    def _target(self) -> Target:
        return self.tariff.target

    def _say(self, cell: Cell, state: CellState, reason: str = "") -> None:
        self.launch.on_event(Moved(self._target.id, cell.title, state, reason))

    def _purpose(self, cell: str) -> str:
        """The name of a reservation: the machine, or the cell if each job is paid alone."""
        return self._target.id if self._target.engine.held else f"{self._target.id} {cell}"

    def _reserve(self, cell: Cell, retries: int) -> bool:
        held = self._lease is not None and self._target.engine.held
        up_seconds = self.launch.clock() - self._lease.since if self._lease and held else 0
        most = self.tariff.most(retries, up_seconds)
        return self.launch.budget.reserve(self._purpose(cell.id), most)

    def _fill(self) -> None:
        """Start cells until the target is busy, the queue is empty or the money is reserved."""
        queue = self.launch.queue
        while len(self._jobs) < self._target.engine.jobs and not self.problem:
            cell = queue.take(self._target)
            if cell is None:
                return
            if self._is_done(cell):  # a killed launch had left its result on the target
                queue.finish(cell)
                self.done += 1
            elif not self._reserve(cell, self._target.retries):
                queue.put_back(cell)
                return
            else:
                self._begin(cell, 0)

    def _begin(self, cell: Cell, attempt: int) -> None:
        target = self._target
        arguments = (*self.launch.options, "--hardware", target.hardware)
        arguments += ("--provider", target.provider, "--trial", cell.id)
        name = f"{cell.id[:8]}-{secrets.token_hex(4)}"
        now = self.launch.clock()
        job = Job(cell=cell.id, attempt=attempt, name=name, arguments=arguments, since=now)
        self._run(_Running(cell, job, now))

    def _run(self, running: _Running) -> None:
        """Write a job down, then start its machine if needed, and submit it."""
        cell, job = running.cell, running.job
        self._jobs[job.name] = running
        self._write()
        try:
            if not self._up:
                self._say(cell, "starting")
                self.engine.start()
                self._up = True
            identifier = self.engine.submit(self._command(job))
        except EngineError as error:
            self._lose(running, str(error), final=not error.passing)
            return
        running.job = job.model_copy(update={"id": identifier})
        running.submitted = self.launch.clock()
        self._say(cell, "queued")
        self._write()

    def _write(self) -> None:
        """Write the machine and its jobs to the ledger."""
        now = self.launch.clock()
        since = now if self._lease is None else self._lease.since
        jobs = tuple(running.job for running in self._jobs.values())
        until = now + self._target.attempt_seconds
        self._lease = Lease(target=self._target, since=since, until=until, jobs=jobs)
        self.launch.ledger.write(self._lease)

    def _follow(self) -> None:
        """Ask for the states of all jobs, and act on them."""
        jobs = list(self._jobs.values())
        try:
            states = self.engine.poll([running.job.id for running in jobs])
        except EngineError as error:
            for running in jobs:
                if not error.passing or self._is_late(running):
                    self._lose(running, str(error))
                elif running.state != "unreachable":
                    running.state = "unreachable"
                    self._say(running.cell, "running", str(error))
            return
        for running, state in zip(jobs, states, strict=True):
            self._judge(running, state)

    def _is_late(self, running: _Running) -> bool:
        since = running.running_since
        if since is None and self._target.engine.held:
            since = running.submitted
        late = 60 * self._target.limit_minutes + _GRACE_SECONDS
        return since is not None and self.launch.clock() > since + late

    def _judge(self, running: _Running, state: JobState) -> None:
        if state.state in ("queued", "starting", "running"):
            if state.state == "running" and running.running_since is None:
                running.running_since = self.launch.clock()
                running.paid_since = running.paid_since or running.running_since
            if state.state != running.state:
                running.state = state.state
                self._say(running.cell, state.state)
            if not self._is_late(running):
                return
            self._cancel(running.job)
            state = JobState("failed", "it did not end at the limit of its time")
        self._say(running.cell, "collecting")
        reason = self._collect([running.cell])
        if self._is_done(running.cell):
            self._end(running)
        elif state.state == "lost":
            self._lose(running, state.reason or "the machine was lost")
        else:
            reason = reason or state.reason or self._last_line(running)
            self._end(running, reason or "it ended without a complete result")

    def _collect(self, cells: Sequence[Cell | None]) -> str | None:
        """Collect the files of cells (None: all files) that pass the checks.

        Returns the first reason why a file is missing or refused.
        """
        launch = self.launch
        staged = launch.staging(self._target.id)
        reasons = [self._tried(lambda: self.engine.collect(staged))]
        for cell in cells:
            patterns = cell.files if cell else EVERYTHING
            reasons += launch.intake.take_in(staged, self._target.hardware, patterns)
        return next(filter(None, reasons), None)

    def _is_done(self, cell: Cell) -> bool:
        return self.launch.intake.is_done(cell)

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

    def _cancel(self, job: Job) -> None:
        with suppress(EngineError):
            self.engine.cancel(job.id or self.engine.submit(self._command(job)))

    def _command(self, job: Job) -> Command:
        return Command(job.name, job.arguments, 60 * self._target.limit_minutes)

    def _last_line(self, running: _Running) -> str:
        with suppress(EngineError):
            lines = self.engine.logs(running.job.id).split("\n")
            return next((line.strip() for line in reversed(lines) if line.strip()), "")
        return ""

    def _end(self, running: _Running, reason: str = "") -> None:
        """Note that a cell is done, or failed for a reason."""
        del self._jobs[running.job.name]
        self._settle_job(running)
        self.launch.queue.finish(running.cell)
        self._say(running.cell, "failed" if reason else "done", reason)
        if not reason:
            self.done += 1
            self._failures_in_a_row = 0
            return
        self.failed.append((running.cell.title, reason))
        self._failures_in_a_row += 1
        if self._failures_in_a_row >= _MOST_FAILURES:
            self.problem = f"{_MOST_FAILURES} cells in a row failed, the last: {reason}"

    def _lose(self, running: _Running, reason: str, *, final: bool = False) -> None:
        """Give up a machine, and repeat its cell on a new one if its retries allow.

        After a ``final`` error, the target takes no more cells, and others may measure the cell.
        """
        cell, attempt = running.cell, running.job.attempt
        retries = 0 if final else self._target.retries - attempt
        rest = self.tariff.attempt * retries
        if not (final or retries):
            self._end(running, reason)
            if self._target.engine.held:
                self._give_back()
            return
        del self._jobs[running.job.name]
        if self._target.engine.held:
            self._give_back(rest)
        else:
            self._settle_job(running, rest)
        if not final and not self.problem:
            self._begin(cell, attempt + 1)
            return
        self.problem = self.problem or reason
        self.launch.queue.put_back(cell)
        self.launch.budget.settle(self._purpose(cell.id), self._target.id, Decimal(0))

    def _settle_job(self, running: _Running, rest: Decimal = Decimal(0)) -> None:
        self._settle(running.cell.id, running.paid_since, rest)

    def _settle(self, cell: str, since: float | None, rest: Decimal = Decimal(0)) -> None:
        """Pay a job that is paid alone; a held machine is paid when it is given back."""
        if self._target.engine.held:
            return
        seconds = 0 if since is None else self.launch.clock() - since
        bill = min(self.tariff.cost(seconds), self.tariff.attempt)
        self.launch.budget.settle(self._purpose(cell), self._target.id, bill, rest)
        self.launch.ledger.pay(self._target.id, bill, close=False)

    def _give_back(self, rest: Decimal = Decimal(0)) -> None:
        """Tear the machine down and pay it; if that fails, it stays in the ledger."""
        lease, target = self._lease, self._target
        if lease is None:
            return
        reason = self._tried(self.engine.tear_down, at_all_costs=True)
        self._lease, self._up = None, False
        end = lease.until if reason else min(self.launch.clock(), lease.until)
        bill = self.tariff.cost(end - lease.since) if target.engine.held else Decimal(0)
        self.launch.budget.settle(target.id, target.id, bill, rest)
        if reason is None:
            self.launch.ledger.pay(target.id, bill, close=True)
        else:
            self.left_behind = True
            self.problem = f"the machine may still be up: {reason}"

    def _take_over(self, lease: Lease, *, only_end: bool) -> None:
        """Continue the jobs of a killed launch that are wanted and may go on; end the others."""
        queue, now = self.launch.queue, self.launch.clock()
        self._lease = lease
        for job in lease.jobs:
            cell = None if only_end else queue.take(self._target, job.cell)
            if cell and self._may_go_on(lease, cell, job):
                self._jobs[job.name] = _Running(cell, job, now, job.since)
            elif cell:
                queue.put_back(cell)
        self._end_jobs([job for job in lease.jobs if job.name not in self._jobs])
        for running in list(self._jobs.values()):
            self._run(running)
        if not self._jobs:
            self._give_back()

    def _end_jobs(self, jobs: Sequence[Job]) -> None:
        """End jobs of a killed launch, and keep the results that they have."""
        for job in jobs:
            self._cancel(job)
        if jobs:
            self._collect([None])
        for job in jobs:
            self._settle(job.cell, job.since)

    def _may_go_on(self, lease: Lease, cell: Cell, job: Job) -> bool:
        """Reserve the money for a job of a killed launch; false if there is not enough.

        The machine may have ended and be started again, so its time so far is paid now.
        """
        now, target, budget = self.launch.clock(), self._target, self.launch.budget
        purpose, most = self._purpose(cell.id), self.tariff.most(target.retries - job.attempt)
        if not target.engine.held:
            return budget.reserve(purpose, most)
        bill = self.tariff.cost(now - lease.since)
        if now > lease.until or not budget.reserve(purpose, bill + most):
            return False
        budget.settle(purpose, target.id, bill, most)
        self.launch.ledger.pay(target.id, bill, close=False)
        self._lease = lease.model_copy(update={"since": now})
        return True

    def _abandon(self) -> None:
        """End all jobs, keep their results, and give the machine back."""
        try:
            running = list(self._jobs.values())
            for each in running:
                self._cancel(each.job)
            if running:
                self._collect([each.cell for each in running])
            for each in running:
                if self._is_done(each.cell):
                    self._end(each)
                else:
                    del self._jobs[each.job.name]
                    self._settle_job(each)
                    self.launch.queue.put_back(each.cell)
        finally:
            self._give_back()
