"""Read the prices of a provider's price table, a CSV file, row by row.

A table has the columns InstanceType and Price. It may have Region, AcceleratorCount, SpotPrice,
CommittedPrice1y and CommittedPrice3y; other columns are ignored. This module leaves amounts as
text, and ``importing`` interprets the rows. Files may have any length, since only one row at a time
is in memory.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Context, Decimal
from pathlib import Path
from typing import Literal

from epochcost.errors import Fault, InputError
from epochcost.specs.base import LARGEST
from epochcost.specs.document import display_path
from epochcost.specs.wording import describe, join_choices, printable

ListedPlan = Literal["on-demand", "spot", "committed-use"]
_DEMANDED = ("InstanceType", "Price")
# Columns with a price per hour; each has a plan and a term in months.
_PLANS: Mapping[str, tuple[ListedPlan, int]] = {
    "Price": ("on-demand", 0),
    "SpotPrice": ("spot", 0),
    "CommittedPrice1y": ("committed-use", 12),
    "CommittedPrice3y": ("committed-use", 36),
}
AMOUNT = re.compile(r"[0-9]+(\.[0-9]*)?([eE][-+]?[0-9]{1,2})?")
# Tables that programs write have binary fractions (0.38000000000000006); price lists print at most
# this number of digits.
PRINTED = Context(prec=12)
# Values of the column Region that mean all regions.
_ANYWHERE = ("", "all", "global")


@dataclass(frozen=True, slots=True)
class ListedPrice:
    """The price of one plan of a machine type, as a table lists it.

    ``region`` and ``accelerators`` are None if the table does not state them. ``accelerators`` is
    the number of accelerators as the table writes it, "0" if the machine has no accelerators.
    ``months`` is the length of a commitment, 0 for other plans.
    """

    path: Path
    line: int
    sku: str
    plan: ListedPlan
    amount: str
    region: str | None = None
    accelerators: str | None = None
    months: int = 0

    def fault(self, message: str) -> Fault:
        """A fault with ``message`` at the row's line of the table."""
        where = f"{shown_sku(self.sku)} {self.plan}"
        return Fault(display_path(self.path), self.line, 1, f"{where}: {message}")


def read_prices(path: Path) -> Iterator[ListedPrice | Fault]:
    """Read the prices of a table row by row; yields a fault for a row that does not fit the header.

    Raises InputError if the file cannot be read, is no UTF-8 CSV, or lacks a column.
    """
    rows = csv_rows(path)
    header = [name.strip() for name in next(rows, (1, []))[1]]
    if not set(_DEMANDED) <= set(header) or len(set(header)) < len(header):
        raise InputError(
            f"{display_path(path)}:1: expected a header with the columns "
            f"{join_choices(_DEMANDED)} and each column once, got {join_choices(header)}"
        )
    for line, cells in rows:
        if len(cells) == len(header):
            stripped = (cell.strip() for cell in cells)
            yield from _prices_in_row(path, line, dict(zip(header, stripped, strict=True)))
        elif any(cell.strip() for cell in cells):
            message = f"expected {len(header)} cells, as in the header, got {len(cells)}"
            yield Fault(display_path(path), line, 1, message)


def _prices_in_row(path: Path, line: int, row: Mapping[str, str]) -> Iterator[ListedPrice]:
    region = row.get("Region", "")
    place = None if region.lower() in _ANYWHERE else region
    chips = (row["AcceleratorCount"] or "0") if "AcceleratorCount" in row else None
    for column, (plan, months) in _PLANS.items():
        if column == "Price" or row.get(column):
            sku, amount = row["InstanceType"], row[column]
            yield ListedPrice(path, line, sku, plan, amount, place, chips, months)


def csv_rows(path: Path) -> Iterator[tuple[int, list[str]]]:
    """Read a CSV file row by row; yields each row with the number of its last line.

    Raises InputError if the file cannot be read or is not CSV in UTF-8.
    """
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            reader = csv.reader(file, strict=True)
            for row in reader:
                yield reader.line_num, row
    except OSError as error:
        raise InputError(
            f"{display_path(path)}: expected a CSV file, got: {error.strerror}"
        ) from error
    except UnicodeDecodeError as error:
        byte = f"the byte 0x{error.object[error.start]:02x}"
        raise InputError(
            f"{display_path(path)}: expected UTF-8, got {byte}: save it as UTF-8"
        ) from error
    except csv.Error as error:
        place = f"{display_path(path)}:{reader.line_num}"
        raise InputError(f"{place}: expected comma-separated values, got: {error}") from error


def amount_of(text: str) -> Decimal:
    """Parse an amount per hour; raises ValueError unless it is a decimal number above zero."""
    amount = Decimal(text) if AMOUNT.fullmatch(text) else Decimal(0)
    if not 0 < amount <= LARGEST:
        form = "such as 1234.50, without sign, currency or thousands separator"
        raise ValueError(f"expected a price per hour above 0, {form}, got {describe(text)}")
    return PRINTED.plus(amount)


def shown_sku(sku: str) -> str:
    """The machine type as printable text, or a placeholder if it is empty."""
    return printable(sku) or "(no machine type)"
