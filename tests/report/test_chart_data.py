"""The rows of a chart, as shown in marks, tooltips, tables and files."""

from __future__ import annotations

from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Annotated

import pytest

from epochcost.report.charts.data import ChartData, Ends, Shown
from epochcost.report.tables import as_csv


@dataclass(frozen=True, slots=True)
class Row:
    """A row of a chart with a field of each kind."""

    name: Annotated[str, Shown("Name")]
    vcpus: Annotated[int, Shown("vCPUs", "number")]
    time: Annotated[Ends, Shown("Time", "seconds")]
    cost: Annotated[Decimal | None, Shown("Cost", "money")]
    ratio: Annotated[Ends, Shown("Ratio", "number", bounds=False)]
    best: Annotated[bool, Shown("Best")]
    note: Annotated[str, Shown("Note", place="table")]
    at: Annotated[float, Shown("At", "number", place="chart")]


DATA = ChartData(
    (
        Row("a", 2, (1.0, 2.0, 99.0), Decimal("0.50"), (1.0, 1.23456, 2.0), True, "n", 2.5),
        Row("b", 4, (3.0, 3.0, 3.0), None, (1.0, 1.0, 1.0), False, "m", 4.5),
    ),
    "EUR",
)


def test_files_have_a_unit_in_each_name_and_all_digits() -> None:
    """Columns of files have units in their names; an interval with equal ends has empty ends."""
    assert as_csv(DATA.table).splitlines() == [
        "name,vcpus,time_low_s,time_s,time_high_s,cost_EUR,ratio,best,note",
        "a,2,1,2,99,0.5,1.235,yes,n",
        "b,4,,3,,,1,no,m",
    ]


def test_a_low_end_that_is_no_bound_is_empty() -> None:
    """A low end below a thousandth of the mean is no figure in tables and files."""
    row = replace(DATA.rows[0], time=(1e-18, 2.0, 99.0))
    assert as_csv(ChartData((row,)).table).splitlines()[1] == "a,2,,2,99,0.5,1.235,yes,n"


def test_people_read_titles_and_what_an_end_is() -> None:
    """An interval has three columns with titles, unless tables show only its mean."""
    titles = [column.title for column in DATA.table.columns]
    assert titles[2:5] == ["Time, lower end", "Time", "Time, upper end"]
    assert titles.count("Ratio") == 1


def test_marks_have_what_is_drawn_of_a_row() -> None:
    """Very wide intervals are shortened; unknown values and fields for tables are omitted."""
    first, second = DATA.values
    assert (first["time_low"], first["time"], first["time_high"]) == (1.0, 2.0, 10.0)
    assert first["cost"] == pytest.approx(0.5)
    assert first["best"] == "yes"
    assert first["at"] == 2.5
    assert "note" not in first
    assert "cost" not in second
    assert DATA.values_of("time") == [1.0, 2.0, 10.0, 3.0, 3.0, 3.0]
