"""Replay spot jobs over a trace of prices: compare staying in a zone with moving between zones.

Moving is an idea of DeepSpotCloud (Lee and Son, IEEE CLOUD 2017, DOI 10.1109/CLOUD.2017.21); the
rules are our own. No policy uses future prices.
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

# The work between checkpoints if checkpoints take no time or there are no interruptions.
_USUAL_INTERVAL_SECONDS = 600.0
# Instead of a zone: finish the job on an on-demand machine.
ON_DEMAND = -1


@dataclass(frozen=True, slots=True)
class MovingJob:
    """A job to replay on spot machines; raises InputError if the deadline is shorter than the work.

    The job saves a checkpoint after each ``interval_seconds`` of work. A move to another zone adds
    ``move_seconds`` to the restart and costs ``move_charge``.
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
        """Seconds of work and checkpoints together, if there are no interruptions."""
        saves = math.ceil(self.work_seconds / self.interval_seconds) - 1
        return self.work_seconds + self.save_seconds * saves

    @property
    def on_demand_cost(self) -> float | None:
        """Cost of the work on an on-demand machine; None if the machine's price is unknown."""
        rate = self.on_demand_per_hour
        return None if rate is None else rate * self.work_seconds / SECONDS_PER_HOUR


@dataclass(frozen=True, slots=True, eq=False)
class Moment:
    """State of many replayed jobs when a policy decides in which zone each job continues.

    Each array has an item for each start time of ``job``; times are in seconds. ``column`` is the
    index of the price period in ``market``. ``zone`` is where the job ran last. ``begun`` is True
    after the first start, ``running`` if the job has a machine. ``remaining`` is the work left.
    """

    market: Market
    job: MovingJob
    now: Floats
    column: Indices
    zone: Indices
    begun: Flags
    running: Flags
    remaining: Floats
    elapsed: Floats

    @property
    def cheapest(self) -> Indices:
        """Cheapest zone for each job now; the zone where the job ran last if no zone is cheaper."""
        best, rate = self.market.cheapest[self.column], self.market.rate
        own_is_best = rate[self.zone, self.column] <= rate[best, self.column]
        return np.where(own_is_best, self.zone, best)

    def price(self, zone: Indices) -> Floats:
        """Current hourly price for each job in the zone that ``zone`` gives for the job."""
        price: Floats = self.market.rate[zone, self.column]
        return price

    def delay(self, zone: Indices) -> Floats:
        """Seconds until each job works in ``zone``; 0 at its first start or if it runs there."""
        moved = self.begun & (zone != self.zone)
        restarted = self.begun & (moved | ~self.running)
        seconds: Floats = restarted * self.job.restart_seconds + moved * self.job.move_seconds
        return seconds

    @property
    def stretch(self) -> Floats:
        """Seconds until each job has done and saved its next interval of work, or until its end."""
        interval = self.job.interval_seconds
        return np.where(self.remaining > interval, interval + self.job.save_seconds, self.remaining)


# Returns the zone in which each job continues, or ON_DEMAND.
Policy = Callable[[Moment], Indices]


def stay(moment: Moment) -> Indices:
    """Policy: stay in the zone of the first start, and wait for a machine in that zone."""
    return moment.zone


def move_when_interrupted(moment: Moment) -> Indices:
    """Policy: continue in the cheapest zone after an interruption."""
    return np.where(moment.running, moment.zone, moment.cheapest)


def move_when_it_pays(moment: Moment) -> Indices:
    """Policy: move if interrupted, or if the move costs less than it saves at current prices."""
    job, best = moment.job, moment.cheapest
    pause = job.restart_seconds + job.move_seconds
    # A zone without machines has an infinite price; the difference of two is invalid.
    with np.errstate(invalid="ignore"):
        gained = (moment.price(moment.zone) - moment.price(best)) * moment.remaining
        lost = job.move_charge * SECONDS_PER_HOUR + pause * moment.price(best)
    return np.where(moment.running & ~(gained > lost), moment.zone, best)


def fall_back_on_demand(moment: Moment) -> Indices:
    """Policy: move if interrupted, and finish on demand before the deadline is at risk.

    A job switches to an on-demand machine if a switch at the next decision could miss the deadline.
    With a spot machine, the next decision is at the next checkpoint or interruption. Without one,
    it is at the next change of price or availability in any zone.
    """
    job, zone = moment.job, move_when_interrupted(moment)
    assert job.deadline_seconds is not None, "a job that falls back has a deadline"
    there = np.isfinite(moment.price(zone))
    waits = moment.market.change[moment.column] - moment.now
    later = moment.elapsed + np.where(there, moment.delay(zone) + moment.stretch, waits)
    late = later > job.deadline_seconds - job.restart_seconds - moment.remaining
    return np.where(late, ON_DEMAND, zone)


# Names of policies for people: the baseline of the comparison, and the policies that move jobs.
STAYING = "staying"
POLICIES: Mapping[str, Policy] = MappingProxyType(
    {
        "moving when interrupted": move_when_interrupted,
        "moving when it pays, too": move_when_it_pays,
        "falling back to on demand": fall_back_on_demand,
    }
)


@dataclass(frozen=True, slots=True, eq=False)
class Outcome:
    """Arrays with cost, time and events of the replayed job, with an item for each start time.

    ``elapsed`` is in seconds. If ``finished`` is False, the trace ended before the job.
    """

    cost: Floats
    elapsed: Floats
    interruptions: Indices
    moves: Indices
    finished: Flags


def replay(
    market: Market, job: MovingJob, policy: Policy, starts: Floats, home: int | None = None
) -> Outcome:
    """Replay a job from each of the times ``starts``, in seconds from the trace's start.

    ``home`` is the index of the zone that the policy gets first; None means the cheapest zone then.
    """
    runs = _ReplayState(market, job, starts, home)
    while runs.unfinished.size:
        runs.advance(policy)
    return Outcome(runs.cost, runs.now - starts, runs.interruptions, runs.moves, runs.finished)


class _ReplayState:
    """State of a job's replays, one for each start time: arrays, and indices of ``unfinished``."""

    def __init__(self, market: Market, job: MovingJob, starts: Floats, home: int | None) -> None:
        self._market, self._job, self._starts = market, job, starts
        count = len(starts)
        self.unfinished: Indices = np.arange(count)
        self.now = starts.astype(np.float64)
        self.cost = np.zeros(count)
        self.interruptions, self.moves = np.zeros(count, np.intp), np.zeros(count, np.intp)
        self.finished = np.zeros(count, np.bool_)
        self._remaining = np.full(count, job.work_seconds)
        begin = market.cheapest[market.column(starts)]
        self._zone = begin if home is None else np.full(count, home)
        self._begun, self._running = np.zeros(count, np.bool_), np.zeros(count, np.bool_)

    def advance(self, policy: Policy) -> None:
        market, who = self._market, self.unfinished
        now = self.now[who]
        moment = Moment(
            market,
            self._job,
            now,
            market.column(now),
            self._zone[who],
            self._begun[who],
            self._running[who],
            self._remaining[who],
            now - self._starts[who],
        )
        zone = policy(moment)
        hired = zone == ON_DEMAND
        on_spot = ~hired & np.isfinite(moment.price(zone))
        waits = ~hired & ~on_spot
        self._finish_on_demand(who[hired])
        self.now[who[waits]] = market.change[moment.column[waits]]
        self._run_to_next_stop(moment, zone, on_spot)
        # On-demand machines have the same price after the trace's end.
        self.finished[who] &= hired | (self.now[who] <= market.end)
        self.unfinished = who[(self.now[who] <= market.end) & ~self.finished[who]]

    def _run_to_next_stop(self, moment: Moment, zone: Indices, on_spot: Flags) -> None:
        """Run each job in its zone until a checkpoint, the job's end or an interruption."""
        market, job, who = self._market, self._job, self.unfinished[on_spot]
        moved = (moment.begun & (zone != moment.zone))[on_spot]
        finish = (moment.now + moment.delay(zone) + moment.stretch)[on_spot]
        until = market.until[zone, moment.column][on_spot]
        zone, now, remaining = zone[on_spot], moment.now[on_spot], moment.remaining[on_spot]
        saved = finish <= until
        stop = np.where(saved, finish, until)
        self.cost[who] += market.amounts(zone, now, np.minimum(stop, market.end))
        self.cost[who] += moved * job.move_charge
        self.moves[who] += moved
        remaining = np.maximum(remaining - saved * job.interval_seconds, 0.0)
        self.interruptions[who] += (remaining > 0) & (stop == until)
        self.now[who], self._zone[who], self._remaining[who] = stop, zone, remaining
        self._begun[who], self._running[who] = True, stop < until
        self.finished[who] = remaining == 0

    def _finish_on_demand(self, who: Indices) -> None:
        job = self._job
        if who.size:
            assert job.on_demand_per_hour is not None, "a job that falls back has a price on demand"
            hired = self._remaining[who] + self._begun[who] * job.restart_seconds
            self.cost[who] += hired * job.on_demand_per_hour / SECONDS_PER_HOUR
            self.now[who] += hired
            self.finished[who] = True


def evenly_spaced_starts(market: Market, job: MovingJob, count: int) -> Floats:
    """Evenly spaced start times that leave room for the job; raises InputError without room."""
    last = market.end - job.undisturbed_seconds
    if last < 0:
        raise InputError(
            "trace: expected a trace longer than the work, "
            f"{job.work_seconds / SECONDS_PER_HOUR:.4g} h, "
            f"got {market.end / SECONDS_PER_HOUR:.4g} h"
        )
    return np.linspace(0.0, last, count)


def saving_interval(market: Market, save: float) -> float:
    """Optimal seconds of work between checkpoints, for the mean interruption rate of all zones.

    ``save`` is the time of a checkpoint in seconds. The result is 600 if ``save`` or the rate is 0.
    """
    rate = market.interruptions_per_hour()
    if not rate or not save:
        return _USUAL_INTERVAL_SECONDS
    between = Decimal(repr(SECONDS_PER_HOUR / rate))
    return float(daly_interval_seconds(Decimal(repr(save)), between))


def expected_cost(job: MovingJob, interruptions_per_hour: float, mean_price: float) -> float:
    """Expected cost of a job in one zone at a constant price, by the formula of `cost.spot`."""
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
    """Mean, 10th and 90th percentile, and maximum of a value over all start times."""

    mean: float
    p10: float
    p90: float
    worst: float

    @classmethod
    def of(cls, values: Floats) -> Spread:
        """The spread of one or more values, one for each start time."""
        p10, p90 = np.percentile(values, (10, 90))
        return cls(float(values.mean()), float(p10), float(p90), float(values.max()))


@dataclass(frozen=True, slots=True)
class PolicyResult:
    """Results of a policy over the start times from which the job ends under every policy.

    ``zone`` is where the policy stays; None if it moves jobs. ``saved`` is a share of the cost of
    staying in the best single zone. ``interruptions`` and ``moves`` are means per start time.
    """

    policy: str
    zone: str | None
    cost: Spread
    seconds: Spread
    saved: Spread
    interruptions: float
    moves: float


def compare_policies(market: Market, job: MovingJob, count: int) -> tuple[PolicyResult, ...]:
    """Replay a job under each policy from ``count`` evenly spaced start times.

    The first result is for staying in one zone: the zone in which the job ends from the most start
    times, and among several the cheapest on average. Raises InputError if the job ends under every
    policy from no start time, or if the trace is shorter than the job.
    """
    starts = evenly_spaced_starts(market, job, count)
    stays = [replay(market, job, stay, starts, zone) for zone in range(len(market.zones))]
    best = min(range(len(stays)), key=lambda zone: _ranking_key(stays[zone]))
    outcomes = {STAYING: stays[best]}
    for name, policy in POLICIES.items():
        # The policy that falls back on demand needs a deadline and an on-demand price.
        falls_back = policy is fall_back_on_demand
        if not (falls_back and None in (job.deadline_seconds, job.on_demand_cost)):
            outcomes[name] = replay(market, job, policy, starts)
    compared = np.all([outcome.finished for outcome in outcomes.values()], axis=0)
    if not compared.any():
        raise InputError(
            f"trace: expected starts from which the job ends under every policy, got 0 of {count:,}"
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


def _ranking_key(outcome: Outcome) -> tuple[float, float]:
    # Most finished jobs first, then the lowest mean cost.
    ended = outcome.cost[outcome.finished]
    return -float(outcome.finished.sum()), float(ended.mean()) if ended.size else 0.0
