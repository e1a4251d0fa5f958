"""Run the stations of a launch, each in a thread, and end all at an interruption.

First the machines that a killed launch left are given back, unless the launch takes them over.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from decimal import Decimal

from epochcost.fleet.budget import Tariff
from epochcost.fleet.engine import Engine
from epochcost.fleet.ledger import Lease, Ledger
from epochcost.fleet.station import Launch, Station
from epochcost.specs.catalogue import Catalogue
from epochcost.specs.target import Target

_LOOK_SECONDS = 0.2
# Drives stations, each with a lease that it takes over, to their end; or only ends the leases.
Run = Callable[[Sequence[tuple[Station, Lease | None]], bool], None]


def tariff_of(catalogue: Catalogue, target: Target) -> Tariff:
    """The tariff of a target; raises InputError if its price cannot bill it."""
    tariff = Tariff(target, catalogue.machine(target.hardware), catalogue.price(target.price))
    assert tariff.attempt >= 0
    return tariff


def left_reservations(catalogue: Catalogue, ledger: Ledger) -> dict[str, Decimal]:
    """The money that a killed launch had reserved for machines that are still up, by purpose."""
    reserved = {}
    for lease in ledger.leases.values():
        tariff, target = tariff_of(catalogue, lease.target), lease.target
        if target.engine.held:
            reserved[target.id] = tariff.cost(lease.until - lease.since)
        else:
            reserved |= {f"{target.id} {job.cell}": tariff.attempt for job in lease.jobs}
    return reserved


def measure_all(
    launch: Launch,
    engines: Iterable[tuple[Tariff, Engine]],
    engine_of: Callable[[Target], Engine],
    run: Run,
) -> tuple[Station, ...]:
    """Measure the cells of a launch on all targets at once; returns the stations at their end.

    Machines of other targets that a killed launch left are given back first; their stations come
    first in the answer.
    """
    chosen = {tariff.target.id: Station(launch, tariff, engine) for tariff, engine in engines}
    leases = launch.ledger.leases
    others = {
        name: Station(launch, tariff_of(launch.catalogue, lease.target), engine_of(lease.target))
        for name, lease in leases.items()
        if name not in chosen or chosen[name].tariff.target != lease.target
    }
    run([(station, leases[name]) for name, station in others.items()], True)
    kept = {name: lease for name, lease in leases.items() if name not in others}
    run([(station, kept.get(name)) for name, station in chosen.items()], False)
    return (*others.values(), *chosen.values())


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
    except Exception as error:  # a fault of one engine must not leave the machines of others up
        station.problem = f"{type(error).__name__}: {error}: please report this fault"
