"""The report made in a process of its own."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from epochcost.errors import Fault, SpecError
from epochcost.report import making
from epochcost.report.build import additions
from epochcost.report.charts.drawing import Drawer
from epochcost.report.sources import PACKAGED, Sources

pytestmark = pytest.mark.skipif(
    sys.platform != "linux", reason="processes are forked on Linux only"
)


def _sources(project: Path) -> Sources:
    return Sources(project, (project / "results",), project, PACKAGED, "", project / "cache")


def _makes(monkeypatch: pytest.MonkeyPatch, told: Path, error: BaseException) -> None:
    def fail(*_: object) -> None:
        with told.open("a", encoding="utf-8") as file:
            file.write(f"{os.getpid()}\n")
        raise error

    monkeypatch.setattr(making, "made", fail)


def _additions(project: Path) -> None:
    additions(_sources(project), Drawer(project / "cache"), project / "kept")


def test_what_is_wrong_with_a_spec_is_found_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The process that finds it tells where it is; the report is not made again to meet it."""
    fault = Fault(tmp_path / "specs/a.toml", 3, 1, "demanded a number; got text")
    _makes(monkeypatch, tmp_path / "told", SpecError([fault]))
    with pytest.raises(SpecError) as caught:
        _additions(tmp_path)
    assert caught.value.faults == (fault,)
    makers = (tmp_path / "told").read_text(encoding="utf-8").split()
    assert len(makers) == 1
    assert makers != [str(os.getpid())]


def test_a_fault_of_ours_is_met_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With all that Python says of it: the report is made again in this process."""
    _makes(monkeypatch, tmp_path / "told", ZeroDivisionError("ours"))
    with pytest.raises(ZeroDivisionError, match="ours"):
        _additions(tmp_path)
    makers = (tmp_path / "told").read_text(encoding="utf-8").split()
    assert len(makers) == 2
    assert makers[1] == str(os.getpid())
