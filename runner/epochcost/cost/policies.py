"""Policies for spot jobs compared: one job from many starts of a trace, and what each costs.

All policies are compared over the same starts, those that each of them ends within the trace.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal

import numpy as np

from epochcost.cost.estimate import Time
from epochcost.cost.market import Flags, Indices, Market
from epochcost.cost.money import exact_arithmetic
from epochcost.cost.replay import (
    MovingJob,
    Outcome,
    Policy,
    evenly_spaced_starts,
    expected_cost,
    replay,
)
from epochcost.cost.spot import daly_interval_seconds
from epochcost.errors import InputError
from epochcost.specs.prices.traces import Floats
from epochcost.units import SECONDS_PER_HOUR

# Between saves that take no time, and where nothing was ever interrupted.
_USUAL_INTERVAL_SECONDS = 600.0


@dataclass(frozen=True, slots=True)
class Spread:
    """Over the starts: the mean, the value that one in ten stays below or above, the largest."""

    mean: float
    p10: float
    p90: float
    worst: float

    @classmethod
    def of(cls, values: Floats) -> Spread:
        """That of some values, at least one."""
        p10, p90 = np.percentile(values, (10, 90))
        return cls(float(values.mean()), float(p10), float(p90), float(values.max()))


@dataclass(frozen=True, slots=True)
class PolicyResult:
    """A policy over the compared starts; ``zone`` is the one that it stays in.

    ``low`` and ``high`` are the mean costs at the ends of the work's time. ``saved`` is the share
    of the best single zone's cost that it saves, start by start. Means are of one job.
    """

    policy: Policy
    zone: str | None
    cost: Spread
    low: float
    high: float
    seconds: Spread
    saved: Spread
    interruptions: float
    moves: float
    rescued: float


@dataclass(frozen=True, slots=True)
class Comparison:
    """Policies side by side, the best single zone first.

    ``closed_form`` is the expected cost of staying there, by `cost.spot`; ``on_demand`` that of a
    machine that is never taken back. ``unnoticed`` is what staying costs without the job's notice;
    None where that saves nothing. Of ``starts`` so many were ``compared``.
    """

    results: tuple[PolicyResult, ...]
    starts: int
    compared: int
    closed_form: float
    on_demand: float | None
    unnoticed: float | None = None


def saving_interval(market: Market, save: float) -> float:
    """The work between saves that is best at the rate of interruptions of all zones, in seconds."""
    rates = [market.interruption_rate(zone) for zone in range(len(market.zones))]
    interruptions = sum(one.interruptions for one in rates)
    if not interruptions or not save:
        return _USUAL_INTERVAL_SECONDS
    between = sum(one.hours for one in rates) * SECONDS_PER_HOUR / interruptions
    with exact_arithmetic():
        return float(daly_interval_seconds(Decimal(repr(save)), Decimal(repr(between))))


def compare_policies(
    market: Market, job: MovingJob, time: Time, policies: Sequence[Policy], count: int
) -> Comparison:
    """Play a job of some time under policies, from so many evenly spaced starts.

    ``stay`` is in the zone that turns out best. Raises InputError as `replay` does, and where no
    start has an end under all policies.
    """
    starts = evenly_spaced_starts(market, replace(job, work_seconds=float(time.high)), count)
    homes = [np.full(count, zone) for zone in range(len(market.zones))]
    stays = [replay(market, job, "stay", starts, home) for home in homes]
    best = min(range(len(homes)), key=lambda zone: _order(stays[zone]))
    jobs = [replace(job, work_seconds=float(work)) for work in (time.low, time.mean, time.high)]
    played = {
        policy: [
            replay(market, one, policy, starts, homes[best] if policy == "stay" else None)
            for one in jobs
        ]
        for policy in dict.fromkeys(("stay", *policies))
    }
    compared = _ended(one for outcomes in played.values() for one in outcomes)
    if not compared.any():
        raise InputError(
            f"trace: expected one in which the job ends under every policy, found it in 0 of "
            f"{count:,} starts"
        )
    closed = expected_cost(job, market.interruption_rate(best), market.mean_price(best))
    return Comparison(
        tuple(
            _result(policy, market.zones[best], outcomes, played["stay"][1], compared)
            for policy, outcomes in played.items()
        ),
        count,
        int(compared.sum()),
        closed,
        None
        if job.on_demand_per_hour is None
        else job.on_demand_per_hour * job.work_seconds / SECONDS_PER_HOUR,
        _mean_unnoticed(market, job, starts, homes[best]) if job.saves_on_notice else None,
    )


def _mean_unnoticed(market: Market, job: MovingJob, starts: Floats, home: Indices) -> float:
    """The mean cost of staying where no notice comes, over the starts that end."""
    played = replay(market, replace(job, notice_seconds=0.0), "stay", starts, home)
    return float(played.cost[played.finished].mean())


def _order(outcome: Outcome) -> tuple[float, float]:
    """A zone in which more starts end is better, then one that costs less."""
    ended = outcome.cost[outcome.finished]
    return -float(outcome.finished.sum()), float(ended.mean()) if ended.size else 0.0


def _ended(outcomes: Iterable[Outcome]) -> Flags:
    ended: Flags = np.all([one.finished for one in outcomes], axis=0)
    return ended


def _result(
    policy: Policy, zone: str, outcomes: Sequence[Outcome], stay: Outcome, compared: Flags
) -> PolicyResult:
    low, usual, high = outcomes
    return PolicyResult(
        policy,
        zone if policy == "stay" else None,
        Spread.of(usual.cost[compared]),
        float(low.cost[compared].mean()),
        float(high.cost[compared].mean()),
        Spread.of(usual.elapsed[compared]),
        Spread.of(1 - usual.cost[compared] / stay.cost[compared]),
        float(usual.interruptions[compared].mean()),
        float(usual.moves[compared].mean()),
        float(usual.rescued[compared].mean()),
    )
