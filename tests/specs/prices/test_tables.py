"""Price tables: each kind of header, and what can be wrong in a file."""

from __future__ import annotations

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
    """The path of a table in the current folder."""
    monkeypatch.chdir(tmp_path)
    return tmp_path / "table.csv"


def prices(path: Path, contents: str | bytes) -> list[ListedPrice | Fault]:
    """The prices that are read from a file with these contents."""
    path.write_bytes(contents if isinstance(contents, bytes) else contents.encode())
    return list(read_prices(path))


def refusal(path: Path, contents: str | bytes) -> str:
    """The line that refuses a file with these contents."""
    with pytest.raises(InputError) as refused:
        prices(path, contents)
    assert "\n" not in str(refused.value)
    return str(refused.value)


def test_skypilot(table: Path) -> None:
    """A row of SkyPilot's catalogue has an on-demand price, and a spot price if the cell has one.

    The cell of GPUInfo has commas in quotes, as in the real catalogue.
    """
    gpus = "\"{'Gpus': [{'Name': 'T4', 'Count': 1.0}]}\""
    rows = f"g4dn.xlarge,4,16,T4,1.0,{gpus},us-east-1,us-east-1a,0.526,0.2104,x86_64\n"
    rows += "m5.large,2,8,,,,us-east-1,us-east-1a,0.096,,x86_64\n"
    found = prices(table, SKYPILOT + rows)
    one, spot, cpu = [row for row in found if isinstance(row, ListedPrice)]
    assert (one.sku, one.plan, one.amount, one.line) == ("g4dn.xlarge", "on-demand", "0.526", 2)
    assert (one.region, one.accelerators) == ("us-east-1", "1.0")
    assert (spot.plan, spot.amount) == ("spot", "0.2104")
    assert (cpu.plan, cpu.accelerators) == ("on-demand", "0")


def test_all_regions(table: Path) -> None:
    """The region "all" counts as none, and a blank price stays for the import to refuse."""
    (price,) = prices(table, "InstanceType,Region,Price\ngpu_1x_a10,all,\n")
    assert isinstance(price, ListedPrice)
    assert (price.region, price.amount) == (None, "")


def test_commitments(table: Path) -> None:
    """Prices of one and of three years are commitments of 12 and 36 months."""
    header = "InstanceType,Price,CommittedPrice1y,CommittedPrice3y"
    rows = [
        row for row in prices(table, f"{header}\na3-high,9,6,4\n") if not isinstance(row, Fault)
    ]
    listed = ("on-demand", 0, "9"), ("committed-use", 12, "6"), ("committed-use", 36, "4")
    assert tuple((row.plan, row.months, row.amount) for row in rows) == listed


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
    """A file of another kind or encoding is refused in one line with the place and the reason."""
    assert words in refusal(table, contents)


def test_rows_that_cannot_be_read(table: Path) -> None:
    """A row with too few cells is a fault at its line, and other rows are read."""
    short, sound = prices(table, "InstanceType,Price,Region\np2.xlarge,0.9\np2.xlarge,0.9,\n")
    assert str(short) == "table.csv:2:1: expected 3 cells, as in the header, got 2"
    assert isinstance(sound, ListedPrice)
