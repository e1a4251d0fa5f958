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
        """The value for a key (its ``repr``): read from ``folder``, or computed and stored.

        Nothing is read without a folder, and None is never stored.
        """
        if folder is None:
            return compute()
        digest = hashlib.sha256(f"{_code_digest(self.code)} {key!r}".encode()).hexdigest()
        file = folder / f"{self.kind}-{digest}.json"
        with contextlib.suppress(OSError, ValidationError):
            written_for, stored = self.form.validate_json(file.read_bytes())
            if written_for == digest:
                return stored
        value = compute()
        if value is not None:
            data = json.dumps(self.form.dump_python((digest, value), mode="json"))
            with contextlib.suppress(OSError):
                folder.mkdir(parents=True, exist_ok=True)
                _delete_oldest_files(folder)
                # Not atomic, because readers ignore a file that is cut off.
                file.write_text(data, encoding="utf-8")
        return value


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
