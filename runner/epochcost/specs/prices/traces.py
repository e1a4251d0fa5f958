"""Traces of spot machines: the price and availability over time, in each zone.

A trace is a CSV file with the columns ``zone`` (or ``region``), ``time`` (ISO 8601 with time zone),
``price`` (per hour of one machine) and, optionally, ``currency`` and ``available``. A row is valid
until the zone's next row. `cost.replay` prices jobs over a trace.
"""

from __future__ import annotations

import datetime as dt
import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from epochcost.errors import InputError
from epochcost.specs.base import LARGEST
from epochcost.specs.document import display_path
from epochcost.specs.prices.tables import csv_rows
from epochcost.specs.wording import describe, join_choices

Floats = NDArray[np.float64]
_LONGEST_GAP_HOURS = 7 * 24
_AVAILABLE: Mapping[str, bool] = {"": True, "1": True, "0": False}


@dataclass(frozen=True, slots=True, eq=False)
class ZoneTrace:
    """The prices per hour of a zone, each valid from its POSIX time in ``times`` on.

    A price is NaN while no machine is available.
    """

    times: Floats
    prices: Floats


@dataclass(frozen=True, slots=True, eq=False)
class Trace:
    """The traces of all zones in one currency, from ``start`` to ``end`` in POSIX time."""

    zones: Mapping[str, ZoneTrace]
    currency: str
    start: float
    end: float

    @property
    def doubt(self) -> str:
        """The zones that repeat another zone's rows, which is implausible; empty if none does."""
        zones: dict[bytes, str] = {}
        repeats = []
        for zone, trace in self.zones.items():
            first = zones.setdefault(trace.times.tobytes() + trace.prices.tobytes(), zone)
            if first != zone:
                repeats.append(f"zone {zone} has the rows of zone {first}")
        return "; ".join(repeats)

    @property
    def window(self) -> str:
        """The start and the end of the trace as text, in UTC."""
        ends = (dt.datetime.fromtimestamp(end, dt.UTC) for end in (self.start, self.end))
        return " to ".join(f"{end:%Y-%m-%dT%H:%M}Z" for end in ends)


@dataclass(frozen=True, slots=True)
class _Row:
    zone: str
    time: dt.datetime
    price: float
    currency: str


def read_trace(path: Path) -> Trace:
    """Read spot prices and availability from a CSV file; raises InputError for an invalid file."""
    zones: dict[str, list[_Row]] = defaultdict(list)
    rows: list[_Row] = []
    source = display_path(path)
    for line, row in _rows_with_line_numbers(path):
        try:
            _require_order(row, rows[-1:], zones[row.zone])
        except ValueError as error:
            raise InputError(f"{source}:{line}: {error}") from None
        rows.append(row)
        zones[row.zone].append(row)
    if not rows:
        raise InputError(f"{source}: expected rows, found none")
    traces = {zone: _trace_of(rows_of_zone) for zone, rows_of_zone in zones.items()}
    start, end = rows[0].time.timestamp(), rows[-1].time.timestamp()
    for zone, trace in traces.items():
        _require_no_gap(trace, end, f"{source}: {zone}")
    return Trace(traces, rows[0].currency, start, end)


def _rows_with_line_numbers(path: Path) -> Iterator[tuple[int, _Row]]:
    rows, source = csv_rows(path), display_path(path)
    line, header = next(rows, (1, []))
    names = [name.strip() for name in header]
    if "zone" not in names:
        names = ["zone" if name == "region" else name for name in names]
    if any(names.count(name) != 1 for name in ("zone", "time", "price")):
        got = join_choices(names) if any(names) else "nothing"
        raise InputError(
            f'{source}:1: expected a header with "zone", "time" and "price" once each, got {got}'
        )
    for line, cells in rows:
        if not any(cell.strip() for cell in cells):
            continue
        try:
            if len(cells) != len(names):
                raise ValueError(f"expected {len(names)} cells, as in the header, got {len(cells)}")
            yield line, _parse_row(dict(zip(names, map(str.strip, cells), strict=True)))
        except ValueError as error:
            raise InputError(f"{source}:{line}: {error}") from None


def _parse_row(cells: Mapping[str, str]) -> _Row:
    """Parse a row, with price NaN if ``available`` is 0; raises ValueError for an invalid cell."""
    available = _AVAILABLE.get(cells.get("available", ""))
    if available is None:
        raise ValueError(f"expected available to be 0 or 1, got {describe(cells['available'])}")
    if not cells["zone"]:
        raise ValueError("expected a zone, got an empty cell")
    price = _price(cells["price"]) if available else math.nan
    return _Row(cells["zone"], _time(cells["time"]), price, cells.get("currency") or "USD")


def _time(text: str) -> dt.datetime:
    try:
        time = dt.datetime.fromisoformat(text)
    except ValueError:
        time = None
    if time is None or time.tzinfo is None:
        raise ValueError(
            f"expected a time with its zone, such as 2026-03-01T14:30:00Z, got {describe(text)}"
        )
    return time


def _price(text: str) -> float:
    try:
        price = float(text)
    except ValueError:
        price = math.nan
    if not 0 < price <= LARGEST:
        raise ValueError(f"expected a price per hour above 0, got {describe(text)}")
    return price


def _require_order(row: _Row, before: Sequence[_Row], of_zone: Sequence[_Row]) -> None:
    if of_zone and row.time == of_zone[-1].time:
        raise ValueError(f"expected one row for a zone and time, got two of {describe(row.zone)}")
    for latest in before:
        if row.time < latest.time:
            got = f"got {row.time} after {latest.time}"
            raise ValueError(f"expected rows in the order of time, {got}: sort the file")
        if row.currency != latest.currency:
            got = f"got {row.currency} after {latest.currency}"
            raise ValueError(f"expected one currency, {got}")


def _trace_of(rows: Sequence[_Row]) -> ZoneTrace:
    times = np.array([row.time.timestamp() for row in rows])
    return ZoneTrace(times, np.array([row.price for row in rows]))


def _require_no_gap(rows: ZoneTrace, end: float, place: str) -> None:
    hours = np.diff(np.append(rows.times, end)) / 3600
    if hours.max() > _LONGEST_GAP_HOURS:
        begin = dt.datetime.fromtimestamp(rows.times[int(hours.argmax())], dt.UTC)
        raise InputError(
            f"{place}: expected rows at most {_LONGEST_GAP_HOURS} h apart, got {hours.max():g} h "
            f"after {begin:%Y-%m-%dT%H:%M:%SZ}: add the missing rows"
        )
