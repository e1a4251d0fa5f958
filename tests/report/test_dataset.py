"""The files with all figures: one table as CSV, JSON and Parquet, as documented."""

from __future__ import annotations

import csv
import hashlib
import io
import json
import re
from pathlib import Path
from typing import Any

import duckdb
import pytest

from epochcost.analysis.table.columns import ENTRIES, dictionary_page
from epochcost.report.charts.contest import cost_against_time
from epochcost.report.dataset import as_parquet, data_files, dataset_table
from epochcost.report.pages.page import Report
from epochcost.report.ranking import contest
from epochcost.report.tables import Table
from report_project import inputs_of
from report_specs import HOSTILE

ROOT = Path(__file__).parents[2]
_BLOCK = re.compile(r"```python\n(.*?)```", re.DOTALL)


@pytest.fixture(scope="module", name="files")
def files_fixture(report: Report) -> dict[str, str | bytes]:
    """All files of the table by address."""
    return dict(data_files(report.lines))


def _content(files: dict[str, str | bytes], name: str) -> bytes:
    content = files[f"data/{name}"]
    return content if isinstance(content, bytes) else content.encode()


def _read(content: bytes, folder: Path) -> Any:
    path = folder / "figures.parquet"
    path.write_bytes(content)
    return duckdb.read_parquet(str(path))


def test_parquet_and_csv_are_one_table(files: dict[str, str | bytes], tmp_path: Path) -> None:
    """CSV and Parquet have equal columns and rows; an empty cell in CSV is null in Parquet."""
    table = _read(_content(files, "figures.parquet"), tmp_path)
    lines = list(csv.reader(io.StringIO(_content(files, "figures.csv").decode())))
    assert table.columns == lines[0] == [entry.name for entry in ENTRIES]
    kinds = {"text": "VARCHAR", "integer": "BIGINT", "number": "DOUBLE", "date": "DATE"}
    assert [str(kind) for kind in table.types] == [kinds[entry.type] for entry in ENTRIES]
    rows = table.fetchall()
    assert len(rows) == len(lines) - 1 > 5
    for row, line in zip(rows, lines[1:], strict=True):
        for entry, value, text in zip(ENTRIES, row, line, strict=True):
            assert (value is None) == (text == ""), entry.name
            if entry.type == "number" and value is not None:
                assert value == float(text), entry.name


def test_hostile_text_stays_text(files: dict[str, str | bytes], tmp_path: Path) -> None:
    """Quotes, commas and markup in a spec's texts are unchanged in Parquet."""
    table = _read(_content(files, "figures.parquet"), tmp_path)
    assert HOSTILE in {row[0] for row in table.select("machine").fetchall()}


def test_the_same_lines_are_the_same_file(report: Report) -> None:
    """Equal tables give equal bytes of Parquet."""
    table = dataset_table(report.rows)
    assert as_parquet(table) == as_parquet(table)
    assert as_parquet(Table(table.columns, table.rows[:1])) != as_parquet(table)


def test_the_data_package_describes_the_files(files: dict[str, str | bytes]) -> None:
    """The data package states sizes and hashes of the files, and the meaning of each column."""
    package = json.loads(_content(files, "datapackage.json"))
    for resource in package["resources"]:
        content = _content(files, resource["path"])
        assert resource["bytes"] == len(content)
        assert resource["hash"] == f"sha256:{hashlib.sha256(content).hexdigest()}"
    fields = package["resources"][0]["schema"]["fields"]
    assert [field["name"] for field in fields] == [entry.name for entry in ENTRIES]
    assert all(field["description"] and field["empty"] for field in fields)


def test_the_committed_dictionary_is_in_step() -> None:
    """The committed page equals the generated one."""
    committed = (ROOT / "docs/reference/data-dictionary.md").read_text("utf-8")
    assert committed == dictionary_page(), "run: make schemas"


@pytest.mark.slow
def test_the_documented_example_redoes_a_chart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The code in the how-to page, run on the repository's figures, gives the chart's frontier."""
    report = Report(inputs_of(ROOT))
    workload = next(workload for workload in report.workloads if workload.id == "mnist-cnn")
    rows = report.workloads[workload]
    machines = contest(rows, "full")
    assert machines is not None
    chart = cost_against_time(machines, identifier="x", job="job")
    assert chart is not None
    (tmp_path / "figures.parquet").write_bytes(as_parquet(dataset_table(report.rows)))
    monkeypatch.chdir(tmp_path)
    (block,) = _BLOCK.findall((ROOT / "docs/how-to/use-the-data.md").read_text("utf-8"))
    names: dict[str, Any] = {}
    exec(block, names)  # noqa: S102  the page's own text
    lines = names["frontier"].fetchall()
    columns = [column.name for column in chart.data.table.columns]
    drawn = [dict(zip(columns, row, strict=True)) for row in chart.data.table.rows]
    expected = [row for row in drawn if row["on_frontier"] == "yes"]
    expected.sort(key=lambda row: row["time_s"])
    assert [line[0] for line in lines] == [row["machine"] for row in expected]
    assert [line[3] for line in lines] == [row["batch_size"] for row in expected]
    assert [line[5] for line in lines] == pytest.approx(
        [float(row["cost_USD"]) for row in expected]
    )
