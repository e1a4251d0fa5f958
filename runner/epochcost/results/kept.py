"""A cache of computed values, with a file for each value; it may be deleted at any time.

Damaged files are ignored. Nothing is stored in a folder that cannot be written.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import json
from base64 import b64decode, b64encode
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray
from pydantic import PlainSerializer, PlainValidator, TypeAdapter, ValidationError

import epochcost
import onnxstep.errors

ValueT = TypeVar("ValueT")
# An array in JSON, as base64 of its bytes: exact, and faster to read than decimal numbers.
KeptArray = Annotated[
    NDArray[np.float64],
    PlainValidator(lambda text: np.frombuffer(b64decode(text))),
    PlainSerializer(lambda array: b64encode(array.tobytes()).decode()),
]
# With more values than this, the oldest half is deleted; most values take less than a megabyte.
_MOST_KEPT = 2000
_ROOT = Path(epochcost.__path__[0])
_COMMON_CODE = ("statistics", "units.py")
# The folder of onnxstep, found from a module, since a namespace package has no file.
LIBRARY = str(Path(onnxstep.errors.__file__).parent)


@dataclass(frozen=True)
class Keep(Generic[ValueT]):
    """A cache of the values of one ``kind``; ``form`` validates a file's pair (digest, value).

    The digest depends on the key, the versions of NumPy and onnx, and the computing ``code``:
    modules and folders, relative to this package or absolute. Code that most caches use is added.
    """

    kind: str
    form: TypeAdapter[tuple[str, ValueT]]
    code: tuple[str, ...]

    def value(self, folder: Path | None, key: object, compute: Callable[[], ValueT]) -> ValueT:
        """The value for a key (its ``repr``): read from ``folder``, or computed and stored."""
        if folder is None:
            return compute()
        # Computed once, because keys may be large.
        digest = self._digest(key)
        value = self._read(folder, digest)
        if value is None:
            value = compute()
            self._write(folder, digest, value)
        return value

    def read(self, folder: Path | None, key: object) -> ValueT | None:
        """The stored value for a key; None if no value is stored or ``folder`` is None."""
        return None if folder is None else self._read(folder, self._digest(key))

    def write(self, folder: Path | None, key: object, value: ValueT) -> None:
        """Store the value for a key, unless ``folder`` is None or cannot be written."""
        if folder is not None:
            self._write(folder, self._digest(key), value)

    def _read(self, folder: Path, digest: str) -> ValueT | None:
        with contextlib.suppress(OSError, ValidationError):
            written_for, value = self.form.validate_json(self._file(folder, digest).read_bytes())
            if written_for == digest:
                return value
        return None

    def _write(self, folder: Path, digest: str, value: ValueT) -> None:
        data = json.dumps(self.form.dump_python((digest, value), mode="json"))
        with contextlib.suppress(OSError):
            folder.mkdir(parents=True, exist_ok=True)
            _delete_oldest_files(folder)
            # Not atomic, because readers ignore a file that is cut off.
            self._file(folder, digest).write_text(data, encoding="utf-8")

    def _digest(self, key: object) -> str:
        return hashlib.sha256(f"{_code_digest(self.code)} {key!r}".encode()).hexdigest()

    def _file(self, folder: Path, digest: str) -> Path:
        return folder / f"{self.kind}-{digest}.json"


# Cached, so that a process lists a folder only once.
@functools.cache
def _delete_oldest_files(folder: Path) -> None:
    files = list(folder.glob("*-*.json"))
    if len(files) > _MOST_KEPT:
        for path in sorted(files, key=lambda each: each.stat().st_mtime_ns)[: _MOST_KEPT // 2]:
            path.unlink(missing_ok=True)


@functools.cache
def _code_digest(places: tuple[str, ...]) -> str:
    digest = hashlib.sha256(f"{version('numpy')} {version('onnx')}".encode())
    for place in map(_ROOT.joinpath, (*places, *_COMMON_CODE)):
        for source in sorted(place.rglob("*.py")) if place.is_dir() else [place]:
            digest.update(source.name.encode() + source.read_bytes())
    return digest.hexdigest()
