"""The cache of drawn charts."""

from __future__ import annotations

from pathlib import Path

import pytest

from epochcost.errors import CapabilityError
from epochcost.report.charts import drawing
from epochcost.report.charts.drawing import Drawer
from report_charts import CHARTS


def test_what_is_drawn_is_not_drawn_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A later build reads the cached drawings."""
    figure = next(iter(CHARTS.values()))
    drawn = Drawer(tmp_path).draw(figure)
    monkeypatch.setattr(drawing, "_draw", lambda figure: pytest.fail(figure.id))
    assert Drawer(tmp_path).draw(figure) == drawn


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
