"""Spot jobs replayed over a trace: what they would have cost, staying or moving between zones.

The idea is DeepSpotCloud's: a training that is interrupted goes on from its saved state in another
zone, where the machine is cheaper (K. Lee and M. Son, "DeepSpotCloud: leveraging cross-region GPU
spot instances for deep learning", IEEE CLOUD 2017, pp. 98-105, DOI 10.1109/CLOUD.2017.21). The
rules here are ours, for its own are in no source that we could read. Each second costs the price
of that second, nothing is rounded, and no policy knows what comes. Many starts are played at once,
a stretch of work and save at a time; those that the trace ends before they do have no cost.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields, replace
from decimal import Decimal
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from epochcost.cost.market import Flags, Indices, InterruptionRate, Market
from epochcost.cost.money import exact_arithmetic
from epochcost.cost.spot import SpotJob, expected_time
from epochcost.errors import InputError
from epochcost.specs.prices.traces import Floats
from epochcost.units import SECONDS_PER_HOUR

Policy = Literal["stay", "cheapest", "gap", "deadline"]
POLICIES: tuple[Policy, ...] = get_args(Policy)
_ABOVE_ZERO = {"work_seconds", "interval_seconds", "on_demand_per_hour"}


@dataclass(frozen=True, slots=True)
class MovingJob:
    """A job and what starts, saves and moves take.

    Every interval of work is saved; a start after the first takes a restart, and a move more in
    another zone, which is charged ``move_charge`` once. Where the notice before a machine is taken
    back is long enough to save in, work is saved then and only then. ``on_demand_per_hour`` is the
    price of a machine that nobody takes back, the deadline the longest time on the wall: the policy
    of that name needs both. Raises InputError where a number is out of its range.
    """

    work_seconds: float
    interval_seconds: float
    save_seconds: float = 0.0
    restart_seconds: float = 0.0
    move_seconds: float = 0.0
    move_charge: float = 0.0
    on_demand_per_hour: float | None = None
    deadline_seconds: float | None = None
    notice_seconds: float = 0.0

    @property
    def undisturbed_seconds(self) -> float:
        """The work with a save after every stretch, the last one too."""
        return self.work_seconds + self.regular_save_seconds * self.stretches

    @property
    def saves_on_notice(self) -> bool:
        """Whether the notice is long enough to save in."""
        return 0 < self.save_seconds <= self.notice_seconds

    @property
    def regular_save_seconds(self) -> float:
        """What the save at the end of every interval takes: nothing where a notice suffices."""
        return 0.0 if self.saves_on_notice else self.save_seconds

    def __post_init__(self) -> None:
        for one in fields(self):
            value, above = getattr(self, one.name), one.name in _ABOVE_ZERO
            if value is None or (0 < value < math.inf) or (value == 0 and not above):
                continue
            least = "above 0" if above else "of at least 0"
            raise InputError(f"{one.name}: expected a finite number {least}, got {value}")
        work, deadline = self.work_seconds, self.deadline_seconds
        if deadline is not None and deadline < work:
            raise InputError(
                f"deadline: expected at least the work, {work:g} s, got {deadline:g} s"
            )

    @property
    def stretches(self) -> int:
        """Between which the work is saved."""
        return math.ceil(self.work_seconds / self.interval_seconds)


@dataclass(frozen=True, slots=True, eq=False)
class Outcome:
    """What each start came to; where ``finished`` is False the trace ended first.

    ``elapsed`` is on the wall, ``running`` of spot machines; both in seconds. ``rescued`` starts
    ended on an on-demand machine.
    """

    cost: Floats
    elapsed: Floats
    running: Floats
    interruptions: NDArray[np.int64]
    moves: NDArray[np.int64]
    rescued: Flags
    finished: Flags


def replay(
    market: Market, job: MovingJob, policy: Policy, starts: Floats, home: Indices | None = None
) -> Outcome:
    """Play a job from each of some starts, in seconds from the trace's begin.

    ``stay`` waits in its zone, ``home`` or else the cheapest at the start, until that has a machine
    again. The others go on in the zone that is cheapest then. ``gap`` also moves at a save where
    the rest of the work, at the prices of that moment, is cheaper there by more than the move.
    ``deadline`` goes on on demand, for good, when a stretch that is lost would make it late.
    """
    if policy == "deadline" and (job.on_demand_per_hour is None or job.deadline_seconds is None):
        raise InputError("deadline: expected a deadline and a price on demand, found not both")
    runs = _Runs(market, job, policy, starts, home)
    while runs.active.size:
        runs.step()
    return runs.outcome()


def evenly_spaced_starts(market: Market, job: MovingJob, count: int) -> Floats:
    """So many starts from which undisturbed work ends within the trace; InputError if none does."""
    last = market.end - job.undisturbed_seconds
    if last < 0:
        raise InputError(
            "trace: expected one longer than the work, "
            f"{job.work_seconds / SECONDS_PER_HOUR:.4g} h, "
            f"got {market.end / SECONDS_PER_HOUR:.4g} h"
        )
    return np.linspace(0.0, last, count)


def expected_cost(job: MovingJob, rate: InterruptionRate, mean_price: float) -> float:
    """The closed form of `cost.spot` for staying: interruptions at random, one price."""
    if not rate.interruptions:
        undisturbed = job.work_seconds + job.regular_save_seconds * (job.stretches - 1)
        return undisturbed * mean_price / SECONDS_PER_HOUR
    per_second = rate.mean / SECONDS_PER_HOUR
    given = (
        job.work_seconds,
        per_second,
        0.0,
        job.restart_seconds,
        job.save_seconds,
        job.interval_seconds,
    )
    with exact_arithmetic():
        spot = SpotJob(*(Decimal(repr(float(one))) for one in given))
        if job.saves_on_notice:
            spot = replace(spot, interval=None)
        running = expected_time(spot).running
    return float(running) * mean_price / SECONDS_PER_HOUR


class _Runs:
    """The state of all starts; ``active`` are those that are not at their end."""

    def __init__(
        self,
        market: Market,
        job: MovingJob,
        policy: Policy,
        starts: Floats,
        home: Indices | None,
    ) -> None:
        self._market, self._job, self._policy = market, job, policy
        count = len(starts)
        self.active: Indices = np.arange(count)
        self._starts, self._now = starts, starts.astype(np.float64)
        self._left = np.full(count, job.work_seconds)
        self._zone = np.full(count, -1) if home is None else home.copy()
        # Whether a machine runs, and whether there was one before.
        self._held, self._begun = np.zeros(count, np.bool_), np.zeros(count, np.bool_)
        self._cost, self._running = np.zeros(count), np.zeros(count)
        self._interruptions, self._moves = np.zeros(count, np.int64), np.zeros(count, np.int64)
        self._rescued, self._finished = np.zeros(count, np.bool_), np.zeros(count, np.bool_)

    def outcome(self) -> Outcome:
        """What has come of all."""
        elapsed = self._now - self._starts
        return Outcome(
            self._cost,
            elapsed,
            self._running,
            self._interruptions,
            self._moves,
            self._rescued,
            self._finished,
        )

    def step(self) -> None:
        """Each start waits for a machine, works a stretch or loses it, or goes on on demand."""
        market, job, who = self._market, self._job, self.active
        column = market.column(self._now[who])
        zone = self._chosen(who, column)
        there = np.isfinite(market.rate[zone, column])
        begun = self._begun[who]
        restarted, moved = begun & ~self._held[who], begun & (zone != self._zone[who])
        left = self._left[who]
        length = np.where(
            left > job.interval_seconds, job.interval_seconds + job.regular_save_seconds, left
        )
        ready = self._now[who] + restarted * job.restart_seconds + moved * job.move_seconds
        bound = (self._zone[who] >= 0) & (self._policy == "stay")
        opens = np.where(bound, market.next_of_zone[zone, column], market.next_of_any[column])
        if self._policy == "deadline":
            late = self._go_on_demand(who, np.where(there, ready + length, opens), there)
            there, waits = there & ~late, ~there & ~late
        else:
            waits = ~there
        self._now[who[waits]] = opens[waits]
        self._work(who[there], zone[there], ready[there], length[there], moved[there])
        # On demand the price is known after the trace, too.
        self._finished[who] &= (self._now[who] <= market.end) | self._rescued[who]
        self.active = who[(self._now[who] <= market.end) & ~self._finished[who]]

    def _chosen(self, who: Indices, column: Indices) -> Indices:
        """The zone that each start is or would be in: of the cheapest its own, if it is one."""
        market, zone = self._market, self._zone[who]
        best = market.cheapest[column]
        stays = self._held[who] | (self._policy == "stay") | self._as_cheap(zone, best, column)
        return np.where(stays & (zone >= 0), zone, best)

    def _as_cheap(self, zone: Indices, best: Indices, column: Indices) -> Flags:
        rate = self._market.rate
        return np.asarray(rate[zone, column] <= rate[best, column])

    def _work(
        self, who: Indices, zone: Indices, ready: Floats, length: Floats, moved: Flags
    ) -> None:
        """Run machines to the end of a stretch, or until they are taken back."""
        market, job, now = self._market, self._job, self._now[who]
        until, finish = market.until[zone, market.column(now)], ready + length
        left = self._left[who]
        # What a notice leaves to work, but for the job's last stretch, which needs no save.
        noticed = until - job.save_seconds if job.saves_on_notice else until
        saved = finish <= np.where(left > job.interval_seconds, noticed, until)
        kept = np.maximum(noticed - ready, 0.0) if job.saves_on_notice else 0.0
        stop = np.where(saved, finish, until)
        self._cost[who] += market.amounts(zone, now, np.minimum(stop, market.end))
        self._cost[who] += moved * job.move_charge
        self._running[who] += stop - now
        self._moves[who] += moved
        left = np.maximum(left - np.where(saved, job.interval_seconds, kept), 0.0)
        done = left == 0
        self._interruptions[who] += ~done & (stop == until)
        self._now[who], self._zone[who], self._left[who] = stop, zone, left
        self._begun[who], self._finished[who] = True, done
        self._held[who] = stop < until
        if self._policy == "gap":
            self._held[who] &= ~self._worth_moving(zone, stop, left)

    def _worth_moving(self, zone: Indices, now: Floats, left: Floats) -> Flags:
        market, job = self._market, self._job
        column = market.column(now)
        here, there = market.rate[zone, column], market.rate[market.cheapest[column], column]
        with np.errstate(invalid="ignore"):
            gained = (here - there) * left
        lost = job.move_charge * SECONDS_PER_HOUR + (job.restart_seconds + job.move_seconds) * there
        worth: Flags = gained > lost
        return worth

    def _go_on_demand(self, who: Indices, ends: Floats, there: Flags) -> Flags:
        """End those on demand that could not be rescued after ``ends``; says which."""
        job = self._job
        assert job.on_demand_per_hour is not None, "asked for with the policy"
        assert job.deadline_seconds is not None, "asked for with the policy"
        left = self._left[who]
        # Of the last moment: what is lost by then is worked after it.
        latest = self._starts[who] + job.deadline_seconds - job.restart_seconds - left
        late: Flags = ends > latest
        chosen = who[late]
        begin = np.where(there, self._now[who], np.maximum(self._now[who], latest))[late]
        hired = left[late] + self._begun[chosen] * job.restart_seconds
        self._cost[chosen] += hired * job.on_demand_per_hour / SECONDS_PER_HOUR
        self._now[chosen] = begin + hired
        self._rescued[chosen] = self._finished[chosen] = True
        return late
