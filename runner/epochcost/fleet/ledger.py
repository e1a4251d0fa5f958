"""The ledger of a launch: a file that names every machine that is up and every job on it.

It is written before a machine or a job is started, so that a killed launch leaves nothing unknown:
the next launch takes the jobs over or gives the machines back.
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
_FILE = "ledger.json"


class _Record(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Job(_Record):
    """A job that was or is about to be submitted: its cell, the cell's attempt and its command.

    ``since`` is the time of that, in seconds since 1970. ``id`` is the engine's; it is empty until
    the engine has returned it.
    """

    cell: str
    attempt: int
    name: str
    arguments: tuple[str, ...]
    since: float
    id: str = ""


class Lease(_Record):
    """A machine that is up or starting, paid since ``since`` (seconds since 1970).

    If the launch dies, the machine ends at ``until`` at the latest: its jobs have a limit, and then
    its autostop counts.
    """

    target: Target
    since: float
    until: float
    jobs: tuple[Job, ...] = ()


class Entries(_Record):
    """The content of a ledger: machines that are up, and bills of others, by target."""

    leases: dict[str, Lease] = {}
    spent: dict[str, Decimal] = {}


class Ledger:
    """The ledger of a project; threads may share it."""

    def __init__(self, path: Path, entries: Entries) -> None:
        self._path = path
        self.entries = entries
        self._lock = threading.Lock()

    @property
    def leases(self) -> dict[str, Lease]:
        """The machines that are up, by the id of their target."""
        return dict(self.entries.leases)

    @property
    def spent(self) -> dict[str, Decimal]:
        """The bills of machines that were given back, by the id of their target."""
        return dict(self.entries.spent)

    def write(self, lease: Lease) -> None:
        """Write down a lease, instead of the earlier lease of its target."""
        with self._lock:
            leases = {**self.entries.leases, lease.target.id: lease}
            self._store(self.entries.model_copy(update={"leases": leases}))

    def pay(self, target: str, bill: Decimal, *, close: bool) -> None:
        """Write down a bill of a target; ``close`` its lease if its machine was given back."""
        with self._lock:
            entries = self.entries
            leases = {k: lease for k, lease in entries.leases.items() if k != target or not close}
            spent = {**entries.spent, target: entries.spent.get(target, Decimal(0)) + bill}
            self._store(entries.model_copy(update={"leases": leases, "spent": spent}))

    def end(self) -> None:
        """Remove the file at the end of a launch, unless a machine could not be given back."""
        with self._lock:
            if not self.entries.leases:
                self._path.unlink(missing_ok=True)

    def _store(self, entries: Entries) -> None:
        write_atomically(self._path, entries.model_dump_json(indent=1).encode(), _unwritable)
        self.entries = entries


def _unwritable(folder: Path, error: OSError) -> CapabilityError:
    return CapabilityError(
        f"{folder}: expected room for the list of rented machines, got {error.strerror}: free some "
        "space; nothing is started that is not written down there"
    )


def read_ledger(root: Path) -> Ledger:
    """The ledger of a project, which a killed launch left; raises CapabilityError if damaged."""
    path = root / FOLDER / _FILE
    try:
        entries = Entries.model_validate_json(path.read_bytes())
    except FileNotFoundError:
        entries = Entries()
    except (OSError, ValidationError) as error:
        raise CapabilityError(
            f"{path}: expected the list of machines that a launch started, got a damaged file "
            f"({type(error).__name__}): look for machines that are still up, give them back, and "
            "remove the file"
        ) from None
    return Ledger(path, entries)


@contextmanager
def open_ledger(root: Path) -> Iterator[Ledger]:
    """The ledger of a project, for this launch alone; raises CapabilityError if another runs."""
    folder = root / FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    with ExitStack() as resources:
        try:
            resources.enter_context(exclusive_lock(folder))
        except CapabilityError:
            raise CapabilityError(
                f"{folder}: expected to be the only launch of this project, but another is in "
                "progress: wait for it, or interrupt it with Ctrl-C"
            ) from None
        ledger = read_ledger(root)
        yield ledger
        ledger.end()
