"""Run the stations of a launch, each in a thread, and end all at an interruption."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence

from epochcost.errors import EpochcostError
from epochcost.fleet.engine import Engine
from epochcost.fleet.ledger import Lease
from epochcost.fleet.station import Launch, Station
from epochcost.fleet.tariff import Tariff
from epochcost.specs.target import Ssh, Target

_LOOK_SECONDS = 0.2
# Drives stations, each with a lease that it takes over, to their end; or only ends the leases.
Run = Callable[[Sequence[tuple[Station, Lease | None]], bool], None]


def measure_all(
    launch: Launch,
    engines: Iterable[tuple[Tariff, Engine]],
    reach: Callable[[Target], tuple[Tariff, Engine]],
    run: Run,
) -> tuple[Station, ...]:
    """Measure the cells of a launch on all targets at once; returns the stations at their end.

    A target has a station for each job that it may have at once. Machines that a killed launch left
    and that are not taken over are given back first; their stations come first in the answer.
    """
    chosen: dict[str, Station] = {}
    latest: dict[str, Station] = {}
    for tariff, engine in engines:
        starting = threading.Lock()
        for number in range(tariff.target.engine.jobs):
            name = f"{tariff.target.id} {number + 1}" if number else tariff.target.id
            chosen[name] = station = Station(name, launch, tariff, engine, starting)
            if isinstance(reached := tariff.target.engine, Ssh):
                station.after, latest[reached.host] = latest.get(reached.host), station
    leases = launch.ledger.entries.leases
    kept = {
        name: lease
        for name, lease in leases.items()
        if name in chosen and chosen[name].tariff.target == lease.target
    }
    others = [
        (Station(name, launch, *reach(lease.target)), lease)
        for name, lease in leases.items()
        if name not in kept
    ]
    run(others, True)
    run([(station, kept.get(name)) for name, station in chosen.items()], False)
    return (*(station for station, _ in others), *chosen.values())


def run_all(
    interrupted: Callable[[], bool],
    stations: Sequence[tuple[Station, Lease | None]],
    only_end: bool,
) -> None:
    """Drive stations in threads, each with a lease that it takes over, until all end.

    At an interruption, they end early. Threads are daemons, so that a second interruption ends the
    program at once; the ledger then names the machines that are up.
    """
    stop = threading.Event()
    threads = [
        threading.Thread(target=_drive, args=(station, lease, only_end, stop), daemon=True)
        for station, lease in stations
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        while thread.is_alive():
            thread.join(_LOOK_SECONDS)
            if interrupted():
                stop.set()


def _drive(station: Station, lease: Lease | None, only_end: bool, stop: threading.Event) -> None:
    steps = station.measure(lease, only_end=only_end)
    try:
        for seconds in steps:
            if stop.wait(seconds):
                station.problem = "interrupted"
                steps.close()
    except EpochcostError as error:
        station.problem = str(error)
    except Exception as error:  # a fault of one engine must not leave the machines of others up
        station.problem = f"{type(error).__name__}: {error}: please report this fault"
