"""Spot jobs replayed over a history of prices: what they would have cost, moving or staying.

The idea is DeepSpotCloud's: a training that is interrupted goes on from its checkpoint in another
region, where the machine is cheaper (K. Lee and M. Son, "DeepSpotCloud: leveraging cross-region
GPU spot instances for deep learning", IEEE CLOUD 2017, pp. 98-105, DOI 10.1109/CLOUD.2017.21). The
rules here are ours, for its own are in no source that we could read. A machine is taken back when
its price rises above the bid; each second costs the price of that second, and nothing is rounded.
"""

from __future__ import annotations

import datetime as dt
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal

from epochcost.cost.estimate import Unpriced
from epochcost.cost.money import exact_arithmetic, quantized
from epochcost.errors import InputError
from epochcost.specs.prices.history import PriceHistory
from epochcost.units import SECONDS_PER_HOUR

_MICROSECOND = dt.timedelta(microseconds=1)


@dataclass(frozen=True, slots=True)
class MovingJob:
    """A job and its rule; times in seconds, ``bid`` per hour (None: never outbid).

    Every ``interval`` of work is saved for ``save``; a start after the first takes ``restart``, and
    ``move`` more in another region, which is charged ``move_charge`` once. When it is taken back,
    the job goes on where it is cheapest at or below the bid, or waits. ``switch_below``: at a save
    it also moves where an hour costs at most this share of here; None: it never does.
    Raises InputError where a figure is out of its range.
    """

    work: Decimal
    interval: Decimal
    save: Decimal = Decimal(0)
    restart: Decimal = Decimal(0)
    bid: Decimal | None = None
    move: Decimal = Decimal(0)
    move_charge: Decimal = Decimal(0)
    switch_below: Decimal | None = None

    def __post_init__(self) -> None:
        above = {"work": self.work, "interval": self.interval, "bid": self.bid}
        least = {
            "save": self.save,
            "restart": self.restart,
            "move": self.move,
            "move_charge": self.move_charge,
        }
        for name, value in above.items():
            if value is not None and not (value.is_finite() and value > 0):
                raise InputError(f"{name}: expected a finite number above 0, got {value}")
        for name, value in least.items():
            if not (value.is_finite() and value >= 0):
                raise InputError(f"{name}: expected a finite number of at least 0, got {value}")
        share = self.switch_below
        if share is not None and not 0 < share < 1:
            raise InputError(f"switch_below: expected more than 0 and less than 1, got {share}")


@dataclass(frozen=True, slots=True)
class Stay:
    """A machine's use in a region, from ``start`` to ``end`` seconds after the job was asked."""

    region: str
    start: Decimal
    end: Decimal
    amount: Decimal


@dataclass(frozen=True, slots=True)
class ReplayResult:
    """What a job would have cost; ``cost`` is the sum of the stays and of the charges of moves."""

    cost: Decimal
    elapsed_seconds: Decimal
    interruptions: int
    moves: int
    stays: tuple[Stay, ...]


@dataclass(frozen=True, slots=True)
class ReplayComparison:
    """A job that may move, beside the same job in each region alone, where it would have ended."""

    moving: ReplayResult
    staying: Mapping[str, ReplayResult | Unpriced]

    @property
    def saved(self) -> Decimal | None:
        """The share of the cheapest stay that moving saves; negative where it costs more."""
        costs = [one.cost for one in self.staying.values() if isinstance(one, ReplayResult)]
        if not costs:
            return None
        with exact_arithmetic():
            return 1 - self.moving.cost / min(costs)


def compare_with_staying(
    history: PriceHistory, job: MovingJob, start: dt.datetime
) -> ReplayComparison:
    """Replay a job over all regions, and in each alone; raises InputError as ``replay`` does."""
    staying: dict[str, ReplayResult | Unpriced] = {}
    for region in history.series:
        try:
            staying[region] = replay(history, job, start, (region,))
        except InputError as error:
            staying[region] = Unpriced(str(error))
    return ReplayComparison(replay(history, job, start), staying)


def replay(
    history: PriceHistory, job: MovingJob, start: dt.datetime, regions: Sequence[str] | None = None
) -> ReplayResult:
    """What a job that begins at ``start`` would have cost, in all regions or some.

    Raises InputError where a region or the start is not in the history, and where the history ends
    before the job.
    """
    chosen = tuple(sorted(history.series)) if regions is None else tuple(regions)
    for region in chosen:
        if region not in history.series:
            known = ", ".join(sorted(history.series))
            raise InputError(f"region: expected one of the history, {known}, got {region!r:.80}")
    if start.tzinfo is None or not history.start <= start < history.end:
        raise InputError(
            f"start: expected a time with a zone, from {history.start} to {history.end}, "
            f"got {start}"
        )
    with exact_arithmetic():
        return _Run(_Market(history, start, chosen), job).play()


class _Market:
    """Prices of some regions by seconds from the start."""

    def __init__(self, history: PriceHistory, start: dt.datetime, regions: Sequence[str]) -> None:
        self.regions = regions
        self.end = _seconds(history.end - start)
        self._times = {
            region: [_seconds(point.time - start) for point in history.series[region]]
            for region in regions
        }
        self._prices = {
            region: [point.price for point in history.series[region]] for region in regions
        }

    def price(self, region: str, now: Decimal) -> Decimal | None:
        """The price there now; None before the region's first row."""
        past = bisect_right(self._times[region], now)
        return self._prices[region][past - 1] if past else None

    def changes(self, region: str, now: Decimal) -> Iterator[tuple[Decimal, Decimal]]:
        """The times and prices after now."""
        times, prices = self._times[region], self._prices[region]
        for position in range(bisect_right(times, now), len(times)):
            yield times[position], prices[position]

    def amount(self, region: str, start: Decimal, end: Decimal) -> Decimal:
        """What a machine costs there between two times."""
        price, since, total = self.price(region, start), start, Decimal(0)
        assert price is not None, "a machine runs where there is a price"
        for time, later in self.changes(region, start):
            total += (min(time, end) - since) * price
            since, price = min(time, end), later
            if time >= end:
                break
        total += (end - since) * price
        return quantized(total / SECONDS_PER_HOUR)


class _Run:
    """The state of one job: its clock, the work saved, and where it was last."""

    def __init__(self, market: _Market, job: MovingJob) -> None:
        self._market, self._job = market, job
        self._now, self._saved = Decimal(0), Decimal(0)
        self._region: str | None = None
        self._interruptions = self._moves = 0
        self._stays: list[Stay] = []

    def play(self) -> ReplayResult:
        """Use one machine after the other until the work is done."""
        while self._saved < self._job.work:
            self._use(self._next_region())
        charges = self._moves * self._job.move_charge
        cost = sum((stay.amount for stay in self._stays), charges)
        return ReplayResult(cost, self._now, self._interruptions, self._moves, tuple(self._stays))

    def _next_region(self) -> str:
        """The cheapest that can be had now; else time passes until one can be."""
        while True:
            found = [
                (price, region != self._region, region)
                for region in self._market.regions
                if (price := self._market.price(region, self._now)) and self._affordable(price)
            ]
            if found:
                return min(found)[2]
            never = self._market.end + 1, Decimal(0)
            changes = (
                next(self._market.changes(one, self._now), never) for one in self._market.regions
            )
            self._now = self._within(min(changes)[0])

    def _use(self, region: str) -> None:
        """Run a machine until the work is done, it is taken back, or another is cheap enough."""
        start = self._now
        begun = self._begin(region)
        outbid = next(
            (
                time
                for time, price in self._market.changes(region, start)
                if not self._affordable(price)
            ),
            None,
        )
        ended, interrupted = self._work_until(region, start + begun, outbid)
        self._now = self._within(ended)
        self._interruptions += interrupted
        self._stays.append(Stay(region, start, ended, self._market.amount(region, start, ended)))

    def _begin(self, region: str) -> Decimal:
        """The time until work goes on there."""
        before, self._region = self._region, region
        if before is None:
            return Decimal(0)
        moved = before != region
        self._moves += moved
        return self._job.restart + (self._job.move if moved else 0)

    def _work_until(
        self, region: str, clock: Decimal, outbid: Decimal | None
    ) -> tuple[Decimal, bool]:
        """When the machine's use ends, and whether by an interruption."""
        job = self._job
        while outbid is None or clock <= outbid:
            left = job.work - self._saved
            length = left if left <= job.interval else job.interval + job.save
            if outbid is not None and clock + length > outbid:
                break
            clock = self._within(clock + length)
            self._saved += min(left, job.interval)
            if self._saved >= job.work or self._worth_moving(region, clock):
                return clock, False
        assert outbid is not None, "only a price above the bid breaks off"
        return outbid, True

    def _worth_moving(self, region: str, clock: Decimal) -> bool:
        share, here = self._job.switch_below, self._market.price(region, clock)
        if share is None or here is None:
            return False
        prices = (self._market.price(other, clock) for other in self._market.regions)
        return any(price is not None and price <= share * here for price in prices)

    def _affordable(self, price: Decimal) -> bool:
        return self._job.bid is None or price <= self._job.bid

    def _within(self, clock: Decimal) -> Decimal:
        if clock > self._market.end:
            hours = self._saved / SECONDS_PER_HOUR
            raise InputError(
                f"history: expected prices until the job ends, found none after "
                f"{self._market.end / SECONDS_PER_HOUR:.4g} h, with {hours:.4g} h of work saved"
            )
        return clock


def _seconds(span: dt.timedelta) -> Decimal:
    return Decimal(span // _MICROSECOND) / 10**6
