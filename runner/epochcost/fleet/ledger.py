"""Track what a launch spends: the tariffs of its targets, and a file with all machines and bills.

This file, the ledger, is written before a machine or a job starts. Bills and the reserved highest
costs of trials together never exceed the user's cap.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from decimal import Decimal
from pathlib import Path

from pydantic import BaseModel, ValidationError

from epochcost.cost.bill import quote
from epochcost.cost.lines import Usage
from epochcost.errors import CapabilityError
from epochcost.results.files import exclusive_lock, write_atomically
from epochcost.specs.catalogue import Catalogue
from epochcost.specs.hardware import Hardware
from epochcost.specs.price import Price
from epochcost.specs.target import Target
from epochcost.specs.terms import Start

FOLDER = Path(".cache/launch")
# The remedy if the ledger's folder cannot be locked; no option names another one.
_ELSEWHERE = "launch from another project on a local disk"


@dataclass(frozen=True)
class Tariff:
    """The price plan of a target's machine, billed from the machine's start to its end.

    If ``is_quoted``, the amount is the price that the engine quotes, not the spec's price.
    """

    target: Target
    machine: Hardware
    price: Price
    is_quoted: bool = False

    @classmethod
    def of(cls, catalogue: Catalogue, target: Target) -> Tariff:
        """The tariff of a target according to the specs."""
        # The time of starts and interruptions is part of the machine's time.
        whole_time = {"start": Start(), "interruptions": None}
        price = catalogue.price(target.price).model_copy(update=whole_time)
        return cls(target, catalogue.machine(target.hardware), price)

    def quoted(self, hourly: Decimal | None) -> Tariff:
        """The tariff with ``hourly`` dollars; unchanged for None or without a price in dollars."""
        if hourly is None or self.price.amount is None or self.price.currency != "USD":
            return self
        return replace(self, price=self.price.model_copy(update={"amount": hourly}), is_quoted=True)

    def cost(self, seconds: float) -> Decimal:
        """The bill for ``seconds`` of a machine; raises InputError if the plan cannot bill them."""
        if seconds <= 0:
            return Decimal(0)
        machine, time = self.machine, Decimal(repr(float(seconds)))
        usage = Usage(time, vcpus=machine.vcpus, accelerated=machine.device == "cuda")
        return quote(self.price, usage, credited=False).total

    def most(self, losses: int = 0, up_seconds: float = 0) -> Decimal:
        """The highest possible bill of a cell (a trial or a sweep), with all remaining retries.

        Each of ``losses`` lost machines used up a retry; their bills are left out. The present
        machine is up for ``up_seconds`` already.
        """
        first = self.cost(up_seconds + self.target.attempt_seconds)
        return first + (self.target.retries - losses) * self.cost(self.target.attempt_seconds)


class Lease(BaseModel, frozen=True, extra="forbid"):
    """A machine that is up or about to start, with the name of its latest job.

    The machine is paid for from ``since`` to at most ``until``, in seconds since 1970. Even if the
    launch dies, a started job ends by ``until``, and so does a rented machine. ``reserved`` is the
    highest possible bill for the job's trial or sweep, with a new machine at each remaining retry.
    """

    target: Target
    job: str
    since: float
    until: float
    reserved: Decimal


class Entries(BaseModel, frozen=True, extra="forbid"):
    """The content of a ledger: leases by the station's name, sums of bills by the target's id."""

    leases: dict[str, Lease] = {}
    spent: dict[str, Decimal] = {}


class Ledger:
    """A project's leases and bills, under a spending cap (None: no cap); threads may share it."""

    def __init__(self, path: Path, entries: Entries, cap: Decimal | None) -> None:
        self.entries = entries
        self._path, self._cap, self._lock = path, cap, threading.Lock()

    def is_idle(self, now: float) -> bool:
        """Whether all machines' leases have ended, so that no more reserved money becomes free."""
        return all(lease.until < now for lease in self.entries.leases.values())

    def reserve(self, station: str, lease: Lease) -> bool:
        """Store a lease; return False, and store nothing, if bills could then exceed the cap."""
        with self._lock:
            spent, leases = self.entries.spent, {**self.entries.leases, station: lease}
            total = sum(spent.values()) + sum(each.reserved for each in leases.values())
            if self._cap is not None and total > self._cap:
                return False
            self._store(Entries(leases=leases, spent=spent))
            return True

    def settle(self, station: str, bill: Decimal) -> None:
        """Remove the lease of ``station``, and add ``bill`` to the sum of its target's bills."""
        with self._lock:
            leases = dict(self.entries.leases)
            target = leases.pop(station).target.id
            spent = {**self.entries.spent, target: self.spent(target) + bill}
            self._store(Entries(leases=leases, spent=spent))

    def spent(self, target: str) -> Decimal:
        """The sum of the bills of ``target``."""
        return self.entries.spent.get(target, Decimal(0))

    def _store(self, entries: Entries) -> None:
        write_atomically(self._path, entries.model_dump_json(indent=1).encode())
        self.entries = entries


@contextmanager
def open_ledger(root: Path, cap: Decimal | None) -> Iterator[Ledger]:
    """Lock and open a project's ledger; at the end, remove the ledger's file if it has no lease.

    Raises CapabilityError if another launch of the project runs, or if the file is damaged.
    """
    path = root / FOLDER / "ledger.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    with exclusive_lock(path.parent, _ELSEWHERE):
        try:
            entries = Entries.model_validate_json(path.read_bytes()) if path.exists() else Entries()
        except (OSError, ValidationError) as error:
            raise CapabilityError(
                f"{path}: expected the list of machines that a launch started, got a damaged file "
                f"({type(error).__name__}): look for machines that are still up, give them back, "
                "and remove the file"
            ) from None
        ledger = Ledger(path, entries, cap)
        try:
            yield ledger
        finally:
            if not ledger.entries.leases:
                path.unlink(missing_ok=True)
