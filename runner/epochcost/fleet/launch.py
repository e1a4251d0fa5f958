"""Run the stations of a launch, those of each machine in turn, and end all at an interruption."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from contextlib import closing
from itertools import chain
from pathlib import Path

from epochcost.fleet.engine import Engine
from epochcost.fleet.ledger import Tariff
from epochcost.fleet.sky import SkyEngine
from epochcost.fleet.slurm import SlurmEngine
from epochcost.fleet.ssh import SshEngine
from epochcost.fleet.station import Launch, Station, Waits
from epochcost.specs.target import Slurm, Ssh, Target

ENGINES: dict[str, Callable[[Target, Path, Path], Engine]] = {
    "ssh": SshEngine,
    "slurm": SlurmEngine,
    "sky": SkyEngine,
}
_LOOK_SECONDS = 0.2


def measure_all(
    launch: Launch,
    engines: Iterable[tuple[Tariff, Engine]],
    reach: Callable[[Target], tuple[Tariff, Engine]],
    run: Callable[[Sequence[Waits]], None],
) -> tuple[Station, ...]:
    """Measure the cells of a launch on all targets at once; returns the stations at their end.

    A target has a station for each job that it may have at once. Machines that a killed launch left
    running are given back first; their stations come first in the answer.
    """
    left = [
        (Station(name, launch, *reach(lease.target)), lease)
        for name, lease in launch.ledger.entries.leases.items()
    ]
    for station, lease in left:
        station.end(lease)
    machines: dict[str, list[Station]] = {}
    for tariff, engine in engines:
        reached, starting = tariff.target.engine, threading.Lock()
        for number in range(reached.jobs if isinstance(reached, Slurm) else 1):
            name = f"{tariff.target.id} {number + 1}" if number else tariff.target.id
            machine = reached.host if isinstance(reached, Ssh) else name
            station = Station(name, launch, tariff, engine, starting)
            machines.setdefault(machine, []).append(station)
    run([_in_turn(stations) for stations in machines.values()])
    return (*(station for station, _ in left), *chain.from_iterable(machines.values()))


def _in_turn(stations: Iterable[Station]) -> Waits:
    for station in stations:
        yield from station.measure()


def run_all(interrupted: Callable[[], bool], works: Sequence[Waits]) -> None:
    """Run all ``works`` in threads; at an interruption, they end early.

    Threads are daemons, so that a second interruption ends the program at once; the ledger then
    names the machines that are up.
    """
    stop = threading.Event()
    threads = [threading.Thread(target=_do, args=(work, stop), daemon=True) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        while thread.is_alive():
            thread.join(_LOOK_SECONDS)
            if interrupted():
                stop.set()


def _do(work: Waits, stop: threading.Event) -> None:
    with closing(work):
        for seconds in work:
            if stop.wait(seconds):
                return
