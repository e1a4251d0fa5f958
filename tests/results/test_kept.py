"""Values that take long to compute are kept under a key of all that they depend on."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest
from pydantic import TypeAdapter

from epochcost.results import kept
from epochcost.results.kept import Keep

KEEP = Keep("numbers", TypeAdapter(tuple[str, tuple[float, ...]]), ("units.py",))
VALUE = (0.1 + 0.2, math.inf)


def refuse() -> tuple[float, ...]:
    """Fail, since the value should be kept."""
    pytest.fail("computed a value that was kept")


def test_a_value_is_computed_once(tmp_path: Path) -> None:
    """A value is computed once and kept exactly, infinity included."""
    folder = tmp_path / "made"
    assert KEEP.value(folder, ("a", 1), lambda: VALUE) == VALUE
    assert KEEP.value(folder, ("a", 1), refuse) == VALUE
    assert KEEP.value(folder, ("a", 2), lambda: (1.0,)) == (1.0,)
    assert [file.suffix for file in folder.iterdir()] == [".json"] * 2


@pytest.mark.parametrize("edited", ["package/module.py", "statistics/interval.py", "units.py"])
def test_an_edit_of_the_code_finds_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, edited: str
) -> None:
    """After an edit of the code that computes a value, the value is computed again."""
    for folder in ("package", "statistics"):
        (tmp_path / folder).mkdir()
    (tmp_path / "units.py").touch()
    module = tmp_path / edited
    module.write_text("A = 1\n")
    monkeypatch.setattr(kept, "_ROOT", tmp_path)
    kept._code_digest.cache_clear()
    keep = Keep("numbers", KEEP.form, ("package",))
    assert keep.value(tmp_path / "kept", "a", lambda: VALUE) == VALUE
    module.write_text("A = 2\n")
    kept._code_digest.cache_clear()
    assert keep.value(tmp_path / "kept", "a", lambda: (2.0,)) == (2.0,)


@pytest.mark.parametrize("foreign", [b"", b"{", b"[1, 2]", b'["a", "b"]', b"\xff"])
def test_a_damaged_file_is_computed_again(tmp_path: Path, foreign: bytes) -> None:
    """A damaged file is computed again and replaced."""
    KEEP.value(tmp_path, "a", lambda: VALUE)
    (file,) = tmp_path.iterdir()
    file.write_bytes(foreign)
    assert KEEP.value(tmp_path, "a", lambda: VALUE) == VALUE
    assert KEEP.value(tmp_path, "a", refuse) == VALUE


def test_a_file_under_another_name_is_not_taken(tmp_path: Path) -> None:
    """A file with another value's key inside is not used."""
    KEEP.value(tmp_path, "a", lambda: VALUE)
    (file,) = tmp_path.iterdir()
    text = file.read_text()
    file.unlink()
    KEEP.value(tmp_path, "b", lambda: (2.0,))
    (other,) = tmp_path.iterdir()
    assert json.loads(text)[0] != json.loads(other.read_text())[0]
    other.write_text(text)
    assert KEEP.value(tmp_path, "b", lambda: (2.0,)) == (2.0,)


def test_without_a_folder_nothing_is_kept(tmp_path: Path) -> None:
    """Without a folder, or with a file in its place, every value is computed."""
    place = tmp_path / "file"
    place.write_text("")
    for folder in (None, place):
        for value in (VALUE, (2.0,)):
            assert KEEP.value(folder, "a", lambda value=value: value) == value
