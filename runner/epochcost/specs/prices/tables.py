"""Read the prices of a provider's price table, a CSV file, row by row.

A table has the columns InstanceType and Price, and may have those of SkyPilot's catalogue. This
module leaves amounts as text; ``importing`` interprets the rows. Files may have any length, since
only one row at a time is in memory.
"""

from __future__ import annotations

import csv
import datetime as dt
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Literal

from epochcost.errors import Fault, InputError
from epochcost.specs.document import display_path
from epochcost.specs.wording import describe, join_choices, printable

ListedPlan = Literal["on-demand", "spot", "committed-use"]
_DEMANDED = ("InstanceType", "Price")
# Other prices per hour that a row may have, each with its plan and the months of its term.
_OTHER_PLANS: Mapping[str, tuple[ListedPlan, int]] = MappingProxyType(
    {
        "SpotPrice": ("spot", 0),
        "CommittedPrice1y": ("committed-use", 12),
        "CommittedPrice3y": ("committed-use", 36),
    }
)
# Texts of the region that mean all regions.
_ANYWHERE = ("", "all", "global")


@dataclass(frozen=True, slots=True)
class ListedPrice:
    """The price of one plan of a machine type, as a table lists it.

    A field is None if the table does not state it. ``accelerators`` is the number of accelerators
    as the table writes it, "0" if the machine has none; ``months`` is the length of a commitment, 0
    for other plans.
    """

    path: Path
    line: int
    sku: str
    plan: ListedPlan
    amount: str
    provider: str | None = None
    region: str | None = None
    zone: str | None = None
    accelerators: str | None = None
    as_of: dt.date | None = None
    source: str | None = None
    months: int = 0


def read_prices(path: Path) -> Iterator[ListedPrice | Fault]:
    """Read the prices of a table row by row; yields a fault for a row that cannot be read.

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
            yield from _prices(path, line, dict(zip(header, stripped, strict=True)))
        elif any(cell.strip() for cell in cells):
            message = f"expected {len(header)} cells, as in the header, got {len(cells)}"
            yield Fault(display_path(path), line, 1, message)


def _prices(path: Path, line: int, row: Mapping[str, str]) -> Iterator[ListedPrice | Fault]:
    """Yield the on-demand price and all other prices of a row, or a fault for an invalid date."""
    try:
        as_of = dt.date.fromisoformat(row["Snapshot"][:10]) if "Snapshot" in row else None
    except ValueError:
        message = f"expected a date such as 2026-07-20, got {describe(row['Snapshot'])}"
        yield Fault(display_path(path), line, 1, message)
        return
    region, file = row.get("Region", ""), row.get("CatalogPath")
    others = [(*plan, row[key]) for key, plan in _OTHER_PLANS.items() if row.get(key)]
    plans: list[tuple[ListedPlan, int, str]] = [("on-demand", 0, row["Price"]), *others]
    for plan, months, amount in plans:
        yield ListedPrice(
            path,
            line,
            row["InstanceType"],
            plan,
            amount,
            provider=row.get("Provider") or None,
            region=None if region.lower() in _ANYWHERE else region,
            zone=row.get("AvailabilityZone") or None,
            accelerators=(row["AcceleratorCount"] or "0") if "AcceleratorCount" in row else None,
            as_of=as_of,
            source=f"skypilot-org/skypilot-catalog@{row['Commit']}, {file}" if file else None,
            months=months,
        )


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


def shown_sku(sku: str) -> str:
    """The machine type as printable text, or a placeholder if it is empty."""
    return printable(sku) or "(no machine type)"
