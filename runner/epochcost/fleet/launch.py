"""Run the stations of `epochcost launch` in threads, at most one at a time on each machine.

Targets with the same host share a machine. Ctrl-C ends all stations.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import closing

from epochcost.fleet.engine import Engine
from epochcost.fleet.ledger import FOLDER, Tariff
from epochcost.fleet.sky import SkyEngine
from epochcost.fleet.slurm import SlurmEngine
from epochcost.fleet.station import Launch, Station, Waits
from epochcost.specs.catalogue import Catalogue
from epochcost.specs.target import Slurm, Target
from epochcost.statistics import group_by

ENGINES: dict[str, type[Engine]] = {"ssh": Engine, "slurm": SlurmEngine, "sky": SkyEngine}
_LOOK_SECONDS = 0.2


def engine_of(catalogue: Catalogue, target: Target) -> Engine:
    """The SSH, Slurm or SkyPilot engine that runs commands on a target of a project."""
    payload = catalogue.root / FOLDER / "payload"
    return ENGINES[target.engine.name](Tariff.of(catalogue, target), payload, catalogue.root)


def measure_all(
    launch: Launch, engines: Iterable[Engine], run: Callable[[Sequence[Waits]], None]
) -> tuple[Station, ...]:
    """Measure the trials and sweeps of a launch on all targets at once; return the stations.

    First, this function gives back the machines that a killed launch left running. A station whose
    old machine cannot be given back measures nothing. Then this function calls ``run`` with an
    iterator for each machine, which runs the machine's stations one after the other. An iterator
    yields the seconds to wait before its next step. ``run`` must exhaust or close all iterators.
    """
    stations: dict[str, Station] = {}
    for engine in engines:
        target, nodes = engine.target, engine.target.engine
        for number in range(nodes.jobs if isinstance(nodes, Slurm) else 1):
            name = f"{target.id} {number + 1}" if number else target.id
            stations[name] = Station(name, launch, engine)
    machines = group_by(
        stations.values(), lambda each: each.engine.target.host if each.engine.held else each.name
    )
    for name, lease in launch.ledger.entries.leases.items():
        left = stations.get(name)
        if left is None or left.engine.target != lease.target:
            left = Station(name, launch, launch.reach(lease.target))
        left.end(lease)
        # A station with a problem measures nothing: the ledger must keep its machine's lease.
        stations.setdefault(name, left).problem = left.problem
    run([_in_turn(each) for each in machines.values()])
    return tuple(stations.values())


def _in_turn(stations: Iterable[Station]) -> Waits:
    for station in stations:
        yield from station.measure()


def run_all(interrupted: Callable[[], bool], works: Sequence[Waits]) -> None:
    """Run each iterator of ``works`` in its own thread, to its end or an interruption.

    An iterator yields the seconds to wait before its next step. If ``interrupted`` returns True,
    the threads close their iterators. A second interruption ends the program at once, because the
    threads are daemons. Then ``ledger.json`` names the machines that are still running.
    """
    if interrupted():
        return
    stop = threading.Event()
    threads = [threading.Thread(target=_do, args=(work, stop), daemon=True) for work in works]
    for thread in threads:
        thread.start()
    while any(map(threading.Thread.is_alive, threads)):
        time.sleep(_LOOK_SECONDS)
        if interrupted():
            stop.set()


def _do(work: Waits, stop: threading.Event) -> None:
    with closing(work):
        for seconds in work:
            if stop.wait(seconds):
                return
