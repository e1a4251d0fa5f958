"""The cache of drawn charts."""

from __future__ import annotations

from pathlib import Path

import pytest

from epochcost import units
from epochcost.errors import CapabilityError
from epochcost.report.charts import drawing
from epochcost.report.charts.drawing import Drawer
from report_charts import CHARTS


def test_what_is_drawn_is_not_drawn_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A later build reads the cached drawings and deletes those that it does not use."""
    drawn = [Drawer(tmp_path).draw(CHARTS[name]) for name in list(CHARTS)[:2]]
    monkeypatch.setattr(drawing, "_draw", lambda figure: pytest.fail(figure.id))
    later = Drawer(tmp_path)
    assert later.draw(next(iter(CHARTS.values()))) == drawn[0]
    later.tidy()
    assert len(list(tmp_path.iterdir())) == 1


def test_charts_are_drawn_again_after_a_change_of_units(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The key of a drawing contains the code that writes units of time and currencies."""
    figure, digest = next(iter(CHARTS.values())), drawing._versions_and_code_digest.__wrapped__
    monkeypatch.setattr(drawing, "_versions_and_code_digest", digest)
    Drawer(tmp_path).draw(figure)
    assert Path(units.__file__) in drawing._CODE
    monkeypatch.setattr(drawing, "_CODE", drawing._CODE[:-1])
    Drawer(tmp_path).draw(figure)
    assert len(list(tmp_path.glob("*.json"))) == 2


def test_the_library_is_a_script_of_its_version(tmp_path: Path) -> None:
    """The browser's chart library has the function that pages call, and is cached."""
    assert b"vegaEmbed" in Drawer(tmp_path).library()
    (path,) = tmp_path.iterdir()
    assert path.suffix == ".js"


def test_a_cache_that_cannot_be_written_is_an_error_with_its_folder(tmp_path: Path) -> None:
    """A cache folder that cannot be written is an error with the folder's name."""
    (tmp_path / "file").write_text("x", encoding="utf-8")
    with pytest.raises(CapabilityError, match="file"):
        Drawer(tmp_path / "file/drawings").library()
