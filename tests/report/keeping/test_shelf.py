"""Kept values: read under their key, and never when damaged."""

from __future__ import annotations

from pathlib import Path

import pytest

from epochcost.report.keeping.shelf import Shelf, digest


def test_a_value_is_read_under_its_key_only(tmp_path: Path) -> None:
    """Another key finds nothing, though a value is kept for the name."""
    shelf = Shelf(tmp_path / "shelf")
    shelf.write("page.md", digest("one"), {"html": "<p>é"})
    assert shelf.read("page.md", digest("one")) == {"html": "<p>é"}
    assert shelf.has("page.md", digest("one"))
    assert shelf.read("page.md", digest("two")) is None
    assert not shelf.has("page.md", digest("two"))
    assert shelf.read("other.md", digest("one")) is None


def test_a_path_of_undecoded_bytes_is_kept(tmp_path: Path) -> None:
    """As Python holds the name of a folder that no encoding explains."""
    shelf = Shelf(tmp_path)
    shelf.write("name", "key", ["caf\udce9", "é"])
    assert shelf.read("name", "key") == ["caf\udce9", "é"]


@pytest.mark.parametrize("damage", [b"", b"no head", b"\xff\xfe\n{}", None])
def test_a_damaged_value_is_none(tmp_path: Path, damage: bytes | None) -> None:
    """Emptied, overwritten or changed by one letter: it is as if nothing were kept."""
    shelf = Shelf(tmp_path)
    shelf.write("page.md", "key", "content")
    (path,) = tmp_path.iterdir()
    path.write_bytes(path.read_bytes().replace(b"cont", b"cant") if damage is None else damage)
    assert shelf.read("page.md", "key") is None


def test_tidying_drops_what_was_not_asked_for(tmp_path: Path) -> None:
    """A page that the site no longer has leaves nothing behind."""
    earlier = Shelf(tmp_path)
    earlier.write("gone.md", "key", 1)
    earlier.write("stays.md", "key", 2)
    later = Shelf(tmp_path)
    assert later.read("stays.md", "key") == 2
    later.tidy()
    assert len(list(tmp_path.iterdir())) == 1
    assert later.read("stays.md", "key") == 2
