"""The project's specs after any damage give faults and no other errors."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from epochcost.errors import Fault
from epochcost.specs.loader import check_paths
from fault_words import is_ours

SPECS = Path(__file__).parents[2] / "specs"
FILES = sorted(path.relative_to(SPECS) for path in SPECS.rglob("*.toml"))
# Kinds first: there are many more prices than studies.
A_FILE = st.sampled_from(sorted({path.parts[0] for path in FILES})).flatmap(
    lambda kind: st.sampled_from([path for path in FILES if path.parts[0] == kind])
)
VALUES = [
    *('""', '"x"', "0", "-1", "1.5", "nan", "-inf", "1e400", "true", "[]", "[[]]", "{}", '["x"]'),
    *("2016-11-01", "2016-11-01T00:00:00Z", "10:00:00", "0xffffffffffffffffffff", "[1, 'x', {}]"),
    *("{ classes = 2 }", "{ low = 1, high = 0 }", '{ name = "cosine", warm_up_steps = -1 }'),
    *('[{ loss = "mse" }]', '[{ input = "x", output = "x" }]', "{ sequence = 0 }", '"own_output"'),
    *('{ name = "sgd" }', "{ name = [] }", "{ a.b.c = 1 }", '"\\u0000"', '"../../etc/passwd"'),
    *("[{}]", '[{ id = "x" }]', '"é"', '"local"', '"p2.xlarge"', "'''\nx'''"),
]
_PAIR = re.compile(r"^([\w.]+ = )(.+)$", re.MULTILINE)


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the specs that tests damage."""
    folder = tmp_path_factory.mktemp("project") / "specs"
    shutil.copytree(SPECS, folder)
    return folder


def faults_of(copy: Path, name: Path, contents: bytes) -> tuple[Fault, ...]:
    """The faults of the copy with one file damaged. The file is restored afterwards."""
    (copy / name).write_bytes(contents)
    try:
        return check_paths([copy]).faults
    finally:
        (copy / name).write_bytes((SPECS / name).read_bytes())


def assert_readable(faults: tuple[Fault, ...], name: Path, contents: bytes) -> None:
    """Require one line without the library's words for each fault, and places within the file."""
    lines = contents.count(b"\n") + 1
    for fault in faults:
        assert str(fault).isprintable()
        assert is_ours(fault.message)
        assert fault.column >= 1
        if fault.path.name == name.name:
            assert 1 <= fault.line <= lines


NO_DEADLINE = settings(deadline=None, max_examples=12)


@NO_DEADLINE
@given(data=st.data())
def test_damaged_bytes(copy: Path, data: st.DataObject) -> None:
    """Cut, doubled and overwritten bytes give readable faults and no other error."""
    name = data.draw(A_FILE)
    before = (SPECS / name).read_bytes()
    start, end = sorted(data.draw(st.tuples(*[st.integers(0, len(before))] * 2)))
    middle = data.draw(st.sampled_from([b"", before[start:end] * 2]) | st.binary(max_size=8))
    contents = before[:start] + middle + before[end:]
    assert_readable(faults_of(copy, name, contents), name, contents)


@NO_DEADLINE
@given(data=st.data())
def test_damaged_values(copy: Path, data: st.DataObject) -> None:
    """A value replaced by any other gives readable faults and no other error."""
    name = data.draw(A_FILE)
    text = (SPECS / name).read_text(encoding="utf-8")
    pair = data.draw(st.sampled_from(list(_PAIR.finditer(text))))
    value = data.draw(st.sampled_from(VALUES))
    contents = (text[: pair.start(2)] + value + text[pair.end(2) :]).encode()
    assert_readable(faults_of(copy, name, contents), name, contents)


@NO_DEADLINE
@given(data=st.data())
def test_misspelt_keys(copy: Path, data: st.DataObject) -> None:
    """A key with one letter too many is a fault at the key that suggests the right one."""
    name = data.draw(A_FILE)
    text = (SPECS / name).read_text(encoding="utf-8")
    pair = data.draw(st.sampled_from(list(_PAIR.finditer(text))))
    key = pair[1].removesuffix(" = ")
    contents = (text[: pair.start()] + f"{key}x = {pair[2]}" + text[pair.end() :]).encode()
    line = text.count("\n", 0, pair.start()) + 1
    faults = faults_of(copy, name, contents)
    assert_readable(faults, name, contents)
    expected = f'{key}x: unknown key; did you mean "{key}"?'
    assert any(fault.line == line and fault.message.endswith(expected) for fault in faults)
