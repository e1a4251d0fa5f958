"""Price tables: each kind of header, and everything that a file can have wrong."""

from __future__ import annotations

import datetime as dt
from pathlib import Path

import pytest

from epochcost.errors import Fault, InputError
from epochcost.specs.prices.tables import ListedPrice, read_prices

SKYPILOT = (
    "InstanceType,vCPUs,MemoryGiB,AcceleratorName,AcceleratorCount,GPUInfo,Region,"
    "AvailabilityZone,Price,SpotPrice,Arch\n"
)


@pytest.fixture
def table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A table's path in the current directory."""
    monkeypatch.chdir(tmp_path)
    return tmp_path / "table.csv"


def prices(path: Path, contents: str | bytes) -> list[ListedPrice | Fault]:
    """The prices read from a file with these contents."""
    path.write_bytes(contents if isinstance(contents, bytes) else contents.encode())
    return list(read_prices(path))


def refusal(path: Path, contents: str | bytes) -> str:
    """The line that refuses a file with these contents."""
    with pytest.raises(InputError) as refused:
        prices(path, contents)
    assert "\n" not in str(refused.value)
    return str(refused.value)


def test_skypilot(table: Path) -> None:
    """A row of SkyPilot's catalogue gives its on-demand price, and its spot price where it has one.

    The cell of GPUInfo holds commas in quotes, as the real one does.
    """
    gpus = "\"{'Gpus': [{'Name': 'T4', 'Count': 1.0}]}\""
    rows = f"g4dn.xlarge,4,16,T4,1.0,{gpus},us-east-1,us-east-1a,0.526,0.2104,x86_64\n"
    rows += "m5.large,2,8,,,,us-east-1,us-east-1a,0.096,,x86_64\n"
    found = prices(table, SKYPILOT + rows)
    one, spot, cpu = [row for row in found if isinstance(row, ListedPrice)]
    assert (one.sku, one.plan, one.amount, one.line) == ("g4dn.xlarge", "on-demand", "0.526", 2)
    assert (one.region, one.zone, one.accelerators) == ("us-east-1", "us-east-1a", "1.0")
    assert (spot.plan, spot.amount) == ("spot", "0.2104")
    assert (cpu.plan, cpu.accelerators, cpu.as_of, cpu.source) == ("on-demand", "0", None, None)


def test_extract_of_skypilot(table: Path) -> None:
    """Columns of an extract name provider and source; "all" is no region."""
    rows = (
        "Provider,InstanceType,Region,Price,SpotPrice,CatalogPath,Commit\n"
        "lambda,gpu_1x_a10,all,0.75,,catalogs/v8/lambda/vms.csv,95eaf\n"
    )
    (found,) = prices(table, rows)
    assert isinstance(found, ListedPrice)
    assert (found.provider, found.region) == ("lambda", None)
    assert found.source == "skypilot-org/skypilot-catalog@95eaf, catalogs/v8/lambda/vms.csv"


def test_list(table: Path) -> None:
    """A list of instance types has a day by row; a blank price stays, for a list has no blanks."""
    rows = "InstanceType,Price,Region,Snapshot\np2.xlarge,,us-east-1,2026-07-20T13:44:30Z\n"
    (found,) = prices(table, rows)
    assert isinstance(found, ListedPrice)
    assert (found.amount, found.as_of) == ("", dt.date(2026, 7, 20))


@pytest.mark.parametrize(
    ("contents", "words"),
    [
        ("", "table.csv:1: expected a header with the columns"),
        ("Vendor,Per-Hour\n", 'table.csv:1: expected a header with the columns "InstanceType"'),
        ("InstanceType;Price\n", 'got "InstanceType;Price"'),
        ("InstanceType,Price,Price\n", "each column once"),
        ("InstanceType,Price\np2,0.9\n".encode("utf-16"), "table.csv: expected UTF-8, got the"),
        (
            b"InstanceType,Price\np2,0.9\ng\xe4,1\n",
            "table.csv: expected UTF-8, got the byte 0xe4",
        ),
        ('InstanceType,Price\n"p2"x,0.9\n', "table.csv:2: expected comma-separated values"),
    ],
)
def test_files_that_are_no_price_table(table: Path, contents: str | bytes, words: str) -> None:
    """A file of another kind or encoding is refused in one line that says where and what."""
    assert words in refusal(table, contents)


def test_rows_that_cannot_be_read(table: Path) -> None:
    """A row of too few cells and one without a day are faults with their line; others are read."""
    rows = (
        "InstanceType,Price,Snapshot\np2.xlarge,0.9\np2.xlarge,0.9,soon\np2.xlarge,0.9,2026-07-20\n"
    )
    short, undated, sound = prices(table, rows)
    assert str(short) == "table.csv:2:1: expected 3 cells, as in the header, got 2"
    assert str(undated) == 'table.csv:3:1: expected a date such as 2026-07-20, got "soon"'
    assert isinstance(sound, ListedPrice)
