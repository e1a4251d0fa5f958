"""Published tables: what the schema demands of rows and figures, and what is computed of them."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import pytest

from epochcost.specs.catalogue import KINDS
from epochcost.specs.findings import validate
from epochcost.specs.published import Published, Timing

ROW = {"id": "one", "hardware": "box", "price": "box-2026", "hours": Decimal("1.00")}


def faults(row: dict[str, Any], *claims: dict[str, Any]) -> list[str]:
    """The faults of a table that has this row and these claims."""
    table = {
        "id": "paper",
        "title": "A paper",
        "authors": "An author",
        "year": 2016,
        "workload": "training",
        "source": "a journal",
        "as_of": dt.date(2016, 11, 1),
        "timings": [{**row, "claims": list(claims)}],
    }
    found = validate(KINDS["published"], table)
    return [] if isinstance(found, Published) else [str(fault) for fault in found]


def claim(printed: str = "1.5", **fields: Any) -> Any:
    """A claim with a printed figure."""
    return {"label": "figure", "printed": printed, "unit": "USD", **fields}


@pytest.mark.parametrize("printed", ["7", "0.35", "12,571", "3,201,722", "1,000.5"])
def test_printed_digits(printed: str) -> None:
    """Printed figures may have a decimal point and separators of thousands."""
    assert faults(ROW, claim(printed=printed)) == []


@pytest.mark.parametrize(
    ("change", "demand"),
    [
        ({"seconds": 5}, "should have one of seconds_per_epoch, seconds or hours"),
        ({"hours": None}, "should have one of seconds_per_epoch, seconds or hours"),
        ({"hours": None, "seconds_per_epoch": 5}, "should have epochs with seconds_per_epoch"),
    ],
    ids=["two times", "no time", "no epochs"],
)
def test_a_row_has_one_time_and_its_price(change: dict[str, Any], demand: str) -> None:
    """A row without exactly one time is a fault with the row's number."""
    row = {key: value for key, value in {**ROW, **change}.items() if value is not None}
    assert faults(row, claim()) == [f"timings[0]: {demand}"]


def test_a_figure_may_name_its_price() -> None:
    """A figure may name a price if its row has none."""
    row = {key: value for key, value in ROW.items() if key != "price"}
    assert faults(row, claim(price="box-2026")) == []


@pytest.mark.parametrize(
    ("fields", "seconds", "low", "high"),
    [
        ({"hours": Decimal("0.49")}, 1764, 1746, 1782),
        ({"hours": Decimal("1.00")}, 3600, 3582, 3618),
        ({"seconds": Decimal("65.097")}, Decimal("65.097"), "65.0965", "65.0975"),
        ({"seconds_per_epoch": Decimal(428), "epochs": Decimal(25)}, 10_700, "10687.5", "10712.5"),
        ({"hours": Decimal(79)}, 284_400, 282_600, 286_200),
    ],
    ids=["hours", "zeros count", "seconds", "an epoch", "whole hours"],
)
def test_a_time_is_rounded_to_its_last_digit(
    fields: dict[str, Decimal], seconds: Any, low: Any, high: Any
) -> None:
    """The range of a printed time is half of its last digit to either side."""
    timing = Timing(id="one", hardware="box", **fields)  # type: ignore[arg-type]
    assert timing.total_seconds == seconds
    assert timing.total_seconds_range == (Decimal(low), Decimal(high))


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        ({"retrieved": dt.date(2999, 1, 1)}, "retrieved: should not be later than today"),
        (
            {"source": None, "columns": {"source": "our tests"}},
            "source: required key is missing; columns.source is a key of the table [columns]: "
            "move it above",
        ),
    ],
)
def test_a_table_of_speeds(changes: dict[str, Any], fault: str) -> None:
    """A day in the future, and a key below the header of another table, are faults."""
    table = {
        "id": "own",
        "name": "Our runs",
        "table": "own.csv",
        "licence": "MIT",
        "retrieved": dt.date(2026, 11, 1),
        "source": "our tests",
        **changes,
    }
    stated = {key: value for key, value in table.items() if value is not None}
    (found,) = validate(KINDS["observations"], stated)
    assert str(found).startswith(fault)
