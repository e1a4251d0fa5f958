"""What the table is, for search engines and loaders: names, hashes and types are the table's."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest

from epochcost.report.croissant import croissant, json_ld
from epochcost.report.dataset.columns import ENTRIES
from epochcost.report.dataset.files import data_files
from epochcost.report.pages.page import Report
from report_project import inputs_of

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module", name="folder")
def folder_fixture(report: Report, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files of the table with their description, as they are published."""
    folder = tmp_path_factory.mktemp("site")
    files = dict(data_files(report.lines))
    for uri, content in {**files, "data/croissant.json": croissant(report, files)}.items():
        path = folder / uri
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return folder / "data"


def test_croissant_describes_the_files(folder: Path) -> None:
    """Each file by its hash, and each column by its name."""
    described = json.loads((folder / "croissant.json").read_text("utf-8"))
    for one in described["distribution"]:
        content = (folder / one["contentUrl"]).read_bytes()
        assert one["sha256"] == hashlib.sha256(content).hexdigest()
    (lines,) = described["recordSet"]
    assert [one["name"] for one in lines["field"]] == [entry.name for entry in ENTRIES]


def test_the_licence_is_that_of_the_project(report: Report) -> None:
    """Ours is in CITATION.cff; a project without that file claims none."""
    assert "license" not in json_ld(report)
    ours = json_ld(Report(inputs_of(ROOT)))
    assert ours["license"] == "https://spdx.org/licenses/Apache-2.0.html"
    assert {one["encodingFormat"] for one in ours["distribution"]} >= {"text/csv"}


@pytest.mark.slow
def test_mlcroissant_reads_it(folder: Path) -> None:
    """The reference loader finds no fault, and all lines."""
    heavy = "with pandas and scipy too heavy for the locked environment: pip install it by itself"
    pytest.importorskip("pyarrow", reason=heavy)
    mlcroissant = pytest.importorskip("mlcroissant", reason=heavy)
    dataset = mlcroissant.Dataset(jsonld=folder / "croissant.json")
    assert not dataset.metadata.issues.errors
    (count,) = {len(list(dataset.records(one.id))) for one in dataset.metadata.record_sets}
    assert count == len(json.loads((folder / "figures.json").read_text("utf-8"))["rows"])
