"""A trace of spot machines as arrays: prices, availability, amounts, and rates of interruption.

Rows of arrays are zones, columns the stretches of time in which no zone changes. Amounts are
floats, exact to far below a cent: ten thousand jobs are replayed at once.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from epochcost.specs.prices.traces import Floats, Trace, ZoneTrace
from epochcost.units import SECONDS_PER_HOUR

Indices = NDArray[np.intp]
Flags = NDArray[np.bool_]
# Two-sided, of the normal distribution.
_AT_95_PERCENT = 1.959964


@dataclass(frozen=True, slots=True)
class InterruptionRate:
    """How often a zone took a machine back in an hour of having one, with a 95 % interval.

    A machine that is asked for where none is to be had counts for nothing.
    """

    zone: str
    interruptions: int
    hours: float

    @property
    def mean(self) -> float:
        """Interruptions an hour; 0 where no machine was ever to be had."""
        return self.interruptions / self.hours if self.hours else 0.0

    @property
    def low(self) -> float:
        """The low end, by Byar's approximation to the exact interval of a Poisson mean.

        N. E. Breslow and N. E. Day, Statistical Methods in Cancer Research II, 1987, p. 69.
        """
        seen = self.interruptions
        if not seen:
            return 0.0
        return _byar(seen, -_AT_95_PERCENT) / self.hours

    @property
    def high(self) -> float:
        """The high end, by the same."""
        return (
            _byar(self.interruptions + 1, _AT_95_PERCENT) / self.hours if self.hours else math.inf
        )


def _byar(count: int, deviations: float) -> float:
    return count * float((1 - 1 / (9 * count) + deviations / (3 * math.sqrt(count))) ** 3)


class Market:
    """Zones over time, in seconds from the trace's start.

    ``rate`` is the price per hour and infinite where there is no machine; ``until`` when the
    machine that is there is taken back, infinite where that is after the trace's end.
    """

    def __init__(self, trace: Trace, *, bid: float | None = None) -> None:
        """Take a trace; a price above ``bid``, per hour, takes machines back."""
        self.zones, self.end = tuple(trace.zones), trace.end - trace.start
        of_zones = [one.times - trace.start for one in trace.zones.values()]
        times = np.unique(np.concatenate([*of_zones, [0.0]]))
        self.times: Floats = times[(times >= 0) & (times < self.end)]
        limit = math.inf if bid is None else bid
        self.rate: Floats = np.stack(
            [self._rates(one, trace.start, limit) for one in trace.zones.values()]
        )
        had = np.isfinite(self.rate)
        self.until = self._next(~had)
        self.next_of_zone = self._next(had)
        self.next_of_any = self._next(np.any(had, axis=0, keepdims=True))[0]
        self.cheapest: Indices = self.rate.argmin(axis=0)
        self._lengths = np.diff(np.append(self.times, self.end)) / SECONDS_PER_HOUR
        spent = np.where(had, self.rate, 0.0) * self._lengths
        self._paid = np.cumsum(spent, axis=1) - spent

    def _rates(self, rows: ZoneTrace, start: float, limit: float) -> Floats:
        place = np.searchsorted(rows.times - start, self.times, side="right") - 1
        prices = rows.prices[place]
        had = (place >= 0) & rows.available[place] & (prices <= limit)
        return np.where(had, prices, math.inf)

    def _next(self, mask: Flags) -> Floats:
        """When it is so, from each column on; infinite where it is not any more."""
        times = np.where(mask, self.times, math.inf)
        return np.minimum.accumulate(times[..., ::-1], axis=-1)[..., ::-1]

    def column(self, now: Floats) -> Indices:
        """The columns of times."""
        return np.searchsorted(self.times, now, side="right") - 1

    def amounts(self, zones: Indices, start: Floats, end: Floats) -> Floats:
        """What machines cost from one time to another, between which they are not taken back."""
        return self._paid_at(zones, end) - self._paid_at(zones, start)

    def _paid_at(self, zones: Indices, now: Floats) -> Floats:
        # From the left: at the end of a use the next stretch may have no price.
        column = np.maximum(np.searchsorted(self.times, now, side="left") - 1, 0)
        since = (now - self.times[column]) / SECONDS_PER_HOUR
        rate = self.rate[zones, column]
        return self._paid[zones, column] + np.where(np.isfinite(rate), rate, 0.0) * since

    def mean_price(self, zone: int) -> float:
        """The mean price of an hour in which there is a machine; infinite where there is none."""
        rate = self.rate[zone]
        had = np.isfinite(rate)
        return float(np.average(rate[had], weights=self._lengths[had])) if had.any() else math.inf

    def interruption_rate(self, zone: int) -> InterruptionRate:
        """How often a machine that is there is taken back."""
        had = np.isfinite(self.rate[zone])
        interruptions = int((had[:-1] & ~had[1:]).sum())
        return InterruptionRate(self.zones[zone], interruptions, float(self._lengths[had].sum()))
