"""Traces of spot machines: what each zone asked and whether it had a machine, over time.

Three forms are read. A CSV file of our own has the columns ``zone`` (or ``region``), ``time``
(ISO 8601 with its zone) and ``price`` (per hour of one machine), and may have ``currency`` and
``available``; a row holds until the zone's next one. The two forms of others are JSON: what AWS's
``describe-spot-price-history`` prints (prices, nothing of availability) and the files of
skypilot-org/spot-traces (numbers of machines at even steps, some with prices). What follows from
a trace is left to `cost.market`.
"""

from __future__ import annotations

import datetime as dt
import json
import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from epochcost.errors import InputError
from epochcost.specs.document import display_path
from epochcost.specs.prices.tables import csv_rows
from epochcost.specs.wording import describe, join_choices, suggest_or_list
from epochcost.units import SECONDS_PER_HOUR

Floats = NDArray[np.float64]
LONGEST_GAP_SECONDS = 7 * 86_400.0
_AVAILABLE = {"1": True, "true": True, "0": False, "false": False}
# The largest amount that a spec takes.
_LARGEST = 1e15


@dataclass(frozen=True, slots=True, eq=False)
class ZoneTrace:
    """One zone's rows: POSIX times that increase, prices per hour (NaN: not said), availability."""

    times: Floats
    prices: Floats
    available: NDArray[np.bool_]


@dataclass(frozen=True, slots=True, eq=False)
class Trace:
    """Rows of some zones in one currency; nothing is known before ``start`` or after ``end``.

    ``tells_availability`` says whether it knows when a zone had no machine.
    """

    zones: Mapping[str, ZoneTrace]
    currency: str
    start: float
    end: float
    source: str
    tells_availability: bool = True

    @property
    def hours(self) -> float:
        """How long the trace is."""
        return (self.end - self.start) / float(SECONDS_PER_HOUR)

    @property
    def window(self) -> str:
        """From when to when, in UTC."""
        ends = (dt.datetime.fromtimestamp(end, dt.UTC) for end in (self.start, self.end))
        return " to ".join(f"{end:%Y-%m-%dT%H:%M}Z" for end in ends)


@dataclass(frozen=True, slots=True)
class _Row:
    zone: str
    time: dt.datetime
    price: float
    available: bool | None
    currency: str


def read_traces(
    paths: Sequence[Path],
    zones: Sequence[str] = (),
    *,
    price: float | None = None,
    longest_gap_seconds: float = LONGEST_GAP_SECONDS,
) -> Trace:
    """The trace of some files, of all zones or of some, where all files have rows.

    ``price`` is that of rows that say none. Raises InputError with file and line at the first
    unsound row, and where files or zones do not go together.
    """
    traces = [_read(path) for path in paths]
    found: dict[str, ZoneTrace] = {}
    for one in traces:
        for zone, rows in one.zones.items():
            if zone in found:
                raise InputError(f"{one.source}: expected each zone in one file, got {zone} in two")
            found[zone] = _priced(rows, price, f"{one.source}: {zone}")
            _check_gaps(rows, one.end, longest_gap_seconds, f"{one.source}: {zone}")
    for zone in zones:
        if zone not in found:
            raise InputError(
                f"zones: expected those of the trace, got {describe(zone)}"
                f"{suggest_or_list(zone, found)}"
            )
    start, end = max(one.start for one in traces), min(one.end for one in traces)
    currencies = {one.currency for one in traces}
    source = ", ".join(one.source for one in traces)
    if len(currencies) > 1:
        raise InputError(f"{source}: expected one currency, got {join_choices(sorted(currencies))}")
    if start >= end:
        raise InputError(f"{source}: expected traces of one time, found none that all files have")
    chosen = {zone: found[zone] for zone in (zones or found)}
    tells = all(one.tells_availability for one in traces)
    return Trace(MappingProxyType(chosen), currencies.pop(), start, end, source, tells)


def _read(path: Path) -> Trace:
    if path.suffix.lower() == ".json":
        return _from_json(path)
    return _from_rows(_csv(path), str(display_path(path)))


def _from_rows(rows: Iterable[tuple[int | None, _Row]], source: str) -> Trace:
    """The trace of rows in the order of time, each with its line."""
    points: dict[str, list[_Row]] = defaultdict(list)
    latest = first = None
    for line, row in rows:
        place = source if line is None else f"{source}:{line}"
        first, latest = first or row, _checked(row, latest, points[row.zone], place)
        points[row.zone].append(row)
    if first is None or latest is None:
        raise InputError(f"{source}: expected rows, found none")
    zones = {
        zone: ZoneTrace(
            np.array([row.time.timestamp() for row in of_zone]),
            np.array([row.price for row in of_zone]),
            np.array([row.available is not False for row in of_zone]),
        )
        for zone, of_zone in points.items()
    }
    ends = first.time.timestamp(), latest.time.timestamp()
    tells = any(row.available is not None for of_zone in points.values() for row in of_zone)
    return Trace(MappingProxyType(zones), first.currency, *ends, source, tells)


def _checked(row: _Row, latest: _Row | None, of_zone: Sequence[_Row], place: str) -> _Row:
    """The row, which goes with the one before it; raises InputError with its place otherwise."""
    if of_zone and row.time == of_zone[-1].time:
        raise InputError(
            f"{place}: expected one row of a zone at a time, got two of {describe(row.zone)}"
        )
    if latest is None:
        return row
    if row.time.utcoffset() != latest.time.utcoffset():
        raise InputError(
            f"{place}: expected times in one time zone, got {row.time} after {latest.time}: "
            "write all in UTC"
        )
    if row.time < latest.time:
        raise InputError(
            f"{place}: expected rows in the order of time, got {row.time} after {latest.time}: "
            "sort the file"
        )
    if row.currency != latest.currency:
        raise InputError(
            f"{place}: expected one currency, got {row.currency} after {latest.currency}"
        )
    return row


def _csv(path: Path) -> Iterator[tuple[int, _Row]]:
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
            yield line, _row(dict(zip(names, map(str.strip, cells), strict=True)))
        except ValueError as error:
            raise InputError(f"{source}:{line}: {error}") from None


def _row(cells: Mapping[str, str]) -> _Row:
    """A row of a CSV file; raises ValueError with the demand, as all below."""
    said = cells.get("available") or None
    if said is not None and said.lower() not in _AVAILABLE:
        raise ValueError(f"expected available to be 0 or 1, got {describe(said)}")
    available = None if said is None else _AVAILABLE[said.lower()]
    if not cells["zone"]:
        raise ValueError("expected a zone, got an empty cell")
    unsaid = not cells["price"] and "available" in cells
    price = math.nan if unsaid else _price(cells["price"])
    currency = cells.get("currency") or "USD"
    return _Row(cells["zone"], _time(cells["time"]), price, available, currency)


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
    if not 0 < price <= _LARGEST:
        raise ValueError(f"expected a price per hour above 0, got {describe(text)}")
    return price


def _from_json(path: Path) -> Trace:
    source = str(display_path(path))
    try:
        content = json.loads(path.read_bytes())
    except OSError as error:
        raise InputError(f"{source}: expected a trace, got: {error.strerror}") from error
    except (ValueError, RecursionError):
        raise InputError(f"{source}: expected JSON in UTF-8, got something else") from None
    try:
        if "SpotPriceHistory" in content:
            return _from_aws(content["SpotPriceHistory"], source)
        return _from_skypilot(content, path.stem.partition("_")[0], source)
    except (KeyError, TypeError, AttributeError) as error:
        raise InputError(
            f'{source}: expected "SpotPriceHistory" as AWS prints it, or "metadata" and "data" as '
            f"spot-traces have them, found none or another form of it ({error})"
        ) from None
    except ValueError as error:
        raise InputError(f"{source}: {error}") from None


def _from_aws(entries: Sequence[Mapping[str, str]], source: str) -> Trace:
    """Changes of prices, newest first; a price is asked, and no word of how long it is had.

    Response elements: API_SpotPrice of the EC2 API reference, version 2016-11-15.
    """
    for name in ("InstanceType", "ProductDescription"):
        kinds = sorted({entry[name] for entry in entries})
        if len(kinds) > 1:
            raise ValueError(f"expected one {name}, got {join_choices(kinds)}: ask AWS for one")
    rows = [
        _Row(
            entry["AvailabilityZone"],
            _time(entry["Timestamp"]).astimezone(dt.UTC),
            _price(entry["SpotPrice"]),
            available=None,
            currency="USD",
        )
        for entry in entries
    ]
    return _from_rows(((None, row) for row in sorted(rows, key=lambda row: row.time)), source)


def _from_skypilot(content: Mapping[str, Any], zone: str, source: str) -> Trace:
    """Numbers of available machines every ``gap_seconds``, as the README of spot-traces says.

    The zone is the file's name up to its first underscore. A file has no date: its times count
    from 1970-01-01.
    """
    counts, gap = content["data"], content["metadata"]["gap_seconds"]
    prices = content.get("prices", [math.nan] * len(counts))
    if not counts or not 0 < gap < math.inf or len(prices) != len(counts):
        raise ValueError("expected data at a gap_seconds above 0 and, if any, as many prices")
    known = np.array(prices, np.float64)
    available = np.array(counts, np.float64) > 0
    if (known <= 0).any():
        raise ValueError(f"expected prices per hour above 0, got {np.nanmin(known):g}")
    times = np.arange(len(counts), dtype=np.float64) * gap
    rows = ZoneTrace(times, known, available)
    return Trace(MappingProxyType({zone: rows}), "USD", 0.0, len(counts) * gap, source)


def _priced(rows: ZoneTrace, price: float | None, place: str) -> ZoneTrace:
    """The rows, each with a price where it is available."""
    unsaid = np.isnan(rows.prices) & rows.available
    if not unsaid.any():
        return rows
    if price is None:
        raise InputError(f"{place}: expected prices, found none: give one with --spot-price")
    return ZoneTrace(rows.times, np.where(unsaid, price, rows.prices), rows.available)


def _check_gaps(rows: ZoneTrace, end: float, longest: float, place: str) -> None:
    gaps = np.diff(np.append(rows.times, end))
    if gaps.max() > longest:
        at = dt.datetime.fromtimestamp(rows.times[int(gaps.argmax())], dt.UTC)
        raise InputError(
            f"{place}: expected rows at most {longest / 3600:g} h apart, got {gaps.max() / 3600:g} "
            f"h after {at:%Y-%m-%dT%H:%M:%SZ}: add what is missing, or allow it with --longest-gap"
        )
