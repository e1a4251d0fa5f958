"""Where the keys of a TOML text stand: key path → line and column, consulted when there is a fault.

The values come from tomli, which keeps no positions; this scanner reads the same text with
tree-sitter and gives positions only.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import cache, lru_cache
from itertools import chain
from types import MappingProxyType
from typing import NamedTuple

import tomli
import tree_sitter
import tree_sitter_toml

from epochcost.specs.wording import KeyPath


class Position(NamedTuple):
    """Line and column of a character; both count from 1, columns in characters."""

    line: int
    column: int


START = Position(1, 1)
_KEYS = ("bare_key", "quoted_key", "dotted_key")
_NOT_ITEMS = ("comment", "ERROR")


def offset_position(text: str, offset: int) -> Position:
    """The position of a character of a text."""
    return Position(text.count("\n", 0, offset) + 1, offset - text.rfind("\n", 0, offset))


def key_position(text: str, path: KeyPath) -> Position:
    """Where a key stands, or the nearest table around it that has a place in the text."""
    places = key_positions(text)
    while path and path not in places:
        path = path[:-1]
    return places.get(path, START)


@lru_cache(maxsize=8)
def key_positions(text: str) -> Mapping[KeyPath, Position]:
    """The first position of every key, and of every item of an array."""
    source = text.encode()
    scanner = _Scanner(source.split(b"\n"))
    # A loop and a list, for a text may nest deeper than Python's stack.
    pending: list[_Placed] = [(syntax_tree(source), ())]
    while pending:
        pending.extend(reversed([*scanner.inside(*pending.pop())]))
    return MappingProxyType(scanner.found)


def syntax_tree(source: bytes) -> tree_sitter.Node:
    """The document in UTF-8 as tree-sitter's grammar of TOML sees it."""
    return _parser().parse(source).root_node


def key_parts(node: tree_sitter.Node) -> tuple[str, ...]:
    """The parts of the key that a pair or the header of a table begins with."""
    keys = (child for child in node.named_children if child.type in _KEYS)
    return tuple(_decoded(part) for key in keys for part in _parts(key))


@cache
def _parser() -> tree_sitter.Parser:
    return tree_sitter.Parser(tree_sitter.Language(tree_sitter_toml.language()))


_Placed = tuple[tree_sitter.Node, KeyPath]


class _Scanner:
    """Positions found so far, and how many items each array of tables has by now."""

    def __init__(self, lines: list[bytes]) -> None:
        self.found: dict[KeyPath, Position] = {}
        self._lines = lines
        self._items: Counter[KeyPath] = Counter()
        self._inner: dict[int, Sequence[int]] = {}

    def inside(self, node: tree_sitter.Node, path: KeyPath) -> Iterator[_Placed]:
        """The nodes within a node that may hold keys, each with the path that leads to it."""
        match node.type:
            case "array":
                items = (child for child in node.named_children if child.type not in _NOT_ITEMS)
                for index, item in enumerate(items):
                    yield self._place(item, (*path, index))
                return
            case "pair":
                _, path = self._named(node, path)
            case "table":
                _, path = self._named(node, ())
            case "table_array_element":
                key, path = self._named(node, ())
                self._items[path] += 1
                _, path = self._place(key, self._latest_item(path))
        yield from ((child, path) for child in node.named_children if child.type not in _KEYS)

    def _named(self, node: tree_sitter.Node, path: KeyPath) -> _Placed:
        """The last part of the key that a pair or a header begins with; each part is placed."""
        keys = (child for child in node.named_children if child.type in _KEYS)
        for part in chain.from_iterable(map(_parts, keys)):
            node, path = self._place(part, (*self._latest_item(path), _decoded(part)))
        return node, path

    def _latest_item(self, path: KeyPath) -> KeyPath:
        return (*path, self._items[path] - 1) if self._items[path] else path

    def _place(self, node: tree_sitter.Node, path: KeyPath) -> _Placed:
        row, column = node.start_point
        characters = column - bisect_left(self._inner_bytes(row), column)
        self.found.setdefault(path, Position(row + 1, characters + 1))
        return node, path

    def _inner_bytes(self, row: int) -> Sequence[int]:
        """Where a line has bytes that begin no character; found once, for lines may be long."""
        if row not in self._inner:
            line = self._lines[row]
            found = (
                () if line.isascii() else [i for i, byte in enumerate(line) if byte >> 6 == 0b10]
            )
            self._inner[row] = found
        return self._inner[row]


def _parts(key: tree_sitter.Node) -> Iterator[tree_sitter.Node]:
    pending = [key]
    while pending:
        node = pending.pop()
        if node.type == "dotted_key":
            pending.extend(reversed(node.named_children))
        else:
            yield node


def _decoded(key: tree_sitter.Node) -> str:
    text = (key.text or b"").decode(errors="replace")
    if key.type == "bare_key":
        return text
    try:
        return next(iter(tomli.loads(f"{text} = 0")))
    except tomli.TOMLDecodeError:
        return text
