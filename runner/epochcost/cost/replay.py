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


class Replays:
    """State of a job's replays, as arrays with an item for each of its start times ``starts``.

    Times are in seconds. A policy reads the state when it decides in which zone each job continues.
    ``column`` is the index of the price period in ``market``. ``zone`` is where the job ran last.
    ``begun`` is True after the first start, ``running`` if the job has a machine. ``remaining`` is
    the work left. ``cost``, ``interruptions`` and ``moves`` are totals so far. A job whose trace
    ended before it did is never ``finished``.
    """

    def __init__(self, market: Market, job: MovingJob, starts: Floats, home: int | None) -> None:
        self.market, self.job, self.starts = market, job, starts
        count = len(starts)
        self.now = starts.astype(np.float64)
        self.column = market.column(starts)
        self.cost = np.zeros(count)
        self.interruptions, self.moves = np.zeros(count, np.intp), np.zeros(count, np.intp)
        self.finished = np.zeros(count, np.bool_)
        self.remaining = np.full(count, job.work_seconds)
        self.zone = market.cheapest[self.column] if home is None else np.full(count, home)
        self.begun, self.running = np.zeros(count, np.bool_), np.zeros(count, np.bool_)

    @property
    def active(self) -> Flags:
        """Whether each job still runs or waits within the trace."""
        active: Flags = ~self.finished & (self.now <= self.market.end)
        return active

    @property
    def elapsed(self) -> Floats:
        """Seconds since each job's start time."""
        return self.now - self.starts

    @property
    def cheapest(self) -> Indices:
        """Cheapest zone for each job now; the zone where the job ran last if no zone is cheaper."""
        best = self.market.cheapest[self.column]
        return np.where(self.price(self.zone) <= self.price(best), self.zone, best)

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

    def advance(self, policy: Policy) -> None:
        """Continue each active job in the zone that ``policy`` chooses, until its next decision."""
        self.column = self.market.column(self.now)
        zone, active = policy(self), self.active
        hired = active & (zone == ON_DEMAND)
        on_spot = active & ~hired & np.isfinite(self.price(zone))
        waits = active & ~hired & ~on_spot
        self._finish_on_demand(hired)
        self.now[waits] = self.market.change[self.column[waits]]
        self._run_to_next_stop(zone, on_spot)

    def _run_to_next_stop(self, zone: Indices, on_spot: Flags) -> None:
        """Run each job in its zone until a checkpoint, the job's end or an interruption."""
        market, job = self.market, self.job
        moved = (self.begun & (zone != self.zone))[on_spot]
        finish = (self.now + self.delay(zone) + self.stretch)[on_spot]
        until = market.until[zone, self.column][on_spot]
        zone, now, remaining = zone[on_spot], self.now[on_spot], self.remaining[on_spot]
        saved = finish <= until
        stop = np.where(saved, finish, until)
        self.cost[on_spot] += market.amounts(zone, now, np.minimum(stop, market.end))
        self.cost[on_spot] += moved * job.move_charge
        self.moves[on_spot] += moved
        remaining = np.maximum(remaining - saved * job.interval_seconds, 0.0)
        self.interruptions[on_spot] += (remaining > 0) & (stop == until)
        self.now[on_spot], self.zone[on_spot], self.remaining[on_spot] = stop, zone, remaining
        self.begun[on_spot], self.running[on_spot] = True, stop < until
        self.finished[on_spot] = (remaining == 0) & (stop <= market.end)

    def _finish_on_demand(self, hired: Flags) -> None:
        # On-demand machines have the same price after the trace's end.
        if hired.any():
            job = self.job
            assert job.on_demand_per_hour is not None, "a job that falls back has a price on demand"
            seconds = self.remaining[hired] + self.begun[hired] * job.restart_seconds
            self.cost[hired] += seconds * job.on_demand_per_hour / SECONDS_PER_HOUR
            self.now[hired] += seconds
            self.finished[hired] = True


# Returns the zone in which each job continues, or ON_DEMAND.
Policy = Callable[[Replays], Indices]


def stay(replays: Replays) -> Indices:
    """Policy: stay in the zone of the first start, and wait for a machine in that zone."""
    return replays.zone


def move_when_interrupted(replays: Replays) -> Indices:
    """Policy: continue in the cheapest zone after an interruption."""
    return np.where(replays.running, replays.zone, replays.cheapest)


def move_when_it_pays(replays: Replays) -> Indices:
    """Policy: move if interrupted, or if the move costs less than it saves at current prices."""
    job, best = replays.job, replays.cheapest
    pause = job.restart_seconds + job.move_seconds
    gained = (replays.price(replays.zone) - replays.price(best)) * replays.remaining
    lost = job.move_charge * SECONDS_PER_HOUR + pause * replays.price(best)
    return np.where(replays.running & ~(gained > lost), replays.zone, best)


def fall_back_on_demand(replays: Replays) -> Indices:
    """Policy: move if interrupted, and finish on demand before the deadline is at risk.

    A job switches to an on-demand machine if a switch at the next decision could miss the deadline.
    With a spot machine, the next decision is at the next checkpoint or interruption. Without one,
    it is at the next change of price or availability in any zone.
    """
    job, zone = replays.job, move_when_interrupted(replays)
    assert job.deadline_seconds is not None, "a job that falls back has a deadline"
    there = np.isfinite(replays.price(zone))
    waits = replays.market.change[replays.column] - replays.now
    later = replays.elapsed + np.where(there, replays.delay(zone) + replays.stretch, waits)
    late = later > job.deadline_seconds - job.restart_seconds - replays.remaining
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


def replay(
    market: Market, job: MovingJob, policy: Policy, starts: Floats, home: int | None = None
) -> Replays:
    """Replay a job from each of the times ``starts``, in seconds from the trace's start.

    ``home`` is the index of the zone that the policy gets first; None means the cheapest zone then.
    """
    replays = Replays(market, job, starts, home)
    # Where no machine is left, prices and times are infinite, and their differences invalid.
    with np.errstate(invalid="ignore"):
        while replays.active.any():
            replays.advance(policy)
    return replays


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


def _ranking_key(outcome: Replays) -> tuple[float, float]:
    # Most finished jobs first, then the lowest mean cost.
    ended = outcome.cost[outcome.finished]
    return -float(outcome.finished.sum()), float(ended.mean()) if ended.size else 0.0
