"""A TOML file: its text, its parsed table, and the positions of its keys.

This module does not know the keys of specs. Values come from tomli, positions from tree-sitter.
"""

from __future__ import annotations

import re
import stat
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from functools import cache, lru_cache
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import tomli
import tree_sitter
import tree_sitter_toml

from epochcost.errors import Fault, SpecError
from epochcost.specs.findings import Finding
from epochcost.specs.wording import KeyPath, describe, printable

_KEYS = ("bare_key", "quoted_key", "dotted_key")
_NOT_ITEMS = ("comment", "ERROR")
_Placed = tuple[tree_sitter.Node, KeyPath]
# A spec is a page of text; a larger file than this is a mistake.
LARGEST_BYTES = 1_000_000
_BYTE_ORDER_MARK = "\ufeff"
CONFLICT_MARKERS = ("<<<<<<<", "|||||||", "=======", ">>>>>>>")
_CONFLICT = re.compile(r"^(<{7}|\|{7}|>{7})(?= |\r?$)", re.MULTILINE)
_KEY_TWICE = "a key appears twice in its table, or a [header] above it is missing"
_TABLE_TWICE = "a table appears twice, or is already a value"
# Our words for messages of tomli that begin with these texts.
_REWORDED = {
    "Cannot overwrite a value": _KEY_TWICE,
    "Duplicate inline table key": _KEY_TWICE,
    "Cannot declare": _TABLE_TWICE,
    "Cannot redefine": _TABLE_TWICE,
    "Cannot mutate": _TABLE_TWICE,
    "Illegal character '\\n'": "a text in quotes should end on its line",
}
_CLEARER = {
    "Unclosed array": "expected a comma or ] after an item",
    "Unclosed inline table": "expected a comma or } after a value",
    "Expected newline or end of document after a statement": (
        'expected a line to end after a value such as 2.5, 2016-11-01 or "text"'
    ),
    "Invalid date or datetime": "expected a date such as 2016-11-01",
    "Invalid statement": "expected a key, a [header] or a # comment",
    "Invalid value": 'expected a value such as 2.5, 2016-11-01, true or "text"',
}
# Python refuses to convert a number with more digits.
_HUGE_INTEGER = re.compile(r"\d[\d_]{4300,}")


class Position(NamedTuple):
    """Line and column of a character in a text, from 1; columns are characters, not bytes."""

    line: int
    column: int


START = Position(1, 1)


def offset_position(text: str, offset: int) -> Position:
    """Line and column of the character at ``offset`` in a text."""
    return Position(text.count("\n", 0, offset) + 1, offset - text.rfind("\n", 0, offset))


def key_position(text: str, path: KeyPath) -> Position:
    """The position of a key in a TOML text; if the key is missing, the position of its table."""
    places = key_places(text)
    while path and path not in places:
        path = path[:-1]
    if not path:
        return START
    row, column = places[path]
    line = text.encode().split(b"\n")[row]
    return Position(row + 1, len(line[:column].decode()) + 1)


@lru_cache(maxsize=8)
def key_places(text: str) -> Mapping[KeyPath, tree_sitter.Point]:
    """The row and byte column, from 0, at which each key and each item of an array first occurs."""
    collector = _KeyCollector()
    # A loop instead of recursion, since tables may nest deeper than Python's stack.
    pending: list[_Placed] = [(_parser().parse(text.encode()).root_node, ())]
    while pending:
        pending.extend(reversed([*collector.record_keys(*pending.pop())]))
    return MappingProxyType(collector.places)


@cache
def _parser() -> tree_sitter.Parser:
    return tree_sitter.Parser(tree_sitter.Language(tree_sitter_toml.language()))


class _KeyCollector:
    def __init__(self) -> None:
        self.places: dict[KeyPath, tree_sitter.Point] = {}
        self._items: Counter[KeyPath] = Counter()

    def record_keys(self, node: tree_sitter.Node, path: KeyPath) -> Iterator[_Placed]:
        """Record the places of the keys or items of ``node``; yield its children to visit."""
        match node.type:
            case "array":
                items = (child for child in node.named_children if child.type not in _NOT_ITEMS)
                for index, item in enumerate(items):
                    yield self._record_place(item, (*path, index))
                return
            case "pair":
                _, path = self._record_key_parts(node, path)
            case "table":
                _, path = self._record_key_parts(node, ())
            case "table_array_element":
                key, path = self._record_key_parts(node, ())
                self._items[path] += 1
                _, path = self._record_place(key, self._latest_item(path))
        yield from ((child, path) for child in node.named_children if child.type not in _KEYS)

    def _record_key_parts(self, node: tree_sitter.Node, path: KeyPath) -> _Placed:
        """Record the place of each part of a key such as ``a.b.c``; return the node of ``c``."""
        pending = [child for child in node.named_children if child.type in _KEYS]
        while pending:
            part, *pending = pending
            if part.type == "dotted_key":
                pending = part.named_children + pending
            else:
                node, path = self._record_place(part, (*self._latest_item(path), _decoded(part)))
        return node, path

    def _latest_item(self, path: KeyPath) -> KeyPath:
        return (*path, self._items[path] - 1) if self._items[path] else path

    def _record_place(self, node: tree_sitter.Node, path: KeyPath) -> _Placed:
        self.places.setdefault(path, node.start_point)
        return node, path


def _decoded(key: tree_sitter.Node) -> str:
    text = (key.text or b"").decode(errors="replace")
    if key.type == "bare_key":
        return text
    try:
        return next(iter(tomli.loads(f"{text} = 0")))
    except tomli.TOMLDecodeError:
        return text


@dataclass(frozen=True)
class Document:
    """A parsed spec file, with its ``text`` to find the positions of faults."""

    kind: str
    path: Path
    text: str
    table: Mapping[str, Any]

    @property
    def id(self) -> str:
        """The id that the table states, else the file's name without its suffix."""
        identifier = self.table.get("id")
        return identifier if isinstance(identifier, str) else self.path.stem

    def fault(self, finding: Finding) -> Fault:
        """The fault that ``finding`` describes, with its position in this file."""
        return Fault(self.path, *key_position(self.text, finding.key), str(finding))

    def place(self, key: KeyPath) -> str:
        """The position of a key in this file as text for messages: ``path:line:col``."""
        position = key_position(self.text, key)
        return f"{display_path(self.path)}:{position.line}:{position.column}"


def display_path(path: Path) -> Path:
    """``path`` for messages: printable, and relative if it is below the current folder."""
    here = Path.cwd()
    return Path(printable(str(path.relative_to(here) if path.is_relative_to(here) else path)))


def read(kind: str, path: Path, within: Path) -> Document:
    """Parse a TOML file, or a link to a file in ``within``; raises SpecError with one fault."""
    try:
        text = _text(path, read_regular_file(path, within, LARGEST_BYTES))
    except ValueError as error:
        raise file_error(path, str(error)) from error
    return Document(kind, path, text, _table(path, text))


def file_error(path: Path, message: str, position: Position = START) -> SpecError:
    """The SpecError for a file or folder that cannot be read."""
    return SpecError([Fault(path, *position, message)])


def read_regular_file(path: Path, within: Path, largest_bytes: int) -> bytes:
    """The contents of a file, or of a link's target in ``within``.

    Raises ValueError for a link out of ``within``, and for a file that is missing, unreadable,
    larger than ``largest_bytes`` or not regular.
    """
    try:
        # Resolving a path is slow, and only needed if a part of it is a link.
        linked = any(place.is_symlink() for place in (path, *path.parents[:2]))
        if linked and not path.resolve(strict=True).is_relative_to(within.resolve()):
            folder = display_path(within)
            raise ValueError(f"should stay in the folder {folder}, got a link out of it")
        status = path.stat()
        if not stat.S_ISREG(status.st_mode):
            raise ValueError("should be a regular file")
        if status.st_size > largest_bytes:
            raise ValueError(f"should be at most {largest_bytes:,} bytes, got {status.st_size:,}")
        return path.read_bytes()
    except (OSError, RuntimeError) as error:  # a loop of links is a RuntimeError before Python 3.13
        reason = error.strerror if isinstance(error, OSError) else "its links form a loop"
        raise ValueError(f"cannot be read: {reason}") from error


def _text(path: Path, contents: bytes) -> str:
    try:
        text = contents.decode()
    except UnicodeDecodeError as error:
        before = contents[: error.start].decode()
        got = f"got the byte 0x{contents[error.start]:02x}"
        position = offset_position(before, len(before))
        raise file_error(path, f"should be UTF-8, {got}: save it as UTF-8", position) from error
    if text.startswith(_BYTE_ORDER_MARK):
        raise file_error(
            path, "should be UTF-8 without a byte order mark, got one: save it without"
        )
    if "\0" in text:
        position = offset_position(text, text.index("\0"))
        raise file_error(path, "should be text, got a NUL byte", position)
    if not text.strip():
        raise file_error(path, "should contain a spec, got an empty file")
    if conflict := _CONFLICT.search(text):
        position = offset_position(text, conflict.start())
        raise file_error(path, f"should be merged, got the conflict marker {conflict[1]}", position)
    return text


def _table(path: Path, text: str) -> Mapping[str, Any]:
    try:
        return tomli.loads(text, parse_float=_decimal_or_infinity)
    except tomli.TOMLDecodeError as error:
        position = Position(error.lineno, error.colno)
        raise file_error(path, f"invalid TOML: {_toml_error_reason(error)}", position) from error
    except RecursionError as error:
        raise file_error(path, "should have fewer nested tables and arrays") from error
    except ValueError as error:
        huge = _HUGE_INTEGER.search(text)
        position = offset_position(text, huge.start()) if huge else START
        raise file_error(path, "should have no number of thousands of digits", position) from error


def _toml_error_reason(error: tomli.TOMLDecodeError) -> str:
    for beginning, words in _REWORDED.items():
        if error.msg.startswith(beginning):
            return words
    rest = error.doc[error.pos :].partition("\n")[0].strip()
    got = describe(rest) if rest else "the end of the line"
    reason = _CLEARER.get(error.msg, error.msg)
    return f"{reason[:1].lower()}{reason[1:]}, got {got}"


def _decimal_or_infinity(digits: str) -> Decimal:
    try:
        return Decimal(digits)
    except InvalidOperation:
        # The number is beyond Decimal's range. Every spec refuses infinity.
        return Decimal("Infinity")
