"""Damaged specs: every kind of file, damaged in every way that hands and tools do it.

Every damage is tried on one kind of file, and under `make test-all` on each.

Each gives a fault at its place, in words that name what was expected; what cannot be placed better
than in the file is placed at its beginning. How long the largest take is measured by
benchmarks/check.py.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from epochcost.specs.loader import check_paths
from fault_words import is_ours

if TYPE_CHECKING:
    from conftest import Project

# The files of the fixture, and one of each kind that it has not; the id is the first line of all.
OTHERS = {
    "specs/grids/here.toml": (
        'id = "here"\nname = "Here"\nkg_co2e_per_kwh = 0.05\nyear = 2023\nsource = "a table"\n'
    ),
    "specs/datasets/digits.toml": (
        'id = "digits"\nname = "Digits"\nexample = "an image"\nshape = "28 x 28"\n'
        "training_examples = 60_000\nheld_out_examples = 10_000\nclasses = 10\n"
        'source = "a count"\n'
    ),
}
FILES = (
    "specs/hardware/box.toml",
    "specs/prices/box.toml",
    "specs/models/mlp.toml",
    "specs/studies/first.toml",
    "specs/published/paper.toml",
    *OTHERS,
)
Damage = Callable[[str], str | bytes]


def _id(value: str) -> Damage:
    """Another value for the id, on the first line."""
    return lambda text: f"id = {value}\n" + text.partition("\n")[2]


def _first(line: str) -> Damage:
    """Another first line."""
    return lambda text: f"{line}\n" + text.partition("\n")[2]


def _end(more: str) -> Damage:
    return lambda text: f"{text}{more}\n"


def _start(more: str) -> Damage:
    return lambda text: f"{more}\n{text}"


NOT_A_TEXT = "id: should be a text in quotes, got "
# name → (damage, line: None for anywhere in the file, what is said)
DAMAGES: dict[str, tuple[Damage, int | None, str]] = {
    # keys
    "misspelt key": (_first('idd = "x"'), 1, 'idd: unknown key; did you mean "id"?'),
    "capital key": (_first('Id = "x"'), 1, 'Id: unknown key; did you mean "id"?'),
    "missing key": (lambda text: text.partition("\n")[2], 1, "id: required key is missing"),
    "extra key": (_start("zzz = 1"), 1, "zzz: unknown key; known: "),
    "extra table": (_end("[zzz]\nx = 1"), None, "zzz: unknown key; known: "),
    "extra array of tables": (_end("[[zzz]]\nx = 1"), None, "zzz: unknown key; known: "),
    "key with dots": (_first('id.x = "x"'), 1, f"{NOT_A_TEXT}a table"),
    "empty key": (_start('"" = 1'), 1, '"": unknown key; known: '),
    "key twice": (_start('id = "x"'), 2, "a key appears twice in its table"),
    "table twice": (_end("[zzz]\n[zzz]"), None, "invalid TOML: cannot declare ("),
    "key without value": (_first("id ="), 1, "invalid TOML: invalid value, got the end of the"),
    "value without key": (_first('= "x"'), 1, "invalid TOML: invalid statement, got"),
    # values
    "number": (_id("1"), 1, f"{NOT_A_TEXT}1"),
    "decimal": (_id("1.5"), 1, f"{NOT_A_TEXT}1.5"),
    "not a number": (_id("nan"), 1, f"{NOT_A_TEXT}nan"),
    "truth": (_id("true"), 1, f"{NOT_A_TEXT}true"),
    "date": (_id("2016-11-01"), 1, f"{NOT_A_TEXT}2016-11-01"),
    "array": (_id('["x"]'), 1, f"{NOT_A_TEXT}an array of 1"),
    "table": (_id("{}"), 1, f"{NOT_A_TEXT}a table"),
    "no quotes": (_id("box"), 1, "invalid TOML: invalid value, got "),
    "curly quotes": (_id("\u201cbox\u201d"), 1, "invalid TOML: invalid value, got "),
    "open quotes": (_id('"box'), 1, "a text in quotes should end on its line"),
    "open array": (_end("zzz = [1,"), None, "invalid TOML: "),
    "empty text": (_id('""'), 1, "id: should be an id: lower-case letters"),
    "spaces": (_id('"a box"'), 1, "id: should be an id: lower-case letters"),
    "capitals": (_id('"Box"'), 1, "id: should be an id: lower-case letters"),
    "a path": (_id('"../../etc/passwd"'), 1, "id: should be an id: lower-case letters"),
    "control character": (_id('"a\\u0007"'), 1, "id: should be an id: lower-case letters"),
    "huge number": (_id("9" * 5000), 1, "should contain no number of thousands of digits"),
    # other languages
    "YAML": (_first("id: box"), 1, "invalid TOML: "),
    "JSON": (_first('{"id": "box"}'), 1, "invalid TOML: "),
    "HTML": (_start("<!DOCTYPE html>"), 1, "invalid TOML: invalid statement, got"),
    "semicolon": (_first('id = "box";'), 1, "invalid TOML: expected newline or end of document"),
    # merges
    "conflict begins": (_start("<<<<<<< HEAD"), 1, "should be merged, got a conflict marker <<<<"),
    "conflict ends": (_end(">>>>>>> main"), None, "should be merged, got a conflict marker >>>>"),
    "common ancestor": (_start("||||||| x"), 1, "should be merged, got a conflict marker ||||"),
    "separator left": (_start("======="), 1, "invalid TOML: invalid statement, got"),
    # encodings
    "UTF-16": (lambda text: text.encode("utf-16"), 1, "should be UTF-8, got the byte 0xff"),
    "Latin-1": (lambda text: b'\xe9 = "x"\n' + text.encode(), 1, "should be UTF-8, got the byte"),
    "byte order mark": (lambda text: f"\ufeff{text}", 1, "without a byte order mark, got one"),
    "NUL": (_start("\0"), 1, "should be text, got a NUL byte"),
    "old line ends": (lambda text: text.replace("\n", "\r"), 1, "invalid TOML: "),
    # sizes
    "empty file": (lambda _: "", 1, "should contain a spec, got an empty file"),
    "blank file": (lambda _: " \n\t\n", 1, "should contain a spec, got an empty file"),
    "comments only": (lambda _: "# id\n", 1, "id: required key is missing"),
    "a text of a megabyte": (_id(f'"{"x" * 990_000}"'), 1, "id: should be an id: lower-case"),
    "over a megabyte": (_end("#" * 1_000_000), 1, "should be at most 1000000 bytes, got 1000"),
    "10,000 keys": (_start("".join(f"z{i} = 1\n" for i in range(10_000))), 1, "z0: unknown key"),
    "10,000 items": (_id(f"[{'1, ' * 10_000}]"), 1, f"{NOT_A_TEXT}an array of 10000"),
    "10,000 levels": (_id("[" * 10_000), 1, "should nest tables and arrays less deeply"),
}


@pytest.fixture
def all_kinds(project: Project) -> Project:
    """A valid file of every kind."""
    for name, text in OTHERS.items():
        project.write(name, text)
    return project


@pytest.mark.parametrize(
    ("name", "damage"),
    [
        pytest.param(name, damage, marks=[] if place % len(FILES) == number else pytest.mark.slow)
        for number, name in enumerate(FILES)
        for place, damage in enumerate(DAMAGES)
    ],
)
def test_a_damaged_file(all_kinds: Project, name: str, damage: str) -> None:
    """The fault stands in the damaged file, at its line, in words of ours."""
    damaged, line, words = DAMAGES[damage]
    contents = damaged((all_kinds.root / name).read_text(encoding="utf-8"))
    path = all_kinds.write(name, contents)
    faults = [one for one in check_paths([Path("specs")]).faults if one.path.name == path.name]
    said = [one for one in faults if words in one.message]
    assert said, [one.message for one in faults][:3]
    assert line is None or line in {one.line for one in said}
    lines = path.read_bytes().count(b"\n") + 1
    for one in faults:
        assert str(one).isprintable()
        assert len(str(one)) < 600
        assert is_ours(one.message.removeprefix("invalid TOML: "))
        assert 1 <= one.line <= lines
