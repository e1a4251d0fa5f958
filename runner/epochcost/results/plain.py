"""Read result files of other people, and refuse files that may do harm.

A file is refused if it is not a regular file, is too large, or has text that is unsafe to print.
"""

from __future__ import annotations

import json
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from epochcost.errors import Fault
from epochcost.results.format import DamagedResultError

# Fifty thousand samples take half a megabyte, and a log of LoadGen as much again.
MOST_BYTES = 5_000_000


def read_plain(path: Path, root: Path) -> bytes:
    """The bytes of a file below ``root``; raises DamagedResultError if the file may do harm."""
    data = _bytes(path, root)
    try:
        hostile = next((text for text in _texts(json.loads(data)) if not _is_plain(text)), None)
    except (ValueError, RecursionError):
        # The parser reports what is wrong, and where.
        return data
    if hostile is not None:
        raise _refused(path, f"expected printable text, got control characters: {hostile!r:.80}")
    return data


def _bytes(path: Path, root: Path) -> bytes:
    try:
        status = path.lstat()
        if any(place.is_symlink() for place in (path, path.parent)):
            raise _refused(path, "expected a file of its own, got a link")
        if not stat.S_ISREG(status.st_mode):
            raise _refused(path, "expected a regular file, got something else")
        if not path.resolve().is_relative_to(root.resolve()):
            raise _refused(path, f"expected a file below {root}, got one outside")
        if status.st_size > MOST_BYTES:
            raise _refused(path, f"expected at most {MOST_BYTES:,} bytes, got {status.st_size:,}")
        return path.read_bytes()
    except OSError as error:
        raise _refused(path, f"expected a readable file, got {error.strerror}") from None


def _texts(value: Any) -> Iterator[str]:
    """All strings in a JSON document, keys included."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        yield from value
        yield from (text for item in value.values() for text in _texts(item))
    elif isinstance(value, list):
        yield from (text for item in value if not isinstance(item, float) for text in _texts(item))


def _is_plain(text: str) -> bool:
    return text.isprintable() or text.replace("\n", "").replace("\t", "").isprintable()


def _refused(path: Path, message: str) -> DamagedResultError:
    return DamagedResultError(Fault(path, 1, 1, message))
