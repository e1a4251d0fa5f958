"""Files copied by a process beside the build."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from mkdocs.config import load_config
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import Files, InclusionLevel

from epochcost.report.additions import Additions, Content
from epochcost.report.charts.drawing import Drawer
from epochcost.report.keeping import copying
from epochcost.report.keeping.copying import Copying, begun_copying
from epochcost.report.keeping.report import KeptReport
from epochcost.report.late_file import LateFile

pytestmark = pytest.mark.skipif(
    sys.platform != "linux", reason="processes are forked on Linux only"
)
COUNT = 120
NOTHING = Additions(pages={}, files={}, results={}, sections=(), figures={})


@pytest.fixture(name="config")
def config_fixture(tmp_path: Path) -> MkDocsConfig:
    """A site without plugins."""
    (tmp_path / "docs").mkdir()
    (tmp_path / "mkdocs.yml").write_text("site_name: Site\nplugins: []\n", encoding="utf-8")
    return load_config(str(tmp_path / "mkdocs.yml"))


@pytest.fixture(name="report")
def report_fixture(tmp_path: Path) -> KeptReport:
    """A report that keeps contents."""
    return KeptReport.under(tmp_path / "kept", Drawer(tmp_path / "charts"))


def _noting(report: KeptReport, make: Callable[[], str]) -> Additions:
    contents = {f"data/{number}.txt": Content(make) for number in range(COUNT)}
    return report.noting(replace(NOTHING, files=contents))


def _files(config: MkDocsConfig, added: Additions) -> Files:
    config.plugins._current_plugin = "epochcost"  # as while MkDocs calls it
    files = [LateFile.of(config, uri, content) for uri, content in added.files.items()]
    for file in files:
        file.inclusion = InclusionLevel.INCLUDED
    return Files(files)


def _begun(
    config: MkDocsConfig,
    report: KeptReport,
    make: Callable[[], str],
    then: Callable[[], object] = lambda: None,
) -> tuple[Files, Copying]:
    files = _files(config, _noting(report, make))
    pages = Path(config.config_file_path).parent / "pages"
    copied = begun_copying(files, report, config, pages, then)
    assert copied is not None
    files.copy_static_files()
    return files, copied


def _written(config: MkDocsConfig) -> list[str]:
    return [path.read_text(encoding="utf-8") for path in Path(config.site_dir).rglob("*.txt")]


def test_files_are_copied_elsewhere_and_known_here(
    config: MkDocsConfig, report: KeptReport
) -> None:
    """Each by the other process, once; the report here knows what that kept."""
    _, copied = _begun(config, report, lambda: str(os.getpid()))
    copied.finish()
    written = _written(config)
    assert len(written) == COUNT
    assert set(written).isdisjoint({str(os.getpid())})
    assert len(set(written)) == 1
    assert len(report.noted) == COUNT
    assert set(report.noted.values()) <= report.contents.used


def test_the_process_goes_on_with_other_work(
    config: MkDocsConfig, report: KeptReport, tmp_path: Path
) -> None:
    """After the files, and what becomes of it is nothing to them."""
    done = tmp_path / "done"

    def then() -> None:
        done.write_text(str(len(_written(config))), encoding="utf-8")
        raise ValueError

    _, copied = _begun(config, report, lambda: str(os.getpid()), then)
    copied.finish()
    assert done.read_text(encoding="utf-8") == str(COUNT)
    assert str(os.getpid()) not in _written(config)
    assert len(report.noted) == COUNT


def test_what_the_process_cannot_make_is_made_here(
    config: MkDocsConfig, report: KeptReport
) -> None:
    """A failure there is no failure of the build."""
    here = os.getpid()

    def make() -> str:
        if os.getpid() != here:
            raise MemoryError
        return "made"

    _, copied = _begun(config, report, make)
    copied.finish()
    assert _written(config) == ["made"] * COUNT


def test_an_error_is_met_here(config: MkDocsConfig, report: KeptReport) -> None:
    """What fails there and here ends the build with its own error."""

    def make() -> str:
        raise FileNotFoundError("gone")

    _, copied = _begun(config, report, make)
    with pytest.raises(FileNotFoundError, match="gone"):
        copied.finish()


def test_mkdocs_copies_a_few_files_itself(
    config: MkDocsConfig, report: KeptReport, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """And all of them where a plugin may want to look at what stands in the site."""
    files = _files(config, _noting(report, lambda: "made"))
    config.plugins["other"] = object()  # type: ignore[assignment]
    assert begun_copying(files, report, config, tmp_path) is None
    del config.plugins["other"]
    monkeypatch.setattr(copying, "_FEW_FILES", COUNT + 1)
    assert begun_copying(files, report, config, tmp_path) is None
    files.copy_static_files()
    assert _written(config) == ["made"] * COUNT
