"""Histories of spot prices: a CSV file of times, regions and prices becomes series by region.

The header names the columns ``time``, ``region`` and ``price``, in any order, others beside them
are passed over. A time is ISO 8601, such as 2017-03-01T14:30:00Z, in UTC where it says no other
zone; a price is per hour of one machine and holds until the region's next row. Rows are in the
order of time. The last row of the file is the end of what is known, of every region.
"""

from __future__ import annotations

import datetime as dt
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from pathlib import Path
from types import MappingProxyType

from epochcost.errors import InputError
from epochcost.specs.catalogue import Catalogue
from epochcost.specs.document import display_path
from epochcost.specs.price import Price
from epochcost.specs.prices.tables import csv_rows
from epochcost.specs.wording import describe, join_choices

COLUMNS = ("time", "region", "price")
# The largest amount that a spec takes.
_LARGEST = Decimal(10**15)


@dataclass(frozen=True, slots=True)
class PricePoint:
    """From ``time`` on an hour costs ``price``, until the next point of the region."""

    time: dt.datetime
    price: Decimal


@dataclass(frozen=True, slots=True)
class PriceHistory:
    """Series by region, each in the order of time; nothing is known after ``end``."""

    series: Mapping[str, tuple[PricePoint, ...]]
    start: dt.datetime
    end: dt.datetime


def history_of(catalogue: Catalogue, price: Price) -> PriceHistory:
    """The history that a price names, from the file beside its spec.

    Raises InputError where it names none, and as ``read_history`` does.
    """
    if price.history is None:
        raise InputError(f"{price.id}: expected a price with a history, got one without")
    return read_history(catalogue.files[f"prices/{price.id}"].parent / price.history)


def read_history(path: Path) -> PriceHistory:
    """The history in a CSV file; raises InputError with file and line at the first unsound row."""
    rows = csv_rows(path)
    line, header = next(rows, (1, []))
    places = _places(path, header)
    series: dict[str, list[PricePoint]] = defaultdict(list)
    latest: dt.datetime | None = None
    for line, cells in rows:
        if not any(cell.strip() for cell in cells):
            continue
        try:
            region, point = _point(cells, places, len(header))
            _check_order(point, latest, series[region], region)
        except ValueError as error:
            raise InputError(f"{display_path(path)}:{line}: {error}") from None
        series[region].append(point)
        latest = point.time
    if latest is None:
        raise InputError(f"{display_path(path)}:{line}: expected rows below the header, found none")
    start = min(points[0].time for points in series.values())
    points_by_region = {region: tuple(points) for region, points in series.items()}
    return PriceHistory(MappingProxyType(points_by_region), start, latest)


def _places(path: Path, header: Sequence[str]) -> dict[str, int]:
    names = [name.strip() for name in header]
    wrong = [name for name in COLUMNS if names.count(name) != 1]
    if wrong:
        raise InputError(
            f"{display_path(path)}:1: expected a header with the columns {join_choices(COLUMNS)} "
            f"once each, got {join_choices(names) if any(names) else 'nothing'}"
        )
    return {name: names.index(name) for name in COLUMNS}


def _point(cells: Sequence[str], places: Mapping[str, int], width: int) -> tuple[str, PricePoint]:
    """A row's region and price; raises ValueError with the demand, as all below."""
    if len(cells) != width:
        raise ValueError(f"expected {width} cells, as in the header, got {len(cells)}")
    time, region, price = (cells[places[name]].strip() for name in COLUMNS)
    if not region:
        raise ValueError("expected a region, got an empty cell")
    return region, PricePoint(_time(time), _price(price))


def _time(text: str) -> dt.datetime:
    try:
        time = dt.datetime.fromisoformat(text)
    except ValueError:
        time = None
    if time is None:
        raise ValueError(f"expected a time such as 2017-03-01T14:30:00Z, got {describe(text)}")
    return time.replace(tzinfo=dt.UTC) if time.tzinfo is None else time.astimezone(dt.UTC)


def _price(text: str) -> Decimal:
    try:
        price = Decimal(text)
    except InvalidOperation:
        price = Decimal("NaN")
    if not price.is_finite() or not 0 < price <= _LARGEST:
        raise ValueError(f"expected a price per hour above 0, got {describe(text)}")
    return price


def _check_order(
    point: PricePoint, latest: dt.datetime | None, series: Sequence[PricePoint], region: str
) -> None:
    if latest is not None and point.time < latest:
        raise ValueError(
            f"expected rows in the order of time, got {point.time} after {latest}: sort the file"
        )
    if series and point.time == series[-1].time:
        raise ValueError(f"expected one price of a region at a time, got two of {describe(region)}")
