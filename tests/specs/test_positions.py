"""The scanner's places against texts whose places are plain to see, and against tomli's keys."""

from __future__ import annotations

from typing import Any

import pytest
import tomli
from hypothesis import given
from hypothesis import strategies as st

from epochcost.specs.document import Position, key_position, key_positions, offset_position
from epochcost.specs.wording import KeyPath

TEXT = """\
top = 1
b.c."d e" = "x"
[table]
'é' = "é"; "z" = 1
inline = { one = 1, 'two'.three = [1, { four = 4 }] }
[table.sub]
list = [
  "a", # a comment is no item
  "b",
]
[[rows]]
n = 1
[[rows]]
n = 2
[rows.part]
m = 1
[[rows.deep]]
k = 1
[[rows.deep]]
k = 2
""".replace("""'é' = "é"; "z" = 1\n""", """'é' = { "é" = 1, "\\u007a" = 1 }\n""")
PLACES: list[tuple[KeyPath, tuple[int, int]]] = [
    (("top",), (1, 1)),
    (("b",), (2, 1)),
    (("b", "c"), (2, 3)),
    (("b", "c", "d e"), (2, 5)),
    (("table",), (3, 2)),
    (("table", "é", "é"), (4, 9)),
    (("table", "é", "z"), (4, 18)),
    (("table", "inline", "one"), (5, 12)),
    (("table", "inline", "two"), (5, 21)),
    (("table", "inline", "two", "three"), (5, 27)),
    (("table", "inline", "two", "three", 0), (5, 36)),
    (("table", "inline", "two", "three", 1, "four"), (5, 41)),
    (("table", "sub"), (6, 8)),
    (("table", "sub", "list", 1), (9, 3)),
    (("rows",), (11, 3)),
    (("rows", 0, "n"), (12, 1)),
    (("rows", 1), (13, 3)),
    (("rows", 1, "n"), (14, 1)),
    (("rows", 1, "part", "m"), (16, 1)),
    (("rows", 1, "deep", 0), (17, 8)),
    (("rows", 1, "deep", 1, "k"), (20, 1)),
]


@pytest.mark.parametrize(("path", "place"), PLACES, ids=str)
def test_place(path: KeyPath, place: tuple[int, int]) -> None:
    """Every way of writing a key has its line and column, in characters."""
    assert key_positions(TEXT)[path] == place


def test_a_long_line_is_not_read_again_for_each_item() -> None:
    """The items of an array as long as a spec may be have their columns, in characters."""
    items = 190_000
    places = key_positions("x = [" + '"é",' * items + "]\n")
    assert places["x", items - 1] == Position(1, 6 + 4 * (items - 1))


def test_every_key_of_tomli_has_a_place() -> None:
    """The scanner and the parser agree about which keys and items there are."""
    assert set(_paths(tomli.loads(TEXT))) == {(), *key_positions(TEXT)}


def _paths(value: Any, path: KeyPath = ()) -> list[KeyPath]:
    items: Any = ()
    if isinstance(value, dict):
        items = value.items()
    elif isinstance(value, list):
        items = enumerate(value)
    return [path, *(found for key, item in items for found in _paths(item, (*path, key)))]


def test_missing_key_is_placed_at_its_table() -> None:
    """A key that is not there has the place of the nearest table around it, or the start."""
    assert key_position(TEXT, ("rows", 1, "part", "missing")) == (15, 7)
    assert key_position(TEXT, ("nowhere", "at all")) == (1, 1)


def test_offset() -> None:
    """An offset in a text becomes a line and a column that count from 1."""
    assert [offset_position("ab\nc", offset) for offset in range(4)] == [
        (1, 1),
        (1, 2),
        (1, 3),
        (2, 1),
    ]


def test_newer_toml_still_has_places() -> None:
    """Line ends in an inline table, which newer TOML allows, leave the keys their places."""
    assert key_positions("a = {\n  b = 1,\n}\nc = 2\n")[("a", "b")] == Position(2, 3)


@given(st.text())
def test_any_text_can_be_scanned(text: str) -> None:
    """Whatever the text, a scan ends, and its places are within the text."""
    lines = text.split("\n")
    for line, column in key_positions(text).values():
        assert 1 <= column <= len(lines[line - 1]) + 1
