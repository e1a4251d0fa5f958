"""Run the stations of a launch, each in a thread, and end all at an interruption.

First the machines that a killed launch left are given back or taken over.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from decimal import Decimal

from epochcost.fleet.budget import Tariff
from epochcost.fleet.ledger import Lease
from epochcost.fleet.station import Station
from epochcost.specs.catalogue import Catalogue
from epochcost.specs.target import Target

_LOOK_SECONDS = 0.2


@dataclass(frozen=True)
class Work:
    """The iterator of a station, which `run_all` drives."""

    station: Station
    steps: Iterator[float]


def tariff_of(catalogue: Catalogue, target: Target) -> Tariff:
    """The tariff of a target; raises InputError if its price or machine is unknown."""
    return Tariff(target, catalogue.machine(target.hardware), catalogue.price(target.price))


def reserved_for(tariff: Tariff, lease: Lease) -> dict[str, Decimal]:
    """The money that a killed launch had reserved for a lease, by purpose."""
    target = lease.target
    if target.engine.held:
        return {target.id: tariff.cost(lease.until - lease.since)}
    return {f"{target.id} {job.cell}": tariff.attempt for job in lease.jobs}


def run_all(works: Iterable[Work], interrupted: Callable[[], bool]) -> None:
    """Drive stations until all are at their end; at an interruption, close them all.

    Threads are daemons, so that a second interruption ends the program at once; the ledger then
    names the machines that are up.
    """
    stop = threading.Event()
    threads = [threading.Thread(target=_drive, args=(work, stop), daemon=True) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        while thread.is_alive():
            thread.join(_LOOK_SECONDS)
            if interrupted():
                stop.set()


def _drive(work: Work, stop: threading.Event) -> None:
    try:
        for seconds in work.steps:
            if stop.wait(seconds):
                work.station.problem = "interrupted"
                return
    except Exception as error:  # a fault of one engine must not leave the machines of others up
        work.station.problem = f"{type(error).__name__}: {error}: please report this fault"
    finally:
        getattr(work.steps, "close", lambda: None)()
