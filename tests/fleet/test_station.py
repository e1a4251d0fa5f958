"""Launches in simulated time: money, faults and kills, over many random schedules."""

from __future__ import annotations

import datetime as dt
import gc
import math
import random
import threading
import tracemalloc
from collections.abc import Callable, Iterator
from dataclasses import replace
from decimal import Decimal
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import pytest

from epochcost.fleet.engine import JobState
from epochcost.fleet.launch import run_all
from epochcost.fleet.ledger import Entries, Tariff
from epochcost.fleet.shell import EngineError
from epochcost.fleet.station import POLL_SECONDS
from epochcost.plan.cell import Cell
from epochcost.results.records import Result
from epochcost.results.sidecars import Payment
from epochcost.specs.catalogue import Catalogue
from epochcost.specs.hardware import Hardware
from epochcost.specs.price import Price
from epochcost.specs.target import Sky, Slurm, Ssh, Target
from simulated_fleet import (
    SimulatedCluster,
    SimulatedEngine,
    SimulatedIntake,
    World,
    simulated_cells,
    simulated_launch,
)

_HOUR = 3600


def fleet(root: Path, draw: random.Random, count: int = 0, clusters: float = 0) -> Catalogue:
    """Up to four targets of random prices, times and retries; some have the same machine.

    ``clusters`` is the share of Slurm's clusters.
    """
    machines, prices, targets = {}, {}, {}
    for number in range(count or draw.randint(1, 4)):
        machine = f"box-{number // draw.randint(1, 2)}"
        machines[machine] = Hardware(id=machine, name="A box", provider="Cloud", source="a test")
        prices[f"price-{number}"] = Price(
            id=f"price-{number}",
            hardware=machine,
            plan="on-demand",
            provider="Cloud",
            amount=Decimal(draw.randint(1, 4000)) / 100,
            billing=draw.choice(("prorated", "whole-hour")),
            source="a test",
            as_of=dt.date(2026, 11, 1),
        )
        targets[f"target-{number}"] = Target(
            id=f"target-{number}",
            engine=Slurm(name="slurm", jobs=draw.randint(1, 3))
            if draw.random() < clusters
            else Sky(name="sky", infra="cloud"),
            hardware=machine,
            price=f"price-{number}",
            limit_minutes=draw.randint(1, 90),
            setup_minutes=draw.randint(1, 20),
            retries=draw.randint(0, 3),
        )
    return Catalogue(root, machines, prices, {}, {}, {}, targets=targets)


def launches(root: Path, seed: int) -> Iterator[tuple[World, Decimal, Entries]]:
    """A launch with faults that may be killed, a second with faults, and a third without.

    Yields the world, the cap and the ledger after each launch.
    """
    draw = random.Random(seed)
    catalogue = fleet(root, draw, clusters=0.3)
    world = World(
        draw,
        fault=draw.choice((0, 0.02, 0.2, 0.5)),
        loss=draw.choice((0, 0.01, 0.2)),
        bad=draw.choice((0, 0.1, 0.6)),
        calls=draw.choice((math.inf, draw.randint(1, 150))),
    )
    world.interrupt = draw.choice((math.inf, world.now + draw.random() * 3 * _HOUR))
    machines = sorted(catalogue.hardware)
    cells = [cell for name in machines for cell in simulated_cells(name, draw.randint(1, 6))]
    cap, entries = Decimal(draw.randint(0, 30_000)) / 100, Entries()
    for faulty in (True, True, False):
        if not faulty:
            world.fault = world.loss = 0
        entries, stations = simulated_launch(world, catalogue, cells, cap, entries)
        if stations and not any("may still be up" in station.problem for station in stations):
            assert not entries.leases, "the machines of a launch at its end were given back"
        yield world, cap, entries
        world.calls = world.interrupt = math.inf
        world.now += draw.choice((1, 60, 4 * _HOUR)) * draw.random()


@pytest.mark.parametrize(
    ("first", "count"),
    [(0, 10), *(pytest.param(first, 90, marks=pytest.mark.slow) for first in range(10, 1000, 90))],
)
def test_random_faults_cost_at_most_the_cap_and_leave_nothing(
    tmp_path: Path, first: int, count: int
) -> None:
    """In a thousand schedules of faults and kills, bills stay below the cap and machines end."""
    for seed in range(first, first + count):
        for world, cap, entries in launches(tmp_path, seed):
            assert world.paid <= cap, seed
            jobs = {f"{lease.target.id} {lease.job}" for lease in entries.leases.values()}
            assert world.machines.keys() <= entries.leases.keys() | jobs, seed
        assert not world.machines, seed
        assert len(world.taken_in) == len(set(world.taken_in)), seed


def test_cells_are_measured_and_their_states_are_reported(tmp_path: Path) -> None:
    """Without faults, a fleet measures every cell once, and the bills match the machines' time."""
    catalogue = fleet(tmp_path, random.Random(1), count=3)
    cells = [cell for name in catalogue.hardware for cell in simulated_cells(name, 5)]
    world, lines = World(random.Random(1)), list[str]()
    _, stations = simulated_launch(world, catalogue, cells, Decimal(10_000), None, lines.append)
    assert sorted(world.taken_in) == sorted(cell.id for cell in cells)
    assert sum(station.done for station in stations) == len(cells)
    assert world.starts == 3
    spent = stations[0].launch.ledger.entries.spent
    assert round(world.paid, 12) == round(sum(spent.values()), 12)
    first = [line.split(": ")[2] for line in lines if line.startswith("target-0: ")][:5]
    assert first == ["starting", "queued", "running", "collecting", "done"]


def test_a_machine_of_two_targets_measures_one_cell_at_a_time(tmp_path: Path) -> None:
    """Targets with the same host, such as for its CPU and its GPU, come one after the other."""
    catalogue = fleet(tmp_path, random.Random(3), count=2)
    host = Ssh(name="ssh", host="desk")
    targets = {
        name: target.model_copy(update={"engine": host})
        for name, target in catalogue.targets.items()
    }
    cells = [cell for name in catalogue.hardware for cell in simulated_cells(name, 2)]
    world, lines = World(random.Random(1)), list[str]()
    catalogue = replace(catalogue, targets=targets)
    simulated_launch(world, catalogue, cells, None, None, lines.append)
    assert len(world.taken_in) == 4
    order = [line.partition(":")[0] for line in lines]
    assert order == sorted(order)


def test_a_full_disk_of_the_launcher_ends_machines(tmp_path: Path) -> None:
    """Results that cannot be stored cost no more: all machines are given back at once."""
    catalogue = fleet(tmp_path, random.Random(1), count=2)
    world = World(random.Random(1), full=True)
    cells = [cell for name in catalogue.hardware for cell in simulated_cells(name, 5)]
    _, stations = simulated_launch(world, catalogue, cells, None)
    assert {station.problem for station in stations} == {"no room here"}
    assert not world.machines
    assert world.starts <= 2


def test_a_cap_below_one_cell_starts_nothing(tmp_path: Path) -> None:
    """Money that does not cover the longest time of a cell and its retries starts no machine."""
    catalogue = fleet(tmp_path, random.Random(1), count=1)
    cells = simulated_cells("box-0", 2)
    world = World(random.Random(1))
    (tariff,) = (Tariff.of(catalogue, target) for target in catalogue.targets.values())
    cap = tariff.most() - Decimal("0.01")
    _, (station,) = simulated_launch(world, catalogue, cells, cap)
    assert (world.starts, world.paid) == (0, 0)
    assert station.problem == "the cap does not allow another trial"


def cluster(root: Path) -> Catalogue:
    """A fleet of one target, a cluster with three jobs at a time."""
    catalogue = fleet(root, random.Random(1), count=1)
    nodes = Slurm(name="slurm", jobs=3)
    targets = {"target-0": catalogue.targets["target-0"].model_copy(update={"engine": nodes})}
    return replace(catalogue, targets=targets)


def test_a_cluster_is_installed_once(tmp_path: Path) -> None:
    """Three jobs at a time measure ten cells after a single installation."""
    world, cells = World(random.Random(1)), simulated_cells("box-0", 10)
    _, stations = simulated_launch(world, cluster(tmp_path), cells, Decimal(10_000))
    assert sum(station.done for station in stations) == 10
    assert world.starts == 1


def test_a_job_behind_a_lost_connection_is_paid(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only an answer says that a job is queued and costs nothing; without one, its time ends."""
    catalogue, polls = cluster(tmp_path), list[str]()
    terms = {"limit_minutes": 30, "retries": 0}
    target = catalogue.targets["target-0"].model_copy(update=terms)
    poll = SimulatedCluster.poll

    def poll_once(engine: SimulatedCluster, job: str) -> JobState:
        polls.append(job)
        assert len(polls) < 500, "the launch waits for ever"
        if polls.count(job) > 1:
            raise EngineError("the connection was lost", passing=True)
        return poll(engine, job)

    monkeypatch.setattr(SimulatedCluster, "poll", poll_once)
    world, catalogue = World(random.Random(1)), replace(catalogue, targets={"target-0": target})
    entries, _ = simulated_launch(world, catalogue, simulated_cells("box-0", 1), Decimal(10_000))
    assert 0 < world.paid <= entries.spent["target-0"]


def refused(tries: list[str], *, passing: bool) -> Callable[..., None]:
    """A call of an engine that notes each try and fails."""

    def refuse(*_: object) -> None:
        tries.append("a try")
        raise EngineError("no room there", passing=passing)

    return refuse


@pytest.mark.parametrize(("passing", "count"), [(False, 1), (True, 5)])
def test_a_cluster_without_an_installation_costs_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, passing: bool, count: int
) -> None:
    """The ledger stays empty; only a passing error is tried again, with pauses between tries."""
    world, tries = World(random.Random(1)), list[str]()
    monkeypatch.setattr(SimulatedCluster, "start", refused(tries, passing=passing))
    cells = simulated_cells("box-0", 10)
    entries, stations = simulated_launch(world, cluster(tmp_path), cells, Decimal(10_000))
    assert entries == stations[0].launch.ledger.entries == Entries()
    assert [station.problem for station in stations] == ["no room there"] * 3
    assert len(tries) == 3 * count
    assert world.pauses == [2, 4, 8, 16][: count - 1] * 3


def test_a_copy_without_hope_is_tried_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Results that cannot be copied fail a cell at once, unless the error may pass."""
    catalogue, tries = fleet(tmp_path, random.Random(1), count=1), list[str]()
    monkeypatch.setattr(SimulatedEngine, "collect", refused(tries, passing=False))
    cells = simulated_cells("box-0", 2)
    _, (station,) = simulated_launch(World(random.Random(1)), catalogue, cells, Decimal(10_000))
    assert [reason.partition(": ")[2] for reason in station.failed] == ["no room there"] * 2
    assert len(tries) == 2


@pytest.mark.parametrize("fault", [0, 1])
def test_a_machine_of_a_killed_launch_ends_before_another_starts(
    tmp_path: Path, fault: float
) -> None:
    """Its own station ends it, and measures nothing unless that succeeds."""
    catalogue = fleet(tmp_path, random.Random(1), count=1)
    world, cells = World(random.Random(1), calls=2), simulated_cells("box-0", 2)
    left, stations = simulated_launch(world, catalogue, cells, None)
    assert (left.leases.keys(), stations) == ({"target-0"}, ())
    world.calls, world.fault = math.inf, fault
    entries, (station,) = simulated_launch(world, catalogue, cells, None, left)
    assert entries.leases == (left.leases if fault else {})
    assert station.done == (0 if fault else 2)


def test_an_interrupted_launch_begins_nothing(tmp_path: Path) -> None:
    """If the interruption comes while machines of a killed launch end, no machine starts."""
    world, catalogue = World(random.Random(1)), fleet(tmp_path, random.Random(1), count=1)
    run = partial(run_all, lambda: True)
    simulated_launch(world, catalogue, simulated_cells("box-0", 2), None, run=run)
    assert world.starts == 0


def test_a_machine_that_comes_up_after_an_interruption_is_given_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The interruption comes while the machine starts, and the launch waits for its end."""
    world, catalogue = World(random.Random(1)), fleet(tmp_path, random.Random(1), count=1)
    begun, noted, start = threading.Event(), threading.Event(), SimulatedEngine.start

    def start_late(engine: SimulatedEngine) -> None:
        begun.set()
        noted.wait()
        start(engine)

    def interrupted() -> bool:
        if world.interrupt < world.now:  # the stations got the interruption at the last call
            noted.set()
        if begun.is_set():
            world.interrupt = 0
        return begun.is_set()

    monkeypatch.setattr(SimulatedEngine, "start", start_late)
    run = partial(run_all, interrupted)
    entries, (station,) = simulated_launch(
        world, catalogue, simulated_cells("box-0", 2), None, run=run
    )
    assert (world.starts, world.machines, entries.leases) == (1, {}, {})
    assert station.problem == "interrupted"


def test_failing_cells_stop_their_target(tmp_path: Path) -> None:
    """After three failed cells in a row, the target itself is at fault, and costs no more."""
    catalogue = fleet(tmp_path, random.Random(1), count=1)
    world = World(random.Random(1), bad=1)
    cells = simulated_cells("box-0", 9)
    _, (station,) = simulated_launch(world, catalogue, cells, Decimal(10_000))
    assert len(station.failed) == 3
    assert all(": exit code 1: the last line of" in reason for reason in station.failed)
    assert station.problem.startswith("3 trials in a row failed, the last: exit code 1: the last")
    assert not world.machines


def test_long_launches_keep_their_memory(tmp_path: Path) -> None:
    """Thousands of polls take no more memory than the first."""
    catalogue = fleet(tmp_path, random.Random(1), count=1)
    (target,) = catalogue.targets.values()
    slow = target.model_copy(update={"limit_minutes": 4000})
    catalogue = replace(catalogue, targets={target.id: slow})
    world = World(random.Random(1))
    sizes: list[int] = []

    def note_memory(_: str) -> None:
        gc.collect()
        sizes.append(tracemalloc.get_traced_memory()[0])

    tracemalloc.start()
    try:
        cells = simulated_cells("box-0", 2)
        simulated_launch(world, catalogue, cells, None, None, note_memory)
    finally:
        tracemalloc.stop()
    assert world.now - 1e9 > 5000 * POLL_SECONDS
    assert max(sizes) - sizes[0] < 200_000


def test_the_price_paid_is_stored_with_each_result(tmp_path: Path) -> None:
    """Each cell has the price and the paid time of its machine."""
    catalogue = fleet(tmp_path, random.Random(1), count=1)
    world = World(random.Random(1))
    simulated_launch(world, catalogue, simulated_cells("box-0", 3), None)
    files = sorted((tmp_path / "results").glob("box-0/payments/*.json"))
    payments = [Payment.model_validate_json(path.read_bytes()) for path in files]
    amount = catalogue.prices["price-0"].amount
    assert [payment.hourly for payment in payments] == [amount] * 3
    assert {payment.target for payment in payments} == {"target-0"}


def test_only_the_first_cell_of_a_machine_waits_for_its_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The time from the request to the first step is stored with the first cell alone."""
    world, catalogue = World(random.Random(1)), fleet(tmp_path, random.Random(1), count=1)
    stored = SimulatedIntake.result_of

    def result_of(intake: SimulatedIntake, cell: Cell) -> Result | None:
        started = dt.datetime.fromtimestamp(world.now - 1, dt.UTC)
        measurement = SimpleNamespace(started_at=started)
        return Result.model_construct(measurement=measurement) if stored(intake, cell) else None

    monkeypatch.setattr(SimulatedIntake, "result_of", result_of)
    cells = simulated_cells("box-0", 3)
    _, (station,) = simulated_launch(world, catalogue, cells, None)
    files = [tmp_path / f"results/box-0/payments/{cell.id}.json" for cell in cells]
    payments = [Payment.model_validate_json(path.read_bytes()) for path in files]
    first, *others = (payment.startup_seconds for payment in payments)
    assert [first] == station.startup_seconds
    assert others == [None, None]
