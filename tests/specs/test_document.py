"""Files that give no table are one fault each, whatever their bytes or folder."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from epochcost.specs.document import LARGEST_BYTES

if TYPE_CHECKING:
    from conftest import Project
from typing import Any

import tomli

from epochcost.specs.document import key_places, key_position
from epochcost.specs.wording import KeyPath

NAME = "specs/prices/odd.toml"
END = 'expected a line to end after a value such as 2.5, 2016-11-01 or "text"'
VALUE = 'expected a value such as 2.5, 2016-11-01, true or "text"'
KEY_TWICE = "a key appears twice in its table, or a [header] above it is missing"
TABLE_TWICE = "a table appears twice, or is already a value"
BYTES = [
    (b"", "1:1: should contain a spec, got an empty file"),
    (b" \n\n", "1:1: should contain a spec, got an empty file"),
    (
        b'\xef\xbb\xbfid = "odd"',
        "1:1: should be UTF-8 without a byte order mark, got one: save it without",
    ),
    (b'id = "odd"\nname = "caf\xe9"', "2:12: should be UTF-8, got the byte 0xe9: save it as UTF-8"),
    ('id = "odd"'.encode("utf-16"), "1:1: should be UTF-8, got the byte 0xff: save it as UTF-8"),
    (b'id = "odd"\nname = "\x00"', "2:9: should be text, got a NUL byte"),
    (b"id = ", f"1:6: invalid TOML: {VALUE}, got the end of the line"),
    (b"a = 1\r\nb = $1\r\n", f'2:5: invalid TOML: {VALUE}, got "$1"'),
    (b"a = 2,312", f'1:6: invalid TOML: {END}, got ",312"'),
    (b"a = 20.11.2026", f'1:10: invalid TOML: {END}, got ".2026"'),
    (b"a = 2026-02-30", '1:5: invalid TOML: expected a date such as 2016-11-01, got "2026-02-30"'),
    (
        b"// a price",
        '1:1: invalid TOML: expected a key, a [header] or a # comment, got "// a price"',
    ),
    (b'id = "odd"\r\nid = "odd"', f"2:11: invalid TOML: {KEY_TWICE}"),
    (b"a = { b = 1, b = 2 }", f"1:19: invalid TOML: {KEY_TWICE}"),
    (b"[a]\n[b]\n[a]", f"3:3: invalid TOML: {TABLE_TWICE}"),
    (b"a = {}\n[a]\nb = 1", f"2:3: invalid TOML: {TABLE_TWICE}"),
    (
        b"id = [1,\n2",
        "2:2: invalid TOML: expected a comma or ] after an item, got the end of the line",
    ),
    (
        b"a = { b = 1 c = 2 }",
        '1:13: invalid TOML: expected a comma or } after a value, got "c = 2 }"',
    ),
    (b'a = "b\n', "1:7: invalid TOML: a text in quotes should end on its line"),
    (
        b'id = "a"\n<<<<<<< HEAD\namount = 1\n=======\namount = 2\n>>>>>>> topic\n',
        "2:1: should be merged, got the conflict marker <<<<<<<",
    ),
    (b'id = "a"\n>>>>>>>\n', "2:1: should be merged, got the conflict marker >>>>>>>"),
    # As many lines as a file may have: looking for what its id might be takes no time either.
    (
        b"\n" * 900_000 + b"x",
        "900001:2: invalid TOML: expected '=' after a key in a key/value "
        "pair, got the end of the line",
    ),
    (b"a = " + b"[" * 5000 + b"]" * 5000, "1:1: should have fewer nested tables and arrays"),
    (b"a." * 5000 + b"a = 1", "1:1: should have fewer nested tables and arrays"),
    (b"a = 1\nb = " + b"1" * 5000, "2:5: should have no number of thousands of digits"),
    (b"#" * 1_000_001, f"1:1: should be at most {LARGEST_BYTES:,} bytes, got 1,000,001"),
]


@pytest.mark.parametrize(("contents", "line"), BYTES, ids=[row[1] for row in BYTES])
def test_bytes_that_give_no_table(project: Project, contents: bytes, line: str) -> None:
    """The first error in a file that is not TOML is its only fault."""
    project.write(NAME, contents)
    assert project.faults() == [f"{NAME}:{line}"]


def test_deepest_table_that_parses_is_faulted_in_its_place(project: Project) -> None:
    """The deepest nesting that parses gives a fault at its place and no recursion error."""
    project.write(NAME, 'id = "odd"\nx = ' + "[" * 300 + "]" * 300)
    assert any(line.startswith(f"{NAME}:2:1: x: unknown key") for line in project.faults())


def test_link_out_of_the_folder(project: Project, tmp_path_factory: pytest.TempPathFactory) -> None:
    """A link to a file outside the specs is refused without reading the file."""
    target = tmp_path_factory.mktemp("secret") / "secret.toml"
    target.write_text('id = "odd"', encoding="utf-8")
    (project.root / NAME).symlink_to(target)
    demand = "should stay in the folder specs, got a link out of it"
    assert project.faults() == [f"{NAME}:1:1: {demand}"]


def test_link_within_the_folder_is_followed(project: Project) -> None:
    """A link to another spec has the same id, which is a duplicate."""
    (project.root / NAME).symlink_to("box.toml")
    assert [line.split(": ")[0] for line in project.faults()] == [
        "specs/prices/box.toml:1:1",
        f"{NAME}:1:1",
    ]


def test_links_that_lead_nowhere(project: Project) -> None:
    """A broken link and a loop of links are faults."""
    (project.root / NAME).symlink_to("gone.toml")
    assert project.faults() == [f"{NAME}:1:1: cannot be read: No such file or directory"]
    (project.root / NAME).unlink()
    (project.root / NAME).symlink_to("odd.toml")
    (line,) = project.faults()
    assert line.startswith(f"{NAME}:1:1: cannot be read: ")


def test_pipe_is_not_waited_for(project: Project) -> None:
    """A named pipe is refused without opening it."""
    os.mkfifo(project.root / NAME)
    assert project.faults() == [f"{NAME}:1:1: should be a regular file"]


@pytest.fixture
def unprivileged() -> Iterator[Path]:
    """A folder that all users may enter, in a process without the rights of root."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        before = os.geteuid()
        if before == 0:
            os.seteuid(65_534)  # nobody
        try:
            yield folder
        finally:
            os.seteuid(before)


def test_unreadable_files_and_folders(
    project: Project, unprivileged: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Files that cannot be read are named, and all others are checked."""
    nobody = os.geteuid()
    os.seteuid(os.getuid())
    other = type(project)(unprivileged)
    secret = other.write("specs/prices/secret.toml", 'id = "secret"')
    closed = other.write("specs/hardware/closed/box.toml", 'id = "box"').parent
    for path in (secret, closed):
        path.chmod(0)
    for folder in ("specs", "specs/prices", "specs/hardware"):
        (unprivileged / folder).chmod(0o755)
    monkeypatch.chdir(unprivileged)
    os.seteuid(nobody)
    lines = other.faults()
    os.seteuid(os.getuid())
    closed.chmod(0o755)
    assert lines == [
        "specs/hardware/closed:1:1: cannot be read: Permission denied",
        "specs/prices/secret.toml:1:1: cannot be read: Permission denied",
    ]


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
    """Every way to write a key has its line and its column in characters."""
    assert path in key_places(TEXT)
    assert key_position(TEXT, path) == place


def test_every_key_of_tomli_has_a_place() -> None:
    """The scanner finds exactly the keys and items that the parser finds."""
    assert set(_paths(tomli.loads(TEXT))) == {(), *key_places(TEXT)}


def _paths(value: Any, path: KeyPath = ()) -> list[KeyPath]:
    items: Any = ()
    if isinstance(value, dict):
        items = value.items()
    elif isinstance(value, list):
        items = enumerate(value)
    return [path, *(found for key, item in items for found in _paths(item, (*path, key)))]


def test_missing_key_is_placed_at_its_table() -> None:
    """A missing key has the place of the nearest table around it, or the file's start."""
    assert key_position(TEXT, ("rows", 1, "part", "missing")) == (15, 7)
    assert key_position(TEXT, ("nowhere", "at all")) == (1, 1)
