"""Spot jobs replayed over a trace: their cost under policies that stay or move between zones.

The idea is DeepSpotCloud's: a training that is interrupted goes on from its saved state in another
zone, where the machine is cheaper (K. Lee and M. Son, "DeepSpotCloud: leveraging cross-region GPU
spot instances for deep learning", IEEE CLOUD 2017, pp. 98-105, DOI 10.1109/CLOUD.2017.21). The
rules here are ours, for its own are in no source that we could read. Each second costs the price
of that second, nothing is rounded, and no policy knows the future. Many starts are played at once,
a stretch of work and save at a time; those that the trace ends before they do have no cost.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from types import MappingProxyType

import numpy as np

from epochcost.cost.market import Flags, Indices, Market
from epochcost.cost.money import exact_arithmetic
from epochcost.cost.spot import SpotJob, daly_interval_seconds, expected_time
from epochcost.errors import InputError
from epochcost.specs.prices.traces import Floats
from epochcost.units import SECONDS_PER_HOUR

# The work between saves that take no time, and in a market that never interrupted.
_USUAL_INTERVAL_SECONDS = 600.0
# The choice of a policy that leaves spot machines, for good.
ON_DEMAND = -1


@dataclass(frozen=True, slots=True)
class MovingJob:
    """A job and the time of starts, saves and moves.

    Every interval of work is saved; a start after the first takes a restart, and a move more in
    another zone, which is charged ``move_charge`` once. ``on_demand_per_hour`` is the price of a
    machine that nobody takes back, the deadline the longest time on the wall. Raises InputError on
    a deadline before the work's end.
    """

    work_seconds: float
    interval_seconds: float
    save_seconds: float = 0.0
    restart_seconds: float = 0.0
    move_seconds: float = 0.0
    move_charge: float = 0.0
    on_demand_per_hour: float | None = None
    deadline_seconds: float | None = None

    def __post_init__(self) -> None:
        work, deadline = self.work_seconds, self.deadline_seconds
        if deadline is not None and deadline < work:
            raise InputError(
                f"deadline: expected at least the work, {work:g} s, got {deadline:g} s"
            )

    @property
    def undisturbed_seconds(self) -> float:
        """The work with a save between stretches."""
        saves = math.ceil(self.work_seconds / self.interval_seconds) - 1
        return self.work_seconds + self.save_seconds * saves

    @property
    def on_demand_cost(self) -> float | None:
        """The cost of the work on demand; None if its price is unknown."""
        rate = self.on_demand_per_hour
        return None if rate is None else rate * self.work_seconds / SECONDS_PER_HOUR


@dataclass(frozen=True, slots=True, eq=False)
class Moment:
    """Jobs at a start, a save, a loss or a change of the market: what a policy decides by.

    Of each job: the market's column now, the zone that it was in last, whether it has begun,
    whether its machine still runs, the work left, and the time on the wall; all in seconds.
    """

    market: Market
    job: MovingJob
    now: Floats
    column: Indices
    zone: Indices
    begun: Flags
    held: Flags
    left: Floats
    elapsed: Floats

    @property
    def cheapest(self) -> Indices:
        """The cheapest zone now: the job's own if none is cheaper."""
        best, rate = self.market.cheapest[self.column], self.market.rate
        own_is_best = rate[self.zone, self.column] <= rate[best, self.column]
        return np.where(own_is_best, self.zone, best)

    def price(self, zone: Indices) -> Floats:
        """The price of an hour in zones now."""
        price: Floats = self.market.rate[zone, self.column]
        return price

    def delay(self, zone: Indices) -> Floats:
        """The time until work goes on in zones: nothing for a machine that runs."""
        moved = self.begun & (zone != self.zone)
        restarted = self.begun & (moved | ~self.held)
        seconds: Floats = restarted * self.job.restart_seconds + moved * self.job.move_seconds
        return seconds

    @property
    def stretch(self) -> Floats:
        """The time of the next stretch, with its save if it is not the last."""
        interval = self.job.interval_seconds
        return np.where(self.left > interval, interval + self.job.save_seconds, self.left)


# The zone in which each job goes on, or ON_DEMAND.
Policy = Callable[[Moment], Indices]


def stay(moment: Moment) -> Indices:
    """Stay in the zone, and wait for it."""
    return moment.zone


def move_when_interrupted(moment: Moment) -> Indices:
    """Go on in the cheapest zone after an interruption."""
    return np.where(moment.held, moment.zone, moment.cheapest)


def move_when_it_pays(moment: Moment) -> Indices:
    """Move also at a save if the rest of the work at the prices of now is cheaper by the move."""
    job, best = moment.job, moment.cheapest
    pause = job.restart_seconds + job.move_seconds
    # Prices are infinite without a machine.
    with np.errstate(invalid="ignore"):
        gained = (moment.price(moment.zone) - moment.price(best)) * moment.left
        lost = job.move_charge * SECONDS_PER_HOUR + pause * moment.price(best)
    return np.where(moment.held & ~(gained > lost), moment.zone, best)


def fall_back_on_demand(moment: Moment) -> Indices:
    """Move when interrupted; go on demand if the loss of the next stretch would make it late."""
    job, zone = moment.job, move_when_interrupted(moment)
    assert job.deadline_seconds is not None, "a job that falls back has a deadline"
    there = np.isfinite(moment.price(zone))
    waits = moment.market.change[moment.column] - moment.now
    later = moment.elapsed + np.where(there, moment.delay(zone) + moment.stretch, waits)
    late = later > job.deadline_seconds - job.restart_seconds - moment.left
    return np.where(late, ON_DEMAND, zone)


# By the words for people; the first is the one that others are compared with.
STAYING = "staying"
POLICIES: Mapping[str, Policy] = MappingProxyType(
    {
        STAYING: stay,
        "moving when interrupted": move_when_interrupted,
        "moving when it pays, too": move_when_it_pays,
        "falling back to on demand": fall_back_on_demand,
    }
)


@dataclass(frozen=True, slots=True, eq=False)
class Outcome:
    """The end of each start; if ``finished`` is False the trace ended first.

    ``elapsed`` is on the wall, in seconds.
    """

    cost: Floats
    elapsed: Floats
    interruptions: Indices
    moves: Indices
    finished: Flags


def replay(
    market: Market, job: MovingJob, policy: Policy, starts: Floats, home: int | None = None
) -> Outcome:
    """Play a job from each of some starts, in seconds from the trace's begin.

    A job begins in the zone ``home``, or else in the cheapest one at its start.
    """
    runs = _Runs(market, job, starts, home)
    while runs.active.size:
        runs.step(policy)
    return Outcome(runs.cost, runs.now - starts, runs.interruptions, runs.moves, runs.finished)


class _Runs:
    """The state of all starts; ``active`` are those that are not at their end."""

    def __init__(self, market: Market, job: MovingJob, starts: Floats, home: int | None) -> None:
        self._market, self._job, self._starts = market, job, starts
        count = len(starts)
        self.active: Indices = np.arange(count)
        self.now = starts.astype(np.float64)
        self.cost = np.zeros(count)
        self.interruptions, self.moves = np.zeros(count, np.intp), np.zeros(count, np.intp)
        self.finished = np.zeros(count, np.bool_)
        self._left = np.full(count, job.work_seconds)
        begin = market.cheapest[market.column(starts)]
        self._zone = begin if home is None else np.full(count, home)
        self._begun, self._held = np.zeros(count, np.bool_), np.zeros(count, np.bool_)

    def step(self, policy: Policy) -> None:
        """Each start waits for a machine, works a stretch or loses it, or goes on demand."""
        market, who = self._market, self.active
        now = self.now[who]
        moment = Moment(
            market,
            self._job,
            now,
            market.column(now),
            self._zone[who],
            self._begun[who],
            self._held[who],
            self._left[who],
            now - self._starts[who],
        )
        zone = policy(moment)
        hired = zone == ON_DEMAND
        there = ~hired & np.isfinite(moment.price(zone))
        waits = ~hired & ~there
        self._finish_on_demand(who[hired])
        self.now[who[waits]] = market.change[moment.column[waits]]
        self._work(moment, zone, there)
        # The price on demand is known after the trace, too.
        self.finished[who] &= hired | (self.now[who] <= market.end)
        self.active = who[(self.now[who] <= market.end) & ~self.finished[who]]

    def _work(self, moment: Moment, zone: Indices, there: Flags) -> None:
        """Run machines to the end of a stretch, or until they are taken back."""
        market, job, who = self._market, self._job, self.active[there]
        moved = (moment.begun & (zone != moment.zone))[there]
        finish = (moment.now + moment.delay(zone) + moment.stretch)[there]
        until = market.until[zone, moment.column][there]
        zone, now, remaining = zone[there], moment.now[there], moment.left[there]
        saved = finish <= until
        stop = np.where(saved, finish, until)
        self.cost[who] += market.amounts(zone, now, np.minimum(stop, market.end))
        self.cost[who] += moved * job.move_charge
        self.moves[who] += moved
        remaining = np.maximum(remaining - saved * job.interval_seconds, 0.0)
        self.interruptions[who] += (remaining > 0) & (stop == until)
        self.now[who], self._zone[who], self._left[who] = stop, zone, remaining
        self._begun[who], self._held[who] = True, stop < until
        self.finished[who] = remaining == 0

    def _finish_on_demand(self, who: Indices) -> None:
        job = self._job
        if who.size:
            assert job.on_demand_per_hour is not None, "a job that falls back has a price for it"
            hired = self._left[who] + self._begun[who] * job.restart_seconds
            self.cost[who] += hired * job.on_demand_per_hour / SECONDS_PER_HOUR
            self.now[who] += hired
            self.finished[who] = True


def evenly_spaced_starts(market: Market, job: MovingJob, count: int) -> Floats:
    """Evenly spaced starts whose undisturbed work ends in the trace; InputError if none does."""
    last = market.end - job.undisturbed_seconds
    if last < 0:
        raise InputError(
            "trace: expected one longer than the work, "
            f"{job.work_seconds / SECONDS_PER_HOUR:.4g} h, "
            f"got {market.end / SECONDS_PER_HOUR:.4g} h"
        )
    return np.linspace(0.0, last, count)


def saving_interval(market: Market, save: float) -> float:
    """The work between saves that is best at the rate of interruptions of all zones, in seconds."""
    rate = market.interruptions_per_hour()
    if not rate or not save:
        return _USUAL_INTERVAL_SECONDS
    between = Decimal(repr(SECONDS_PER_HOUR / rate))
    return float(daly_interval_seconds(Decimal(repr(save)), between))


def expected_cost(job: MovingJob, interruptions_per_hour: float, mean_price: float) -> float:
    """The closed form of `cost.spot` for staying: interruptions at random, one price."""
    if not interruptions_per_hour:
        return job.undisturbed_seconds * mean_price / SECONDS_PER_HOUR
    work, rate, restart, save, interval = (
        Decimal(repr(float(number)))
        for number in (
            job.work_seconds,
            interruptions_per_hour / SECONDS_PER_HOUR,
            job.restart_seconds,
            job.save_seconds,
            job.interval_seconds,
        )
    )
    with exact_arithmetic():
        spot = SpotJob(work, rate, Decimal(0), restart, save, interval)
        running = expected_time(spot).running
    return float(running) * mean_price / SECONDS_PER_HOUR


@dataclass(frozen=True, slots=True)
class Spread:
    """The mean over the starts, the values that 10 % stay below or above, and the largest."""

    mean: float
    p10: float
    p90: float
    worst: float

    @classmethod
    def of(cls, values: Floats) -> Spread:
        """The spread of some values, at least one."""
        p10, p90 = np.percentile(values, (10, 90))
        return cls(float(values.mean()), float(p10), float(p90), float(values.max()))


@dataclass(frozen=True, slots=True)
class PolicyResult:
    """A policy over the compared starts; ``zone`` is the one that it stays in.

    ``saved`` is the share of the best single zone's cost that it saves, start by start; numbers of
    interruptions and moves are means of one job.
    """

    policy: str
    zone: str | None
    cost: Spread
    seconds: Spread
    saved: Spread
    interruptions: float
    moves: float


def compare_policies(market: Market, job: MovingJob, count: int) -> tuple[PolicyResult, ...]:
    """Play a job under all policies from so many evenly spaced starts; staying first.

    It stays in the zone that turns out best. All policies are compared over the same starts, those
    that each of them ends within the trace; falling back needs a deadline and a price on demand.
    Raises InputError if no start ends under all policies.
    """
    starts = evenly_spaced_starts(market, job, count)
    stays = [replay(market, job, stay, starts, zone) for zone in range(len(market.zones))]
    best = min(range(len(stays)), key=lambda zone: _order(stays[zone]))
    outcomes = {STAYING: stays[best]}
    for name, policy in POLICIES.items():
        falls_back = policy is fall_back_on_demand
        if name != STAYING and not (
            falls_back and None in (job.deadline_seconds, job.on_demand_cost)
        ):
            outcomes[name] = replay(market, job, policy, starts)
    compared = np.all([outcome.finished for outcome in outcomes.values()], axis=0)
    if not compared.any():
        raise InputError(
            "trace: expected one in which the job ends under every policy, found it in 0 of "
            f"{count:,} starts"
        )
    cost = stays[best].cost[compared]
    return tuple(
        PolicyResult(
            name,
            market.zones[best] if name == STAYING else None,
            Spread.of(outcome.cost[compared]),
            Spread.of(outcome.elapsed[compared]),
            Spread.of(1 - outcome.cost[compared] / cost),
            float(outcome.interruptions[compared].mean()),
            float(outcome.moves[compared].mean()),
        )
        for name, outcome in outcomes.items()
    )


def _order(outcome: Outcome) -> tuple[float, float]:
    """A zone in which more starts end is better, then one that costs less."""
    ended = outcome.cost[outcome.finished]
    return -float(outcome.finished.sum()), float(ended.mean()) if ended.size else 0.0
