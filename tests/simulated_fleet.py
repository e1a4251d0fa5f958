"""A fleet in simulated time: machines that cost money, fail, get lost and end themselves.

The stations of a launch are real. Engines, clock, ledger's file and results are simulated.
"""

from __future__ import annotations

import hashlib
import heapq
import math
import random
import threading
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any

from epochcost.errors import CapabilityError
from epochcost.fleet.engine import Engine, JobState
from epochcost.fleet.intake import Intake
from epochcost.fleet.launch import measure_all
from epochcost.fleet.ledger import Entries, Ledger, Tariff
from epochcost.fleet.shell import EngineError
from epochcost.fleet.station import Launch, Station, Waits
from epochcost.plan.cell import Cell
from epochcost.plan.trial import Trial
from epochcost.specs.catalogue import Catalogue
from epochcost.specs.target import IDLE_MINUTES, PINNED_RUNTIME, Slurm, Target

_FAULT_PASSES = 0.8


class Killed(BaseException):
    """The launcher's process is killed, so that its later lines have no effect."""


@dataclass
class Machine:
    """A running machine, which ends itself after some idle time.

    ``jobs`` has the end of each job, and whether the job ends well.
    """

    since: float
    idle_seconds: float
    jobs: dict[str, tuple[float, bool]] = field(default_factory=dict)
    busy_until: float = 0

    @property
    def ends(self) -> float:
        """The time at which the machine ends itself."""
        return self.busy_until + self.idle_seconds


@dataclass
class World:
    """Everything but the launcher: time, machines, bills and results, and the chances of faults.

    ``fault`` is the chance that a call fails, ``loss`` that it finds its machine lost, ``bad`` that
    a job fails. ``calls`` is the number of calls until the launcher is killed. The user interrupts
    the launch at the time ``interrupt``. The launcher's disk is ``full``. ``starts`` counts
    machines and installations on clusters; ``pauses`` has the seconds between tries.
    """

    random: random.Random
    fault: float = 0
    loss: float = 0
    bad: float = 0
    calls: float = math.inf
    interrupt: float = math.inf
    full: bool = False
    now: float = 1e9
    machines: dict[str, Machine] = field(default_factory=dict)
    trials: dict[str, str] = field(default_factory=dict)
    ended: dict[str, bool] = field(default_factory=dict)
    collected: set[str] = field(default_factory=set)
    taken_in: list[str] = field(default_factory=list)
    paid: Decimal = Decimal(0)
    starts: int = 0
    pauses: list[float] = field(default_factory=list)

    def require_alive(self) -> None:
        """Raise Killed if the launcher is killed."""
        if self.calls <= 0:
            raise Killed

    def end(self, tariff: Tariff, at: float) -> None:
        """End a target's machine, and bill its time as its provider does."""
        machine = self.machines.pop(tariff.target.id)
        self.bill(tariff, min(at, machine.ends) - machine.since)

    def bill(self, tariff: Tariff, seconds: float) -> None:
        """Bill the time of a machine."""
        hours = Decimal(repr(max(0.0, seconds))) / 3600
        if tariff.price.billing == "whole-hour":
            hours = Decimal(math.ceil(hours))
        self.paid += (tariff.price.amount or Decimal(0)) * hours


@dataclass
class SimulatedEngine(Engine):
    """A target of the simulated world. Each call takes time, and may fail or lose the machine."""

    world: World
    tariff: Tariff
    starting: threading.Lock = field(default_factory=threading.Lock)

    def _call(self, seconds: float, *, needs_machine: bool = True) -> Machine:
        world, target = self.world, self.tariff.target
        world.calls -= 1
        world.require_alive()
        world.now += seconds * world.random.random()
        machine = world.machines.get(target.id)
        if machine and (world.now > machine.ends or world.random.random() < world.loss):
            world.end(self.tariff, world.now)
            machine = None
        if world.random.random() < world.fault:
            raise EngineError(
                f"{target.id}: a fault", passing=world.random.random() < _FAULT_PASSES
            )
        if machine is None and needs_machine:
            raise EngineError(f"{target.id}: no machine", passing=True)
        return machine or Machine(world.now, 0)

    @property
    def target(self) -> Target:  # type: ignore[override]
        """The target of the tariff."""
        return self.tariff.target

    @property
    def limit_seconds(self) -> int:  # type: ignore[override]
        """The longest time of a job."""
        return 60 * self.target.limit_minutes

    def check(self) -> None:
        """Find no fault of the target."""

    def start(self) -> None:
        """Start a machine. A failed start may leave a machine running until its idle time ends."""
        target, world = self.tariff.target, self.world
        setup_seconds = 60 * target.setup_minutes * world.random.random()
        if target.id not in world.machines and world.random.random() >= world.fault / 2:
            world.require_alive()
            idle_seconds = 60 * IDLE_MINUTES
            machine = Machine(world.now, idle_seconds, busy_until=world.now + setup_seconds)
            world.machines[target.id] = machine
            world.starts += 1
        self._call(setup_seconds)

    def submit(self, job: str, arguments: Sequence[str]) -> None:
        """Start a job that takes a random part of its time limit."""
        machine = self._call(5)
        end = self.world.now + self.limit_seconds * self.world.random.random()
        machine.jobs[job] = end, self.world.random.random() >= self.world.bad
        machine.busy_until = max(machine.busy_until, end)
        self.world.trials[job] = arguments[-1]

    def poll(self, job: str) -> JobState:
        """The state of a job, which is lost with its machine."""
        machine = self._call(1, needs_machine=False)
        if job not in machine.jobs:
            return JobState("lost")
        end, good = machine.jobs[job]
        if self.world.now < end:
            return JobState("running")
        return JobState("ended") if good else JobState("failed", "exit code 1")

    def logs(self, job: str) -> str:
        """The last line of a job."""
        self._call(1)
        return f"the last line of {job}\n"

    def cancel(self, job: str) -> None:
        """End a job."""
        machine = self._call(1, needs_machine=False)
        if job in machine.jobs:
            end, good = machine.jobs[job]
            machine.jobs[job] = min(end, self.world.now), good and end <= self.world.now

    def collect(self, results: Path) -> None:
        """Copy the results of all jobs that ended well."""
        del results
        machine = self._call(10)
        for job, (end, good) in machine.jobs.items():
            if good and end <= self.world.now:
                self.world.collected.add(self.world.trials[job])

    def tear_down(self, _job: str) -> None:
        """End the machine."""
        self._call(20, needs_machine=False)
        if self.tariff.target.id in self.world.machines:
            self.world.end(self.tariff, self.world.now)


class SimulatedCluster(SimulatedEngine):
    """A cluster of the simulated world, in which a job waits and then pays for a node."""

    held = False

    def _node(self, job: str) -> str:
        return f"{self.tariff.target.id} {job}"

    def start(self) -> None:
        """Install the software on the login node."""
        self.world.starts += 1
        self._call(600, needs_machine=False)

    def submit(self, job: str, arguments: Sequence[str]) -> None:
        """Queue a job, even if the call fails. The node ends with the job."""
        world = self.world
        world.require_alive()
        begin = world.now + 1000 * world.random.random()
        end = begin + self.limit_seconds * world.random.random()
        good = world.random.random() >= world.bad
        world.trials[job] = arguments[-1]
        world.machines[self._node(job)] = Machine(begin, 0, {job: (end, good)}, end)
        self._call(5, needs_machine=False)

    def _call(self, seconds: float, *, needs_machine: bool = False) -> Machine:
        called = super()._call(seconds, needs_machine=needs_machine)
        for node, machine in list(self.world.machines.items()):
            if node.startswith(f"{self.tariff.target.id} ") and self.world.now >= machine.ends:
                self._end(node, machine.ends)
        return called

    def _end(self, node: str, at: float) -> None:
        machine = self.world.machines.pop(node)
        ((job, (_, good)),) = machine.jobs.items()
        self.world.ended[job] = good and at >= machine.ends
        self.world.bill(self.tariff, at - machine.since)

    def poll(self, job: str) -> JobState:
        """The state of a job, whose node may be lost."""
        self._call(1)
        machine = self.world.machines.get(self._node(job))
        if machine is None:
            return JobState("ended" if self.world.ended[job] else "failed", "exit code 1")
        if self.world.now < machine.since:
            return JobState("queued")
        if self.world.random.random() < self.world.loss:
            self._end(self._node(job), self.world.now)
            return JobState("lost")
        return JobState("running")

    def cancel(self, job: str) -> None:
        """End a job."""
        self._call(1)
        if self._node(job) in self.world.machines:
            self._end(self._node(job), self.world.now)

    def tear_down(self, job: str) -> None:
        """End the job."""
        self.cancel(job)

    def collect(self, results: Path) -> None:
        """Copy the results of all jobs that ended well."""
        del results
        self._call(10)
        good = (job for job, well in self.world.ended.items() if well)
        self.world.collected |= {self.world.trials[job] for job in good}


class SimulatedLedger(Ledger):
    """A ledger in memory, which a killed launcher cannot write."""

    def __init__(self, world: World, entries: Entries, cap: Decimal | None) -> None:
        super().__init__(Path("nowhere"), entries, cap)
        self._world = world

    def _store(self, entries: Entries) -> None:
        self._world.require_alive()
        self.entries = entries


class SimulatedIntake(Intake):
    """A folder of results without files."""

    def __init__(self, world: World, results: Path) -> None:
        self._world, self.results = world, results

    def result_of(self, cell: Cell) -> Any:
        """The id of the cell if its result was taken in."""
        return cell.id if cell.id in self._world.taken_in else None

    def take_in(self, staged: Path, cell: Cell | None) -> str:
        """Take in everything that is new."""
        del staged, cell
        self._world.require_alive()
        if self._world.full:
            raise CapabilityError("no room here")
        self._world.taken_in += sorted(self._world.collected - set(self._world.taken_in))
        return ""


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:8]


def simulated_cells(hardware: str, count: int) -> list[Cell]:
    """Different cells of a machine."""
    trial = Trial(
        model="tiny",
        mode="inference",
        provider="cpu",
        batch_size=1,
        seed=0,
        runtime="onnxruntime==1.31.1",
        producer="0",
        graph_sha256="0" * 64,
        spec_sha256="0" * 64,
        relative_half_width=Decimal("0.1"),
        minimum_samples=10,
        budget_seconds=Decimal(1),
    )
    kind = hardware, "cpu", PINNED_RUNTIME
    return [Cell(kind, f"{_digest(hardware)}{number:08x}", trial, 1) for number in range(count)]


def simulated_launch(
    world: World,
    catalogue: Catalogue,
    cells: Iterable[Cell],
    cap: Decimal | None,
    entries: Entries | None = None,
    log: Callable[[str], None] = lambda _: None,
    run: Callable[[Sequence[Waits]], None] | None = None,
) -> tuple[Entries, tuple[Station, ...]]:
    """Launch cells on all targets of a catalogue; returns the ledger and the stations.

    Stations take turns in simulated time, unless ``run`` runs them. A killed launch returns no
    stations.
    """
    ledger = SimulatedLedger(world, entries or Entries(), cap)

    def pause(seconds: float) -> None:
        world.require_alive()
        world.now += seconds
        world.pauses.append(seconds)

    def reach(target: Target) -> Engine:
        engine = SimulatedCluster if isinstance(target.engine, Slurm) else SimulatedEngine
        return engine(world, Tariff.of(catalogue, target))

    launch = Launch(
        folder=catalogue.root,
        intake=SimulatedIntake(world, catalogue.root / "results"),
        options=("run",),
        waiting=[cell for cell in cells if cell.id not in world.taken_in],
        ledger=ledger,
        reach=reach,
        log=log,
        clock=lambda: world.now,
        pause=pause,
    )
    engines = [reach(target) for target in catalogue.targets.values()]
    try:
        stations = measure_all(launch, engines, run or partial(_take_turns, world))
    except Killed:
        return ledger.entries, ()
    return ledger.entries, stations


def _take_turns(world: World, works: Sequence[Waits]) -> None:
    """Continue the work whose time is the earliest until it waits, and so on until all end."""
    turns = [(world.now, number) for number in range(len(works))]
    try:
        while turns and turns[0][0] < world.interrupt:
            world.now, number = heapq.heappop(turns)
            seconds = next(works[number], None)
            if seconds is not None:
                heapq.heappush(turns, (world.now + seconds, number))
    finally:
        for work in works:
            with suppress(Killed):
                work.close()
    world.require_alive()
