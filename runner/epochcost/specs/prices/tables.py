"""Price tables: CSV files of somebody's prices, read row by row.

A table is recognised by its header or named. What a row means for the catalogue is decided in
``importing``; here an amount stays the text that it is, so that only those are judged that
somebody wants. Files may be of any length: one row is held at a time.
"""

from __future__ import annotations

import csv
import datetime as dt
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Literal

from epochcost.errors import Fault, InputError
from epochcost.specs.document import display_path
from epochcost.specs.wording import describe, join_choices, printable

FormatName = Literal["skypilot", "list"]
ListedPlan = Literal["on-demand", "spot"]
_BYTE_ORDER_MARK = "\ufeff"
# How tables say that a price is the same in every region.
_ANYWHERE = ("", "all", "global")


@dataclass(frozen=True, slots=True)
class ListedPrice:
    """The price of one plan of one machine type in one row; None: the table does not say.

    ``accelerators`` is their number as the table writes it, "0" for a row that names none.
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


@dataclass(frozen=True)
class Format:
    """A kind of table: the columns it is known by, and which column says what.

    ``amounts`` are its columns of amounts by plan, ``optional`` the plans that a machine may lack.
    """

    demanded: tuple[str, ...]
    amounts: Mapping[ListedPlan, str]
    optional: frozenset[ListedPlan] = frozenset()
    others: Mapping[str, str] = field(default_factory=dict)


# SkyPilot's catalogue v8 with extracts of it, and instance types with a price.
FORMATS: Mapping[FormatName, Format] = MappingProxyType(
    {
        "skypilot": Format(
            demanded=("InstanceType", "Region", "Price", "SpotPrice"),
            amounts={"on-demand": "Price", "spot": "SpotPrice"},
            optional=frozenset({"spot"}),
            others={
                "provider": "Provider",
                "region": "Region",
                "zone": "AvailabilityZone",
                "accelerators": "AcceleratorCount",
                "path": "CatalogPath",
                "commit": "Commit",
            },
        ),
        "list": Format(
            demanded=("InstanceType", "Price"),
            amounts={"on-demand": "Price"},
            others={"provider": "Provider", "region": "Region", "as_of": "Snapshot"},
        ),
    }
)


def read_prices(path: Path, format_name: FormatName | None = None) -> Iterator[ListedPrice | Fault]:
    """The prices of a table, row by row; a fault for a row that cannot be read.

    Raises InputError where the file cannot be read, is no UTF-8 CSV, or lacks a column.
    """
    rows = csv_rows(path)
    first = next(rows, None)
    if first is None:
        raise InputError(f"{display_path(path)}: expected a table with a header, got an empty file")
    header = [name.strip() for name in first[1]]
    layout = _format(path, header, format_name)
    columns = {name: header.index(name) for name in header}
    for line, cells in rows:
        if len(cells) == len(header):
            yield from _prices(path, line, layout, columns, cells)
        elif any(cell.strip() for cell in cells):
            message = f"expected {len(header)} cells, as in the header, got {len(cells)}"
            yield Fault(display_path(path), line, 1, message)


def _format(path: Path, header: Sequence[str], wanted: FormatName | None) -> Format:
    """The layout that is named, else the first whose columns are all there."""
    twice = sorted({name for name in header if header.count(name) > 1})
    if twice:
        raise InputError(
            f"{display_path(path)}:1: expected each column once, got {join_choices(twice)} twice"
        )
    if wanted is not None:
        missing = [name for name in FORMATS[wanted].demanded if name not in header]
        if missing:
            demand = f"expected the columns of {wanted}, found none named {join_choices(missing)}"
            raise InputError(f"{display_path(path)}:1: {demand}; there are {join_choices(header)}")
        return FORMATS[wanted]
    for layout in FORMATS.values():
        if set(layout.demanded) <= set(header):
            return layout
    known = "; or ".join(", ".join(layout.demanded) for layout in FORMATS.values())
    got = f"got {join_choices(header)}"
    raise InputError(f"{display_path(path)}:1: expected a header with the columns {known}; {got}")


def _prices(
    path: Path, line: int, layout: Format, columns: Mapping[str, int], cells: Sequence[str]
) -> Iterator[ListedPrice | Fault]:
    said = {
        key: cells[columns[name]].strip() for key, name in layout.others.items() if name in columns
    }
    try:
        as_of = dt.date.fromisoformat(said["as_of"][:10]) if "as_of" in said else None
    except ValueError:
        message = f"expected a date such as 2026-07-20, got {describe(said['as_of'])}"
        yield Fault(display_path(path), line, 1, message)
        return
    region = said.get("region", "")
    for sku, plan, amount in _amounts(layout, columns, cells):
        if amount or plan not in layout.optional:
            yield ListedPrice(
                path,
                line,
                sku,
                plan,
                amount,
                provider=said.get("provider") or None,
                region=None if region.lower() in _ANYWHERE else region,
                zone=said.get("zone") or None,
                accelerators=(said["accelerators"] or "0") if "accelerators" in said else None,
                as_of=as_of,
                source=_source(said),
            )


def _amounts(
    layout: Format, columns: Mapping[str, int], cells: Sequence[str]
) -> Iterator[tuple[str, ListedPlan, str]]:
    """Machine type, plan and amount of a row, for each plan of the table."""
    sku = cells[columns["InstanceType"]].strip()
    for plan, name in layout.amounts.items():
        yield sku, plan, cells[columns[name]].strip()


def _source(said: Mapping[str, str]) -> str | None:
    """The file of SkyPilot's catalogue that a row names."""
    commit, path = said.get("commit"), said.get("path")
    if commit and path:
        return f"skypilot-org/skypilot-catalog@{commit}, {path}"
    return None


def csv_rows(path: Path) -> Iterator[tuple[int, list[str]]]:
    """The rows of a CSV file, each with the number of its last line.

    Raises InputError where the file cannot be read or is no UTF-8 CSV.
    """
    try:
        with path.open("rb") as file:
            reader = csv.reader(_decoded(path, file), strict=True)
            for row in reader:
                yield reader.line_num, row
    except OSError as error:
        raise InputError(
            f"{display_path(path)}: expected a CSV file, got: {error.strerror}"
        ) from error
    except csv.Error as error:
        place = f"{display_path(path)}:{reader.line_num}"
        raise InputError(f"{place}: expected comma-separated values, got: {error}") from error


def _decoded(path: Path, lines: Iterator[bytes]) -> Iterator[str]:
    """The lines as text; a file of another encoding is refused with the place of its first byte."""
    for number, line in enumerate(lines, start=1):
        try:
            text = line.decode()
        except UnicodeDecodeError as error:
            byte = f"the byte 0x{line[error.start]:02x}"
            place = f"{display_path(path)}:{number}"
            raise InputError(f"{place}: expected UTF-8, got {byte}: save it as UTF-8") from error
        yield text.removeprefix(_BYTE_ORDER_MARK) if number == 1 else text


def shown_sku(sku: str) -> str:
    """A machine type as it is shown, whatever the file holds."""
    return printable(sku) or "(no machine type)"
