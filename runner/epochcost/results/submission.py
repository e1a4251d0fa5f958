"""A result file from somebody else: read as if it were hostile, refused with one line.

Stricter than the store, which reads what this project wrote: duplicate keys, numbers that are none,
texts that a terminal would obey, and names that are not the store's are faults here. Whether the
figures can be true is asked of ``submission_figures``.
"""

from __future__ import annotations

import json
import math
import stat
from collections import Counter
from collections.abc import Iterator
from operator import itemgetter
from pathlib import Path
from typing import Any

from epochcost.errors import Fault
from epochcost.results.format import DamagedResultError, parse_result
from epochcost.results.records import Result
from epochcost.results.store import file_name

# Fifty thousand samples take half a megabyte, and a log of LoadGen as much again.
MOST_BYTES = 5_000_000
_MOST_DEPTH = 20
_LARGEST_INTEGER = 2**63
_LONGEST_TEXT = 20_000
# LoadGen's own log, compressed: never unpacked here.
_LONG_TEXTS = frozenset({"detail_log"})
_HOLDERS = (dict, list, str)
_NUMBERS = frozenset({int, float})
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


def read_submission(path: Path, root: Path) -> Result:
    """The result in a file below the results folder ``root``.

    Raises DamagedResultError, with one fault in one line, for everything that a file of ours is
    not: another place, name, size, encoding, form or content.
    """
    result = parse_result(read_plain(path, root), path)
    expected = file_name(result.trial, result.trial_id, result.environment.fingerprint)
    if path.parent.name != result.hardware:
        raise _refused(path, f"expected hardware {path.parent.name!r}, got {result.hardware!r}")
    if path.name != expected:
        raise _refused(path, f"expected the name {expected}, got {path.name!r:.120}")
    return result


def read_plain(path: Path, root: Path) -> bytes:
    """The bytes of a file below ``root``, which is JSON that harms neither a reader nor a terminal.

    Raises DamagedResultError.
    """
    data = _bytes(path, root)
    _require_plain(_document(data, path), path)
    return data


def _bytes(path: Path, root: Path) -> bytes:
    try:
        status = path.lstat()
        if any(place.is_symlink() for place in (path, path.parent)):
            raise _refused(path, "expected a file of its own, got a link")
        if not stat.S_ISREG(status.st_mode):
            raise _refused(path, "expected a regular file, got something else")
        if not _is_below(path, root):
            raise _refused(path, f"expected a file below {root}, got one outside")
        if status.st_size > MOST_BYTES:
            raise _refused(path, f"expected at most {MOST_BYTES:,} bytes, got {status.st_size:,}")
        return path.read_bytes()
    except OSError as error:
        raise _refused(path, f"expected a readable file, got {error.strerror}") from None


def _is_below(path: Path, root: Path) -> bool:
    """Two levels below the root without a link are below it, wherever the root is."""
    folder = path.parent
    if folder.parent == root and folder.name != "..":
        return True
    return path.resolve().is_relative_to(root.resolve())


class _RefusedError(ValueError):
    """A reason found while JSON is decoded."""


def _document(data: bytes, path: Path) -> Any:
    if data.startswith(_BYTE_ORDER_MARK):
        raise _refused(path, "expected UTF-8 without a byte order mark, got one")
    try:
        return json.loads(
            data.decode(),
            object_pairs_hook=_without_duplicates,
            parse_constant=_no_constant,
            parse_int=_bounded_integer,
        )
    except UnicodeDecodeError as error:
        raise _refused(path, f"expected UTF-8, got another byte at {error.start}") from None
    except json.JSONDecodeError as error:
        message = f"expected a whole JSON document, got a fault here: {error.msg}"
        raise DamagedResultError(Fault(path, error.lineno, error.colno, message)) from None
    except RecursionError:
        raise _refused(path, f"expected at most {_MOST_DEPTH} levels, got too many") from None
    except _RefusedError as error:
        raise _refused(path, str(error)) from None


def _without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    table = dict(pairs)
    if len(table) < len(pairs):
        twice = max(Counter(key for key, _ in pairs).items(), key=itemgetter(1))[0]
        raise _RefusedError(f"expected each key once, got {twice!r:.80} twice")
    return table


def _no_constant(name: str) -> float:
    raise _RefusedError(f"expected finite numbers, got {name}")


def _bounded_integer(digits: str) -> int:
    if len(digits) > len(str(_LARGEST_INTEGER)) or abs(int(digits)) >= _LARGEST_INTEGER:
        raise _RefusedError(f"expected whole numbers below 2^63, got {digits[:20]}…")
    return int(digits)


def _require_plain(document: Any, path: Path) -> None:
    for message in _hostile(document):
        raise _refused(path, message)


def _hostile(document: Any) -> Iterator[str]:
    """Depth, texts and numbers that no result of ours has."""
    pending: list[tuple[str, Any, int]] = [("", document, 1)]
    while pending:
        key, value, depth = pending.pop()
        if depth > _MOST_DEPTH:
            yield f"expected at most {_MOST_DEPTH} levels, got more, at {key!r:.80}"
        elif isinstance(value, dict):
            yield from _hostile_keys(value)
            pending += [(name, item, depth + 1) for name, item in value.items()]
        elif isinstance(value, list):
            if math.inf in value or -math.inf in value:
                yield from _hostile_number(key, math.inf)
            pending += [(key, item, depth + 1) for item in _holders(value)]
        elif isinstance(value, float):
            yield from _hostile_number(key, value)
        elif isinstance(value, str) and not _is_plain(value) and key not in _LONG_TEXTS:
            yield _hostile_text(key, value)


def _hostile_keys(table: dict[str, Any]) -> Iterator[str]:
    if not _is_plain("".join(table)):
        yield from (_hostile_text("a key", name) for name in table if not _is_plain(name))


def _holders(items: list[Any]) -> list[Any]:
    """All but numbers, which are most of a file and need no place among what is to be looked at."""
    if _NUMBERS.issuperset(map(type, items)):
        return []
    return [item for item in items if isinstance(item, _HOLDERS)]


def _hostile_number(key: str, value: Any) -> Iterator[str]:
    if isinstance(value, float) and not math.isfinite(value):
        yield f"{key:.80}: expected finite numbers, got one that is too large"


def _is_plain(text: str) -> bool:
    """Most texts by far are short and on one line."""
    short = len(text) <= _LONGEST_TEXT
    return short and (text.isprintable() or text.replace("\n", "").replace("\t", "").isprintable())


def _hostile_text(key: str, text: str) -> str:
    """What is wrong with a text that is not plain."""
    if len(text) > _LONGEST_TEXT:
        return f"{key:.80}: expected at most {_LONGEST_TEXT:,} characters, got {len(text):,}"
    return f"{key!r:.80}: expected printable text, got control characters"


def _refused(path: Path, message: str) -> DamagedResultError:
    return DamagedResultError(Fault(path, 1, 1, message))
