"""Traces of spot machines are read, and an unsound row is refused in one line."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from epochcost.errors import InputError, SpecError
from epochcost.specs.loader import load_catalogue
from epochcost.specs.prices.traces import Trace, read_trace
from tiny_project import write_tiny_project

HEADER = "time,zone,price\n"
ROW = "2026-03-01T00:00:00Z,a,0.27\n"


def read(tmp_path: Path, content: str) -> Trace:
    """The trace in a file with this content."""
    path = tmp_path / "made.csv"
    path.write_text(content)
    return read_trace(path)


def test_a_csv_file(tmp_path: Path) -> None:
    """Columns may be in any order, and others are ignored. A row without a machine has no price."""
    text = (
        "currency,zone,price,time,available,note\n"
        "EUR,a,0.27,2026-03-01T01:00:00+01:00,1,x\n"
        "\n"
        "EUR,b,0.30,2026-03-01T02:00:00+01:00,,\n"
        "EUR,a,,2026-03-01T03:30:00+01:00,0,\n"
    )
    got = read(tmp_path, text)
    assert (got.currency, got.end - got.start) == ("EUR", 9000)
    assert got.window == "2026-03-01T00:00Z to 2026-03-01T02:30Z"
    assert (got.zones["a"].times - got.start).tolist() == [0, 9000]
    assert got.zones["a"].prices[0] == 0.27
    assert math.isnan(got.zones["a"].prices[1])
    assert (got.zones["b"].times - got.start).tolist() == [3600]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("time,price\n2026-03-01T00:00Z,1\n", ":2:1: expected a zone in the column zone or region"),
        (HEADER + "2026-03-01,a\n", ":2:1: expected 3 cells, as in the header, got 2"),
        (
            HEADER + "2026-03-02T00:00Z,,0.3\n",
            ":2:1: expected a zone in the column zone or region, got an",
        ),
        (
            HEADER + "yesterday,a,1\n",
            ":2:1: expected a time with its zone, such as 2026-03-01T14:3",
        ),
        (HEADER + "2999-03-01T00:00Z,a,1\n", ":2:1: expected a time after 2000 and in the past"),
        (HEADER + "0001-01-01T00:00+14:00,a,1\n", ":2:1: expected a time after 2000 and in the"),
        (HEADER + "2026-03-01T00:00Z,a,1_000\n", ":2:1: expected a price per hour above 0"),
        (HEADER + "2026-03-01T00:00,a,1\n", ":2:1: expected a time with its zone"),
        (HEADER + "2026-03-01T00:00Z,a,\n", ":2:1: expected a price per hour above 0"),
        (HEADER + "2026-03-01T00:00Z,a,-0.1\n", ":2:1: expected a price per hour above 0"),
        (HEADER + "2026-03-01T00:00Z,a,NaN\n", ":2:1: expected a price per hour above 0"),
        (HEADER + ROW + "2026-02-28T00:00Z,b,1\n", ":3:1: expected rows in the order of time, got"),
        (HEADER + ROW + ROW, ':3:1: expected one row for a zone and time, got two of "a"'),
        (
            "time,zone,price,currency\n2026-03-01T00:00Z,a,1,USD\n2026-03-01T01:00Z,a,1,EUR\n",
            ":3:1: expected one currency, got EUR after USD",
        ),
        (
            "time,zone,price,currency\n2026-03-01T00:00Z,a,1,usd\n",
            ':2:1: expected a currency of ISO 4217, such as USD, got "usd"',
        ),
        (
            "time,zone,price,available\n2026-03-01T00:00Z,a,1,perhaps\n",
            ':2:1: expected available to be 0 or 1, got "perhaps"',
        ),
        (HEADER + ROW + "2026-03-21T00:00Z,a,1\n", ": a: expected rows at most 168 h apart, got 4"),
    ],
)
def test_unsound_rows_by_line(tmp_path: Path, text: str, message: str) -> None:
    """The first fault ends the reading, with file and line."""
    with pytest.raises(InputError) as caught:
        read(tmp_path, text)
    assert f"made.csv{message}" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_zone_that_repeats_another_is_doubted(tmp_path: Path) -> None:
    """A zone with exactly the rows of another zone is doubted, unless one price differs."""
    rows = [(zone, hour) for hour in (0, 1) for zone in "abc"]
    prices = {("c", 1): "0.28"}
    lines = [
        f"2026-03-01T0{hour}:00:00Z,{zone},{prices.get((zone, hour), '0.27')}\n"
        for zone, hour in rows
    ]
    trace = read(tmp_path, HEADER + "".join(lines))
    assert trace.doubt == "zone b has the rows of zone a"
    assert not read(tmp_path, HEADER + "".join(lines[::3])).doubt


def test_traces_stand_beside_replays_only(tmp_path: Path) -> None:
    """A CSV file in another folder of specs is a fault."""
    root = write_tiny_project(tmp_path)
    (root / "specs" / "hardware" / "spot.csv").write_text(HEADER + ROW)
    with pytest.raises(SpecError, match=r'should be a \.toml file, got the file "spot\.csv"'):
        load_catalogue(root)
