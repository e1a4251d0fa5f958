"""Traces of spot machines: the price and availability over time, in each zone.

A trace is a CSV file with the columns ``zone`` (or ``region``), ``time`` (ISO 8601 with time zone),
``price`` (per hour of one machine) and, optionally, ``currency`` and ``available``. A row is valid
until the zone's next row. `cost.replay` prices jobs over a trace.
"""

from __future__ import annotations

import datetime as dt
import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from epochcost.errors import Fault, InputError, SpecError
from epochcost.specs.base import ISO_4217
from epochcost.specs.csv_rows import csv_rows
from epochcost.specs.document import display_path
from epochcost.specs.prices.tables import amount_of
from epochcost.specs.wording import describe

Floats = NDArray[np.float64]
_LONGEST_GAP_HOURS = 7 * 24
# Clouds had no spot machines before.
_EARLIEST = dt.datetime(2000, 1, 1, tzinfo=dt.UTC)
_AVAILABLE: Mapping[str, bool] = {"": True, "1": True, "0": False}


@dataclass(frozen=True, slots=True, eq=False)
class ZoneTrace:
    """The hourly prices of a zone, each from its POSIX time on; NaN if no machine is available."""

    times: Floats
    prices: Floats


@dataclass(frozen=True, slots=True, eq=False)
class Trace:
    """The traces of all zones in a file, from ``start`` to ``end`` in POSIX time."""

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
    """Read spot prices and availability from a CSV file; raises SpecError for an invalid file."""
    zones: dict[str, list[_Row]] = defaultdict(list)
    rows: list[_Row] = []
    source = display_path(path)
    for cells_of_row in csv_rows(path, ("time", "price")):
        if isinstance(cells_of_row, Fault):
            raise SpecError([cells_of_row])
        try:
            row = _parse_row(cells_of_row.cells)
            _require_order(row, rows[-1:], zones[row.zone])
        except ValueError as error:
            raise SpecError([Fault(source, cells_of_row.line, 1, str(error))]) from None
        rows.append(row)
        zones[row.zone].append(row)
    traces = {zone: _trace_of(rows_of_zone) for zone, rows_of_zone in zones.items()}
    start, end = rows[0].time.timestamp(), rows[-1].time.timestamp()
    for zone, trace in traces.items():
        _require_no_gap(trace, end, f"{source}: {zone}")
    return Trace(traces, rows[0].currency, start, end)


def _parse_row(cells: Mapping[str, str]) -> _Row:
    """Parse a row, with price NaN if ``available`` is 0; raises ValueError for an invalid cell."""
    available = _AVAILABLE.get(cells.get("available", ""))
    if available is None:
        raise ValueError(f"expected available to be 0 or 1, got {describe(cells['available'])}")
    zone = cells.get("zone", cells.get("region"))
    if not zone:
        got = "no such column" if zone is None else "an empty cell"
        raise ValueError(f"expected a zone in the column zone or region, got {got}")
    currency = cells.get("currency") or "USD"
    if currency not in ISO_4217:
        got = describe(currency)
        raise ValueError(f"expected a currency of ISO 4217, such as USD, got {got}")
    price = float(amount_of(cells["price"])) if available else math.nan
    return _Row(zone, _time(cells["time"]), price, currency)


def _time(text: str) -> dt.datetime:
    try:
        time = dt.datetime.fromisoformat(text)
    except ValueError:
        time = None
    if time is None or time.tzinfo is None:
        raise ValueError(
            f"expected a time with its zone, such as 2026-03-01T14:30:00Z, got {describe(text)}"
        )
    if not _EARLIEST <= time <= dt.datetime.now(dt.UTC):
        raise ValueError(f"expected a time after {_EARLIEST.year} and in the past, got {text}")
    return time


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
