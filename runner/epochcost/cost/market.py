"""The prices of spot machines over time as arrays, to compute costs and interruption rates.

Amounts are floats, because thousands of jobs are replayed at once. Errors are far below a cent.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from epochcost.specs.prices.traces import Floats, Trace, ZoneTrace
from epochcost.units import SECONDS_PER_HOUR

Indices = NDArray[np.intp]
Flags = NDArray[np.bool_]


class Market:
    """Prices and availability of spot machines over time, in all zones of a price history.

    Times are in seconds from the start of the history. No price changes in the period of column j,
    from ``times[j]`` to ``change[j]``; the last ``change`` is infinite. ``rate`` [zones, columns]
    is the hourly price, infinite if the zone has no machines. ``until`` [zones, columns] is the
    time at which the provider takes back a machine that runs in this period; infinite if never.
    """

    def __init__(self, trace: Trace) -> None:
        self.zones, self.end = tuple(trace.zones), trace.end - trace.start
        of_zones = [rows.times - trace.start for rows in trace.zones.values()]
        times = np.unique(np.concatenate([*of_zones, [0.0]]))
        self.times: Floats = times[times < self.end]
        self.change = np.append(self.times[1:], math.inf)
        self.rate: Floats = np.stack(
            [self._rates(rows, trace.start) for rows in trace.zones.values()]
        )
        self.had: Flags = np.isfinite(self.rate)
        losses = np.where(self.had, math.inf, self.times)
        self.until = np.minimum.accumulate(losses[:, ::-1], axis=1)[:, ::-1]
        self.cheapest: Indices = self.rate.argmin(axis=0)
        self._hours = np.diff(np.append(self.times, self.end)) / SECONDS_PER_HOUR
        spent = np.where(self.had, self.rate, 0.0) * self._hours
        self._paid = np.cumsum(spent, axis=1) - spent

    def _rates(self, rows: ZoneTrace, start: float) -> Floats:
        place = np.searchsorted(rows.times - start, self.times, side="right") - 1
        prices = rows.prices[place]
        return np.where((place >= 0) & np.isfinite(prices), prices, math.inf)

    def column(self, now: Floats) -> Indices:
        """For each of the times ``now``, the index of the column whose period contains the time."""
        return np.searchsorted(self.times, now, side="right") - 1

    def amounts(self, zones: Indices, start: Floats, end: Floats) -> Floats:
        """Cost of each use of a machine from ``start`` to ``end``, in the history's currency.

        The caller must ensure that the zone of each use has machines until the end of the use.
        """
        return self._paid_at(zones, end) - self._paid_at(zones, start)

    def _paid_at(self, zones: Indices, now: Floats) -> Floats:
        # side="left", since the period that begins at the end of a use may have no price.
        column = np.maximum(np.searchsorted(self.times, now, side="left") - 1, 0)
        since = (now - self.times[column]) / SECONDS_PER_HOUR
        rate = self.rate[zones, column]
        return self._paid[zones, column] + np.where(np.isfinite(rate), rate, 0.0) * since

    def mean_price(self, zone: int) -> float:
        """Mean hourly price of a zone while it has machines; infinite if it never has any."""
        had = self.had[zone]
        rates = self.rate[zone][had]
        return float(np.average(rates, weights=self._hours[had])) if had.any() else math.inf

    def interruptions_per_hour(self, zone: int | None = None) -> float:
        """Interruptions per machine-hour in ``zone``, by default in all zones together."""
        had = self.had if zone is None else self.had[[zone]]
        interruptions = int((had[:, :-1] & ~had[:, 1:]).sum())
        hours = float((had * self._hours).sum())
        return interruptions / hours if hours else 0.0
