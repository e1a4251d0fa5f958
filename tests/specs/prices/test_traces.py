"""Traces of spot machines: three forms are read, and every unsound row is one clear line."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from epochcost.errors import InputError, SpecError
from epochcost.specs.loader import load_catalogue
from epochcost.specs.prices.traces import Trace, read_traces
from tiny_project import write_tiny_project

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
HEADER = "time,zone,price\n"
ROW = "2026-03-01T00:00:00Z,a,0.27\n"
LATER = "2026-03-01T01:00:00Z,a,0.3\n"
AWS = {
    "AvailabilityZone": "us-east-1a",
    "InstanceType": "g6.xlarge",
    "ProductDescription": "Linux/UNIX",
    "SpotPrice": "0.3",
    "Timestamp": "2026-03-01T01:00:00+00:00",
}


def read(tmp_path: Path, content: str | bytes | Mapping[str, Any], name: str, **how: Any) -> Trace:
    """The trace of a file with that content."""
    path = tmp_path / name
    if isinstance(content, bytes):
        path.write_bytes(content)
    else:
        path.write_text(content if isinstance(content, str) else json.dumps(content))
    return read_traces([path], **how)


def refused(tmp_path: Path, content: str | bytes | Mapping[str, Any], name: str, **how: Any) -> str:
    """The one line that says why a file is not read."""
    with pytest.raises(InputError) as caught:
        read(tmp_path, content, name, **how)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_a_csv_file(tmp_path: Path) -> None:
    """Columns in any order, others passed over, empty lines skipped; no price where no machine."""
    text = (
        "currency,zone,price,time,available,note\n"
        "EUR,a,0.27,2026-03-01T01:00:00+01:00,1,x\n"
        "\n"
        "EUR,b,0.30,2026-03-01T02:00:00+01:00,,\n"
        "EUR,a,,2026-03-01T03:30:00+01:00,0,\n"
    )
    got = read(tmp_path, text, "made.csv")
    assert (got.currency, got.hours, got.tells_availability) == ("EUR", 2.5, True)
    assert got.window == "2026-03-01T00:00Z to 2026-03-01T02:30Z"
    assert (got.zones["a"].times - got.start).tolist() == [0, 9000]
    assert got.zones["a"].prices[0] == 0.27
    assert math.isnan(got.zones["a"].prices[1])
    assert got.zones["a"].available.tolist() == [True, False]
    assert (got.zones["b"].times - got.start).tolist() == [3600]


def test_a_region_may_be_named_for_a_zone(tmp_path: Path) -> None:
    """Histories of whole regions are traces, too."""
    text = "region,time,price\nus-east-1,2026-03-01T00:00Z,1\nus-east-1,2026-03-02T00:00Z,2\n"
    assert list(read(tmp_path, text, "made.csv").zones) == ["us-east-1"]


def test_aws_prices(tmp_path: Path) -> None:
    """The newest stand first there; what is sold elsewhere is another zone."""
    before = AWS | {"SpotPrice": "0.25", "Timestamp": "2026-03-01T00:00:00.000Z"}
    other = AWS | {"AvailabilityZone": "us-east-1b", "Timestamp": "2026-03-01T00:30:00Z"}
    got = read(tmp_path, {"SpotPriceHistory": [AWS, other, before]}, "aws.json")
    assert got.zones["us-east-1a"].prices.tolist() == [0.25, 0.3]
    assert got.zones["us-east-1a"].available.all()
    assert (got.hours, got.currency, got.tells_availability) == (1.0, "USD", False)


def test_spot_traces(tmp_path: Path) -> None:
    """Numbers of machines at even steps, each until the next; the file's name is the zone's."""
    content = {"metadata": {"gap_seconds": 1800}, "data": [0, 4, 4, 0]}
    got = read(tmp_path, content, "us-west-2a_v100_1.json", price=0.9)
    zone = got.zones["us-west-2a"]
    assert zone.available.tolist() == [False, True, True, False]
    assert zone.prices[1] == 0.9
    assert (zone.times.tolist(), got.hours) == ([0, 1800, 3600, 5400], 2.0)
    priced = read(tmp_path, content | {"prices": [1, 2, 3, 4]}, "us-west-2b.json", price=0.9)
    assert priced.zones["us-west-2b"].prices.tolist() == [1, 2, 3, 4]


def test_files_together(tmp_path: Path) -> None:
    """Zones of all, for the time that all have."""
    (tmp_path / "a.csv").write_text(HEADER + ROW + LATER)
    (tmp_path / "b.csv").write_text(HEADER + "2026-03-01T00:15:00Z,b,1\n2026-03-01T02:00:00Z,b,1\n")
    paths = [tmp_path / "a.csv", tmp_path / "b.csv"]
    got = read_traces(paths)
    assert (list(got.zones), got.hours, got.tells_availability) == (["a", "b"], 0.75, False)
    assert list(read_traces(paths, ["b"]).zones) == ["b"]
    with pytest.raises(InputError, match="expected each zone in one file, got a in two"):
        read_traces([paths[0], paths[0]])
    paths[1].write_text(HEADER + "2026-04-01T00:15:00Z,b,1\n2026-04-01T02:00:00Z,b,1\n")
    with pytest.raises(InputError, match="expected traces of one time, found none that all"):
        read_traces(paths)
    paths[1].write_text(
        "time,zone,price,currency\n2026-03-01T00:00Z,b,1,EUR\n2026-03-01T02:00Z,b,1,EUR\n"
    )
    with pytest.raises(InputError, match='expected one currency, got "EUR", "USD"'):
        read_traces(paths)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", ':1: expected a header with "zone", "time" and "price" once each, got nothing'),
        ("time,price\n", ':1: expected a header with "zone", "time" and "price"'),
        ("time,zone,price,price\n", ":1: expected a header with"),
        (HEADER, ": expected rows, found none"),
        (HEADER + "2026-03-01,a\n", ":2: expected 3 cells, as in the header, got 2"),
        (HEADER + "2026-03-02T00:00Z,,0.3\n", ":2: expected a zone, got an empty cell"),
        (HEADER + "yesterday,a,1\n", ":2: expected a time with its zone, such as 2026-03-01T14:3"),
        (HEADER + "2026-03-01T00:00,a,1\n", ":2: expected a time with its zone"),
        (HEADER + "2026-03-01T00:00Z,a,\n", ':2: expected a price per hour above 0, got ""'),
        (HEADER + "2026-03-01T00:00Z,a,-0.1\n", ":2: expected a price per hour above 0, got"),
        (HEADER + "2026-03-01T00:00Z,a,NaN\n", ':2: expected a price per hour above 0, got "NaN"'),
        (HEADER + ROW + "2026-02-28T00:00Z,b,1\n", ":3: expected rows in the order of time, got"),
        (HEADER + ROW + ROW, ':3: expected one row of a zone at a time, got two of "a"'),
        (
            HEADER + ROW + "2026-03-01T02:00:00+01:00,a,1\n",
            ":3: expected times in one time zone, got 2026-03-01 02:00:00+01:00 after",
        ),
        (
            "time,zone,price,currency\n2026-03-01T00:00Z,a,1,USD\n2026-03-01T01:00Z,a,1,EUR\n",
            ":3: expected one currency, got EUR after USD",
        ),
        (
            "time,zone,price,available\n2026-03-01T00:00Z,a,1,perhaps\n",
            ':2: expected available to be 0 or 1, got "perhaps"',
        ),
        (HEADER + ROW + "2026-03-21T00:00Z,a,1\n", ": a: expected rows at most 168 h apart, got 4"),
        (HEADER.encode() + b"2026,\xff,1\n", ":2: expected UTF-8, got the byte 0xff"),
    ],
)
def test_unsound_rows_by_line(tmp_path: Path, text: str | bytes, message: str) -> None:
    """The first fault ends the reading, with its file and line."""
    assert f"made.csv{message}" in refused(tmp_path, text, "made.csv")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"\xff{}", ": expected JSON in UTF-8, got something else"),
        ("[]", ': expected "SpotPriceHistory" as AWS prints it, or "metadata" and "data"'),
        ('{"data": [1]}', ': expected "SpotPriceHistory" as AWS prints it, or "metadata" and'),
        ({"SpotPriceHistory": []}, ": expected rows, found none"),
        ({"SpotPriceHistory": [AWS, AWS]}, ": expected one row of a zone at a time, got two of"),
        (
            {"SpotPriceHistory": [AWS, AWS | {"InstanceType": "p2.xlarge"}]},
            ': expected one InstanceType, got "g6.xlarge", "p2.xlarge": ask AWS for one',
        ),
        ({"SpotPriceHistory": [AWS | {"SpotPrice": "-1"}]}, ": expected a price per hour above 0"),
        (
            {"metadata": {"gap_seconds": 300}, "data": [1, 1], "prices": [1]},
            ": expected data at a gap_seconds above 0 and, if any, as many prices",
        ),
        (
            {"metadata": {"gap_seconds": 300}, "data": [1, 1], "prices": [1, -1]},
            ": expected prices per hour above 0, got -1",
        ),
        (
            {"metadata": {"gap_seconds": 300}, "data": [1, 1]},
            ": x: expected prices, found none: give one with --spot-price",
        ),
        ({"metadata": {"gap_seconds": 300}, "data": ["a", 1]}, ": could not convert string"),
    ],
)
def test_unsound_json(tmp_path: Path, content: str | bytes, message: str) -> None:
    """What is no trace of either form says so in a line."""
    assert f"x.json{message}" in refused(tmp_path, content, "x.json")


def test_an_unknown_zone_and_a_missing_file(tmp_path: Path) -> None:
    """Each is named, with what is near."""
    assert 'got "b"; known: "a"' in refused(tmp_path, HEADER + ROW + LATER, "a.csv", zones=["b"])
    for name in ("none.csv", "none.json"):
        with pytest.raises(InputError, match=f"{name}: expected a .*No such file"):
            read_traces([tmp_path / name])


def test_a_longer_gap_may_be_allowed(tmp_path: Path) -> None:
    """Prices that seldom change are listed seldom."""
    text = HEADER + ROW + "2026-03-21T00:00Z,a,1\n"
    assert read(tmp_path, text, "a.csv", longest_gap_seconds=21 * 86_400).hours == 480


def test_the_history_that_a_price_names(tmp_path: Path) -> None:
    """It stands beside the price's spec."""
    root = write_tiny_project(tmp_path)
    spec = root / "specs" / "prices" / "box.toml"
    spec.parent.mkdir()
    spec.write_text(SPEC)
    with pytest.raises(SpecError, match=r'history: should be a file in .*prices/, got "spot\.csv"'):
        load_catalogue(root)
    (spec.parent / "spot.csv").write_text(HEADER + ROW)
    assert load_catalogue(root).price("box").history == "spot.csv"


def test_histories_stand_beside_prices_only(tmp_path: Path) -> None:
    """Elsewhere among the specs a CSV file is one that does not belong."""
    root = write_tiny_project(tmp_path)
    (root / "specs" / "hardware" / "spot.csv").write_text(HEADER + ROW)
    with pytest.raises(SpecError, match=r'should be a \.toml file, got the file "spot\.csv"'):
        load_catalogue(root)
