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


def prices(path: Path, contents: str) -> list[ListedPrice | Fault]:
    """The prices that are read from a file with these contents."""
    path.write_text(contents)
    return list(read_prices(path))


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


def test_a_table_without_prices_is_refused(table: Path) -> None:
    """A table of another kind is refused with the columns that it lacks."""
    with pytest.raises(InputError, match="the columns InstanceType, Price, found no InstanceType"):
        prices(table, "Vendor,Per-Hour\n")


def test_rows_that_cannot_be_read(table: Path) -> None:
    """A row with too few cells is a fault at its line, and other rows are read."""
    short, sound = prices(table, "InstanceType,Price,Region\np2.xlarge,0.9\np2.xlarge,0.9,\n")
    assert str(short) == "table.csv:2:1: expected 3 cells, as in the header, got 2"
    assert isinstance(sound, ListedPrice)
