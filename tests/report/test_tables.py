"""Tables as files: complete, safe in spreadsheets, with empty cells for unknown values."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import replace
from decimal import Decimal

import pytest

from epochcost.report.dataset import dataset_table
from epochcost.report.pages.page import Report
from epochcost.report.tables import Column, Table, as_csv, as_json

TABLE = Table(
    (Column("name", "Name"), Column("cost_USD", "Cost", "money"), Column("n", "N", "number")),
    (("=1+1", Decimal("0.000000000000000001"), 1000), ('a,\n"b"', None, None)),
)


def test_csv_keeps_exact_amounts_and_empty_unknowns() -> None:
    """Decimals are written in full, and unknown values are empty."""
    rows = list(csv.reader(io.StringIO(as_csv(TABLE))))
    assert rows[0] == ["name", "cost_USD", "n"]
    assert rows[1] == ["'=1+1", "0.000000000000000001", "1000"]
    assert rows[2] == ['a,\n"b"', "", ""]


@pytest.mark.parametrize(
    "before", ["", " ", "   ", "\t", "\n", "\r\n", "\u00a0", "\u3000", "\u200b", "\ufeff ", "\0"]
)
@pytest.mark.parametrize("text", ["=1+1", "+1", "-1", "@SUM(A1)", "\uff1d1"])
def test_no_cell_is_a_formula(before: str, text: str) -> None:
    """A text that a spreadsheet would run as a formula gets an apostrophe, also after blanks."""
    table = Table(TABLE.columns[:1], ((before + text,),))
    # Compared as raw text: a CSV reader would change some line ends.
    assert as_csv(table).partition("\n")[2].lstrip('"').startswith("'" + before[:1])


def test_json_says_what_columns_mean() -> None:
    """JSON has the titles of columns, numbers as numbers, and null for unknown values."""
    document = json.loads(as_json(TABLE))
    assert len(as_json(TABLE).splitlines()) == 3 + len(document["rows"])
    assert json.loads(as_json(replace(TABLE, rows=())))["rows"] == []
    assert document["columns"] == {"name": "Name", "cost_USD": "Cost", "n": "N"}
    assert document["rows"][0]["cost_USD"] == 1e-18
    assert document["rows"][1]["cost_USD"] is None


def test_the_dataset_has_every_row_and_explains_every_column(report: Report) -> None:
    """One line per row of the report; columns have meanings; costs have intervals."""
    table = dataset_table(report.rows)
    assert len(table.rows) == len(report.rows)
    assert all(column.meaning for column in table.columns)
    names = [column.name for column in table.columns]
    assert len(set(names)) == len(names)
    for row, line in zip(report.rows, table.rows, strict=True):
        values = dict(zip(names, line, strict=True))
        full = row.estimate("full")
        assert values["full_cost"] == (full.mean if full else None)
        assert values["figure"] == row.mark
