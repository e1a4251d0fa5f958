"""The folder of results: ``<hardware>/<model>-<mode>-<provider>-b<batch>-<trial>-<host>.json``.

A repeated trial replaces its file. Other records, called sidecars, are in subfolders.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Generic, TypeVar

from pydantic import ValidationError

from epochcost.errors import Fault
from epochcost.plan.trial import Trial
from epochcost.results.environment import Environment
from epochcost.results.fields import Record, RecordT, first_error, read_record
from epochcost.results.files import require_writable, write_atomically
from epochcost.results.records import (
    DamagedResultError,
    NewerResultError,
    Result,
    damaged,
    parse_result,
    serialise_result,
)
from epochcost.specs.document import read_regular_file

# Fifty thousand samples take half a megabyte, and LoadGen's log the same again.
MOST_BYTES = 5_000_000
# A million samples take about 20 MB; a longer file is not a result and might fill the memory.
MAX_FILE_BYTES = 64 * 2**20
_MOST_SIDECAR_BYTES = 2**20
# Digits of the id of a trial, sweep, training or reported run in the name of its files.
ID_DIGITS = 8
_HOST_DIGITS = 4


@dataclass(frozen=True)
class Loaded(Generic[RecordT]):
    """The valid records of one kind by their path, and a fault for each invalid file."""

    records: dict[Path, RecordT]
    faults: tuple[Fault, ...]


@dataclass(frozen=True)
class ResultStore:
    """A folder of results that has a subfolder for each machine's id."""

    folder: Path

    def path_of(self, trial: Trial, hardware: str, fingerprint: str) -> Path:
        """The path of the file for a trial's result on a host."""
        return self.folder / hardware / file_name(trial, fingerprint)

    def write(self, result: Result) -> Path:
        """Store a result and return its path; raises CapabilityError if this is impossible."""
        path = self.path_of(result.trial, result.hardware, result.environment.fingerprint)
        write_atomically(path, serialise_result(result))
        return path

    def find(self, trial: Trial, hardware: str, fingerprint: str) -> Result | None:
        """A stored result; None if missing or damaged. Raises NewerResultError for a newer file."""
        path = self.path_of(trial, hardware, fingerprint)
        try:
            result = read_result(path, self.folder)
        except NewerResultError:
            raise
        except DamagedResultError:
            return None
        same = (result.trial_id, result.environment.fingerprint) == (trial.id, fingerprint)
        return result if same else None


def file_name(trial: Trial, fingerprint: str) -> str:
    """The name of the file for a trial's result on a host."""
    work = f"{trial.model}-{trial.mode}-{trial.provider}-b{trial.batch_size}"
    return f"{work}-{trial.id[:ID_DIGITS]}-{fingerprint[:_HOST_DIGITS]}.json"


def load_all(folder: Path) -> Loaded[Result]:
    """Load all results below ``folder``, ordered by file name; none if the folder is missing."""
    return _load(folder.glob("*/*.json"), lambda path: read_result(path, folder))


def _load(paths: Iterable[Path], read: Callable[[Path], RecordT]) -> Loaded[RecordT]:
    records: dict[Path, RecordT] = {}
    faults: list[Fault] = []
    for path in sorted(paths):
        try:
            records[path] = read(path)
        except DamagedResultError as error:
            faults.append(error.fault)
    return Loaded(records, tuple(faults))


def read_result(path: Path, root: Path) -> Result:
    """Read a result below the folder ``root``; raises DamagedResultError for an invalid file."""
    result = parse_result(_read_bytes_below(path, root, MAX_FILE_BYTES), path)
    _require_hardware(result.hardware, path, path.parent)
    return result


def _read_bytes_below(path: Path, root: Path, most_bytes: int) -> bytes:
    try:
        return read_regular_file(path, root, most_bytes)
    except ValueError as error:
        raise damaged(path, str(error)) from None


def require_plain(path: Path, root: Path) -> None:
    """Check a file below ``root`` that another person may have written.

    Raises DamagedResultError for a link, a place outside ``root``, a large file, or unsafe text.
    """
    if any(place.is_symlink() for place in (path, path.parent)):
        raise damaged(path, "expected a file of its own, got a link")
    if not path.resolve().is_relative_to(root.resolve()):
        raise damaged(path, f"expected a file below {root}, got one outside: copy it there")
    data = _read_bytes_below(path, root, MOST_BYTES)
    try:
        hostile = next((text for text in _texts(json.loads(data)) if not _is_plain(text)), None)
    except (ValueError, RecursionError):
        return  # The parser reports what is wrong, and where.
    if hostile is not None:
        raise damaged(path, f"expected printable text, got control characters: {hostile!r:.80}")


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        yield from value
        yield from (text for item in value.values() for text in _texts(item))
    elif isinstance(value, list):
        yield from (text for item in value if not isinstance(item, float) for text in _texts(item))


def _is_plain(text: str) -> bool:
    return text.isprintable() or text.replace("\n", "").replace("\t", "").isprintable()


def require_name(path: Path, name: str) -> None:
    """Raise DamagedResultError unless the file has this ``name``."""
    if path.name != name:
        raise damaged(path, f"expected the name {name}, got {path.name!r:.120}")


def _require_hardware(hardware: str, path: Path, folder: Path) -> None:
    if hardware != folder.name:
        expected = f"expected hardware {folder.name!r} in this folder"
        raise damaged(path, f"{expected}, got {hardware!r:.80}")


class Sidecar(Record):
    """A stored record other than a result, such as a payment; a subclass is a kind of record.

    Readers of results skip its ``folder``. ``described`` is the name of the kind in error messages.
    """

    folder: ClassVar[str]
    described: ClassVar[str]
    hardware: str

    @property
    def work(self) -> str:
        """The part of the file's name that identifies the subject of the record."""
        raise NotImplementedError

    @property
    def file_stem(self) -> str:
        """The file's name without its suffix."""
        return self.work

    def path(self, root: Path) -> Path:
        """The path of the record's file below a folder of results."""
        return root / self.hardware / self.folder / f"{self.file_stem}.json"


class HostSidecar(Sidecar):
    """A record about one host; its file's name ends in the first digits of the fingerprint."""

    environment: Environment

    @property
    def file_stem(self) -> str:
        """The file's name without suffix: ``work`` and the first digits of the fingerprint."""
        return f"{self.work}-{self.environment.fingerprint[:_HOST_DIGITS]}"


SidecarT = TypeVar("SidecarT", bound=Sidecar)


def write_sidecar(root: Path, record: Sidecar) -> Path:
    """Store a record and return its path; raises CapabilityError if this is impossible."""
    path = record.path(root)
    require_writable(path.parent)
    text = json.dumps(record.model_dump(mode="json"), indent=1, ensure_ascii=False, allow_nan=False)
    write_atomically(path, f"{text}\n".encode())
    return path


def load_sidecars(root: Path, kind: type[SidecarT]) -> Loaded[SidecarT]:
    """Load records of ``kind`` below ``root`` by file name; none if the folder is missing."""
    paths = root.glob(f"*/{kind.folder}/*.json")
    return _load(paths, lambda path: read_sidecar(path, root, kind))


def read_sidecar(path: Path, root: Path, kind: type[SidecarT]) -> SidecarT:
    """Read a record of ``kind`` below ``root``; raises DamagedResultError for an invalid file."""
    try:
        record = read_record(kind, _read_bytes_below(path, root, _MOST_SIDECAR_BYTES))
    except ValidationError as error:
        raise damaged(path, f"expected {kind.described}, got {first_error(error)}") from None
    _require_hardware(record.hardware, path, path.parent.parent)
    return record
