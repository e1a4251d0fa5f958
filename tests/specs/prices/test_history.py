"""Histories of spot prices: series from a CSV file, and every unsound row by its line."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from pathlib import Path

import pytest

from epochcost.errors import InputError, SpecError
from epochcost.specs.loader import load_catalogue
from epochcost.specs.prices.history import PricePoint, history_of, read_history
from price_plans import plan
from tiny_project import write_tiny_project

HEADER = "time,region,price\n"
SPEC = """
id = "box"
hardware = "giant"
plan = "spot"
provider = "Cloud"
amount = 1
history = "spot.csv"
source = "a test"
as_of = 2026-11-01
"""
ROW = "2017-03-01T00:00:00Z,us-east-1,0.27\n"


def history(tmp_path: Path, text: str) -> Path:
    """A file of a history."""
    path = tmp_path / "spot.csv"
    path.write_text(text)
    return path


def test_series_by_region(tmp_path: Path) -> None:
    """Columns in any order, others passed over, zones brought to UTC, empty lines skipped."""
    text = (
        "zone,price,time,region\n"
        "a,0.27,2017-03-01T00:00:00,us-east-1\n"
        "\n"
        "b,0.30,2017-03-01T02:00:00+01:00,eu-west-1\n"
        "a,0.50,2017-03-01T03:30:00Z,us-east-1\n"
    )
    got = read_history(history(tmp_path, text))
    at = dt.datetime(2017, 3, 1, tzinfo=dt.UTC)
    assert got.series == {
        "us-east-1": (
            PricePoint(at, Decimal("0.27")),
            PricePoint(at + dt.timedelta(hours=3, minutes=30), Decimal("0.50")),
        ),
        "eu-west-1": (PricePoint(at + dt.timedelta(hours=1), Decimal("0.30")),),
    }
    assert (got.start, got.end) == (at, at + dt.timedelta(hours=3, minutes=30))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "",
            ':1: expected a header with the columns "time", "region", "price" once each, got '
            "nothing",
        ),
        ("time,price\n" + ROW, ':1: expected a header with the columns "time", "region"'),
        ("time,region,price,price\n", ":1: expected a header with the columns"),
        (HEADER, ":1: expected rows below the header, found none"),
        (HEADER + "2017-03-01,us-east-1\n", ":2: expected 3 cells, as in the header, got 2"),
        (HEADER + ROW + "2017-03-02,,0.3\n", ":3: expected a region, got an empty cell"),
        (HEADER + ",us-east-1,0.3\n", ':2: expected a time such as 2017-03-01T14:30:00Z, got ""'),
        (
            HEADER + "yesterday,us-east-1,0.3\n",
            ":2: expected a time such as 2017-03-01T14:30:00Z, g",
        ),
        (HEADER + "2017-03-01,us-east-1,\n", ':2: expected a price per hour above 0, got ""'),
        (
            HEADER + "2017-03-01,us-east-1,-0.1\n",
            ':2: expected a price per hour above 0, got "-0.1"',
        ),
        (HEADER + "2017-03-01,us-east-1,NaN\n", ':2: expected a price per hour above 0, got "NaN"'),
        (
            HEADER + ROW + "2017-02-28,eu,1\n",
            ":3: expected rows in the order of time, got 2017-02-28",
        ),
        (HEADER + ROW + ROW, ":3: expected one price of a region at a time, got two of"),
    ],
)
def test_unsound_rows_by_line(tmp_path: Path, text: str, message: str) -> None:
    """The first fault ends the reading, with its file and line."""
    with pytest.raises(InputError) as caught:
        read_history(history(tmp_path, text))
    assert f"spot.csv{message}" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    """Its name and the reason."""
    with pytest.raises(InputError, match=r"spot\.csv: expected a CSV file"):
        read_history(tmp_path / "spot.csv")


def test_the_history_that_a_price_names(tmp_path: Path) -> None:
    """It stands beside the price's spec; a price without one is refused."""
    root = write_tiny_project(tmp_path)
    spec = root / "specs" / "prices" / "box.toml"
    spec.parent.mkdir()
    spec.write_text(SPEC)
    with pytest.raises(SpecError, match=r'history: should be a file in .*prices/, got "spot\.csv"'):
        load_catalogue(root)
    history(spec.parent, HEADER + ROW)
    catalogue = load_catalogue(root)
    assert list(history_of(catalogue, catalogue.price("box")).series) == ["us-east-1"]
    with pytest.raises(InputError, match="box: expected a price with a history"):
        history_of(catalogue, plan(id="box", amount=Decimal(1)))


def test_histories_stand_beside_prices_only(tmp_path: Path) -> None:
    """Elsewhere among the specs a CSV file is one that does not belong."""
    root = write_tiny_project(tmp_path)
    history(root / "specs" / "hardware", HEADER + ROW)
    with pytest.raises(SpecError, match=r'should be a \.toml file, got the file "spot\.csv"'):
        load_catalogue(root)
