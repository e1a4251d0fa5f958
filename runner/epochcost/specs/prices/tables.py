"""Read the prices of a provider's price table, a CSV file; ``importing`` interprets the rows.

A table has the columns InstanceType and Price. It may have Region, AcceleratorCount, SpotPrice,
CommittedPrice1y and CommittedPrice3y; other columns are ignored.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Context, Decimal
from pathlib import Path
from typing import Literal

from epochcost.errors import Fault
from epochcost.specs.base import LARGEST, SMALLEST
from epochcost.specs.csv_rows import csv_rows
from epochcost.specs.document import display_path
from epochcost.specs.wording import describe, printable

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

    ``accelerators`` is a number as text, None if not stated. ``months`` is 0 without a commitment.
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
    """Read the prices of a table, and faults of rows; raises SpecError as ``csv_rows`` does."""
    for row in csv_rows(path, _DEMANDED):
        if isinstance(row, Fault):
            yield row
        else:
            yield from _prices_in_row(path, row.line, row.cells)


def _prices_in_row(path: Path, line: int, row: Mapping[str, str]) -> Iterator[ListedPrice]:
    region = row.get("Region", "")
    place = None if region.lower() in _ANYWHERE else region
    chips = (row["AcceleratorCount"] or "0") if "AcceleratorCount" in row else None
    for column, (plan, months) in _PLANS.items():
        if column == "Price" or row.get(column):
            sku, amount = row["InstanceType"], row[column]
            yield ListedPrice(path, line, sku, plan, amount, place, chips, months)


def amount_of(text: str) -> Decimal:
    """Parse an amount per hour; ValueError unless it is a number from SMALLEST to LARGEST."""
    amount = Decimal(text) if AMOUNT.fullmatch(text) else Decimal(0)
    if not SMALLEST <= amount <= LARGEST:
        form = "such as 1234.50, without sign, currency or thousands separator"
        demand = f"expected a price per hour above 0 (from {SMALLEST:g} to {LARGEST:g})"
        raise ValueError(f"{demand}, {form}, got {describe(text)}")
    return PRINTED.plus(amount)


def shown_sku(sku: str) -> str:
    """The machine type as printable text, or a placeholder if it is empty."""
    return printable(sku) or "(no machine type)"
