"""The ledger of a launch: a file with every machine that is up, its job, and all money.

It is written before a machine or a job is started, so that a killed launch leaves nothing unknown:
the next launch takes its jobs over or ends them. Money for the longest time of a cell and of its
retries is reserved before the cell starts. Bills and reservations never exceed the cap together.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from decimal import Decimal
from pathlib import Path

from pydantic import BaseModel, ConfigDict, ValidationError

from epochcost.errors import CapabilityError
from epochcost.results.files import exclusive_lock, write_atomically
from epochcost.specs.target import Target

FOLDER = Path(".cache/launch")
_FILE = FOLDER / "ledger.json"


class _Record(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Job(_Record):
    """A job that is or was to be submitted at ``since``; ``id`` is the engine's, if known."""

    cell: str
    attempt: int
    name: str
    arguments: tuple[str, ...]
    since: float
    id: str = ""


class Lease(_Record):
    """A machine that is up or about to start, paid since ``since`` (seconds since 1970).

    If the launch dies, its job's limit and its autostop end the machine at ``until``.
    """

    target: Target
    since: float
    until: float
    reserved: Decimal
    job: Job


class Entries(_Record):
    """The content of a ledger: leases by station, and bills by target."""

    leases: dict[str, Lease] = {}
    spent: dict[str, Decimal] = {}


class Ledger:
    """The ledger of a project under a cap (None: no cap); threads may share it."""

    def __init__(self, path: Path, entries: Entries, cap: Decimal | None = None) -> None:
        self.path = path
        self.entries = entries
        self.cap = cap
        self._lock = threading.Lock()
        self._stuck: set[str] = set()

    @property
    def is_idle(self) -> bool:
        """Whether no machine is up whose reserved money will become free."""
        return self.entries.leases.keys() <= self._stuck

    def reserve(self, station: str, lease: Lease) -> bool:
        """Write a lease instead of the station's earlier one, unless it exceeds the cap."""
        with self._lock:
            leases = {**self.entries.leases, station: lease}
            total = sum((each.reserved for each in leases.values()), Decimal(0))
            if self.cap is not None and total + sum(self.entries.spent.values()) > self.cap:
                return False
            self._store(self.entries.model_copy(update={"leases": leases}))
            return True

    def settle(self, station: str, bill: Decimal, lease: Lease | None) -> None:
        """Pay a bill of a lease, and write the lease that follows it, if any."""
        with self._lock:
            leases = dict(self.entries.leases)
            target = leases.pop(station).target.id
            if lease is not None:
                leases[station] = lease
            spent = {**self.entries.spent, target: self.spent(target) + bill}
            self._store(Entries(leases=leases, spent=spent))

    def note_stuck(self, station: str) -> None:
        """Note that the machine of a lease could not be given back; its money stays reserved."""
        self._stuck.add(station)

    def spent(self, target: str) -> Decimal:
        """The bills of a target."""
        return self.entries.spent.get(target, Decimal(0))

    def _store(self, entries: Entries) -> None:
        write_atomically(self.path, entries.model_dump_json(indent=1).encode(), _unwritable)
        self.entries = entries


def _unwritable(folder: Path, error: OSError) -> CapabilityError:
    return CapabilityError(
        f"{folder}: expected room for the list of rented machines, got {error.strerror}: free some "
        "space; nothing is started that is not written down there"
    )


def read_ledger(root: Path, cap: Decimal | None = None) -> Ledger:
    """The ledger of a project, which a killed launch left; raises CapabilityError if damaged."""
    path = root / _FILE
    try:
        return Ledger(path, Entries.model_validate_json(path.read_bytes()), cap)
    except FileNotFoundError:
        return Ledger(path, Entries(), cap)
    except (OSError, ValidationError) as error:
        raise CapabilityError(
            f"{path}: expected the list of machines that a launch started, got a damaged file "
            f"({type(error).__name__}): look for machines that are still up, give them back, and "
            "remove the file"
        ) from None


@contextmanager
def open_ledger(root: Path, cap: Decimal | None) -> Iterator[Ledger]:
    """The ledger for this launch alone, removed at the end unless a machine may still be up.

    Raises CapabilityError if another launch of the project runs.
    """
    (root / FOLDER).mkdir(parents=True, exist_ok=True)
    with ExitStack() as resources:
        try:
            resources.enter_context(exclusive_lock(root / FOLDER))
        except CapabilityError:
            raise CapabilityError(
                f"{root / FOLDER}: expected to be the only launch of this project, but another is "
                "in progress: wait for it, or interrupt it with Ctrl-C"
            ) from None
        ledger = read_ledger(root, cap)
        try:
            yield ledger
        finally:
            if not ledger.entries.leases:
                ledger.path.unlink(missing_ok=True)
