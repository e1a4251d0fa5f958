"""Records kept beside results, ``<hardware>/<folder>/<name>.json``: writing, reading, and faults.

Each kind has a folder of its own, into which readers of results never look. What a record says and
what has to hold in it is left to its own module.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar

from pydantic import ValidationError

from epochcost.errors import Fault
from epochcost.results.atomic import write_atomically
from epochcost.results.fields import Record, first_fault, read_record

_MOST_BYTES = 2**20


class Beside(Record):
    """A record of a machine, stored below that machine's id."""

    hardware: str


BesideT = TypeVar("BesideT", bound=Beside)


@dataclass(frozen=True)
class LoadedBeside(Generic[BesideT]):
    """What a folder of results holds of one kind by file, and a fault for each damaged one."""

    kept: dict[Path, BesideT]
    faults: tuple[Fault, ...]


def write_beside(path: Path, record: Beside) -> Path:
    """Keep a record and return its file; raises CapabilityError where the disk refuses."""
    path.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps(record.model_dump(mode="json"), indent=1, ensure_ascii=False, allow_nan=False)
    write_atomically(path, f"{text}\n".encode())
    return path


def load_beside(
    root: Path, folder: str, kind: type[BesideT], described: str
) -> LoadedBeside[BesideT]:
    """Every record of ``kind`` below ``root``, ordered by file name; a missing root is empty."""
    kept: dict[Path, BesideT] = {}
    faults: list[Fault] = []
    for path in sorted(root.glob(f"*/{folder}/*.json")):
        read = _read(path, root, kind, described)
        if isinstance(read, Fault):
            faults.append(read)
        else:
            kept[path] = read
    return LoadedBeside(kept, tuple(faults))


def _read(path: Path, root: Path, kind: type[BesideT], described: str) -> BesideT | Fault:
    try:
        for message in _refusals(path, root):
            return Fault(path, 1, 1, message)
        record = read_record(kind, path.read_bytes())
    except ValidationError as error:
        return Fault(path, 1, 1, f"demanded {described}; got {first_fault(error)}")
    except (OSError, RuntimeError) as error:  # a loop of links is a RuntimeError before Python 3.13
        reason = error.strerror if isinstance(error, OSError) else "links that form a loop"
        return Fault(path, 1, 1, f"demanded a readable file; got {reason}")
    if record.hardware != path.parent.parent.name:
        demanded = f"demanded hardware {path.parent.parent.name!r} in this folder"
        return Fault(path, 1, 1, f"{demanded}; got {record.hardware!r:.80}")
    return record


def _refusals(path: Path, root: Path) -> Iterator[str]:
    """Reasons not to open a file at all."""
    if not path.resolve().is_relative_to(root.resolve()):
        yield "demanded a file inside the results folder; got a link that leaves it"
    elif path.exists() and not path.is_file():
        yield "demanded a regular file; got something else"
    elif path.is_file() and path.stat().st_size > _MOST_BYTES:
        yield f"demanded at most {_MOST_BYTES} bytes; got {path.stat().st_size}"
