"""Replayed spot jobs: three zones computed by hand, and properties of every trace."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal

import numpy as np
import pytest

from epochcost.cost.market import Market
from epochcost.cost.money import exact_arithmetic
from epochcost.cost.replay import (
    MovingJob,
    Policy,
    Replays,
    compare_policies,
    evenly_spaced_starts,
    expected_cost,
    fall_back_on_demand,
    move_when_interrupted,
    move_when_it_pays,
    replay,
    stay,
)
from epochcost.cost.spot import SpotJob, expected_time, simulate
from epochcost.errors import InputError
from epochcost.specs.prices.traces import Trace, ZoneTrace

HOUR = 3600.0
Prices = Sequence[float | None]
# By the hour. A is taken back at 2 h and half as dear from 3 h on; c is cheapest from 4 h on.
ZONES: dict[str, Prices] = {
    "a": (1, 1, None, *[0.5] * 9),
    "b": (2,) * 12,
    "c": (3, 3, 3, 3, *[0.2] * 8),
}
JOB = MovingJob(
    work_seconds=4 * HOUR,
    interval_seconds=HOUR,
    save_seconds=0.1 * HOUR,
    restart_seconds=0.2 * HOUR,
    move_seconds=0.1 * HOUR,
    move_charge=0.25,
    on_demand_per_hour=4.0,
    deadline_seconds=7 * HOUR,
)


def market(zones: dict[str, Prices]) -> Market:
    """Zones with a price for each hour, or None for no machine."""
    rows = {
        zone: ZoneTrace(
            np.arange(len(prices)) * HOUR,
            np.array([math.nan if price is None else price for price in prices]),
        )
        for zone, prices in zones.items()
    }
    return Market(Trace(rows, "USD", 0.0, len(zones["a"]) * HOUR))


def play(policy: Policy, job: MovingJob = JOB, hour: float = 0, **zones: Prices) -> Replays:
    """Replay a job from a single start."""
    return replay(market(zones or ZONES), job, policy, np.array([hour * HOUR]))


def check(got: Replays, cost: float, hours: float, interruptions: int, moves: int) -> None:
    """Require the figures of a single start."""
    assert got.finished.all()
    assert got.cost[0] == pytest.approx(cost, abs=1e-9)
    assert got.elapsed[0] / HOUR == pytest.approx(hours)
    assert (got.interruptions[0], got.moves[0]) == (interruptions, moves)


def test_staying_by_hand() -> None:
    """The job has 2 h in a at $1 with one saved stretch, waits an hour, and has 3.4 h at $0.50."""
    check(play(stay), 2 + 3.4 * 0.5, 6.4, 1, 0)


def test_staying_in_a_given_zone_by_hand() -> None:
    """Zone b is never interrupted. The price of c falls for the last 0.3 h."""
    costs = [replay(market(ZONES), JOB, stay, np.zeros(1), home).cost[0] for home in (1, 2)]
    assert costs == pytest.approx([4.3 * 2, 4 * 3 + 0.3 * 0.2])


def test_moving_at_an_interruption_by_hand() -> None:
    """After 2 h in a, the move to b takes 0.3 h and 25 cents, and the rest 3.2 h at $2."""
    check(play(move_when_interrupted), 2 + 3.5 * 2 + 0.25, 5.5, 1, 1)


def test_a_zone_that_is_as_cheap_is_no_reason_to_move() -> None:
    """Zone b is lost after 1 h; when a and b return at the same price, the job stays in b."""
    zones: dict[str, Prices] = {"a": (None, None, *[1] * 6), "b": (1, None, *[1] * 6)}
    check(play(move_when_interrupted, **zones), 1 + 4.5, 6.5, 1, 0)


def test_moving_for_the_price_by_hand() -> None:
    """After a stretch in b, moving to a saves $3. Moving on to c would save less than it costs.

    The job has 2 h in a at $1, 1.4 h in b at $2, 2.4 h in a at 50 cents, and two moves.
    """
    check(play(move_when_it_pays), 2 + 1.4 * 2 + 2.4 * 0.5 + 2 * 0.25, 5.8, 1, 2)


def test_a_deadline_by_hand() -> None:
    """For a deadline of 6.5 h the job goes on demand at 2 h: a lost stretch would end too late."""
    check(play(fall_back_on_demand), 9.25, 5.5, 1, 1)
    got = play(fall_back_on_demand, replace(JOB, deadline_seconds=6.5 * HOUR))
    check(got, 2 + 3.2 * 4, 5.2, 1, 0)
    with pytest.raises(InputError, match=r"^deadline: expected at least the work, 14400 s, got"):
        replace(JOB, deadline_seconds=3.9 * HOUR)


def test_a_wait_that_would_be_too_long_by_hand() -> None:
    """With zone a alone the job goes on demand at 2 h: waiting until 3 h would be too late."""
    got = play(fall_back_on_demand, replace(JOB, deadline_seconds=5.5 * HOUR), a=ZONES["a"])
    check(got, 2 + 3.2 * 4, 5.2, 1, 0)


def test_a_trace_that_ends_too_early() -> None:
    """A job that outlasts the trace has no cost, unless it ends on demand."""
    assert not play(stay, hour=8).finished.any()
    assert not play(stay, a=(None, 1, None, None), b=(None,) * 4).finished.any()
    rescued = play(
        fall_back_on_demand, replace(JOB, deadline_seconds=5 * HOUR), a=(1, None), b=(None, None)
    )
    check(rescued, 4 * 4, 4, 0, 0)


def test_starts_are_within_the_trace() -> None:
    """From the last start, undisturbed work ends with the trace. A shorter trace is refused."""
    got = evenly_spaced_starts(market(ZONES), JOB, 3)
    assert (got / HOUR).tolist() == pytest.approx([0, 3.85, 7.7])
    odd = evenly_spaced_starts(market(ZONES), replace(JOB, work_seconds=3.5 * HOUR), 2)
    assert (odd / HOUR).tolist() == pytest.approx([0, 12 - 3.8])
    with pytest.raises(
        InputError, match=r"trace: expected a trace longer than the work, 4 h, got 2 h"
    ):
        evenly_spaced_starts(market({"a": (1, 1)}), JOB, 3)


@pytest.mark.parametrize("per_hour", [0.05, 0.3])
def test_replays_agree_with_the_simulation(per_hour: float) -> None:
    """Replays of random interruptions agree with the simulation and the closed form.

    Starts are farther apart than any job is long, so they are independent.
    """
    rng, count = np.random.default_rng(7), 400
    taken = np.cumsum(rng.exponential(HOUR / per_hour, int(count * 60 * per_hour)))
    times = np.concatenate([[0.0], np.stack([taken, taken + 1], axis=1).ravel()])
    rows = ZoneTrace(times, np.where(np.arange(len(times)) % 2 == 0, 1.0, math.nan))
    alone = Market(Trace({"a": rows}, "USD", 0.0, times[-1]))
    got = replay(alone, JOB, stay, np.linspace(0.0, times[-1] - 60 * HOUR, count))
    with exact_arithmetic():
        numbers = (
            JOB.work_seconds,
            per_hour / HOUR,
            0,
            JOB.restart_seconds,
            JOB.save_seconds,
            JOB.interval_seconds,
        )
        spot = SpotJob(*(Decimal(repr(float(one))) for one in numbers))
        expected = float(expected_time(spot).running)
    runs = [one.running for one in simulate(spot, count, 11)]
    assert got.finished.all()
    running = got.cost * HOUR
    error = math.hypot(running.std(), np.std(runs)) / math.sqrt(count)
    assert abs(running.mean() - np.mean(runs)) < 4 * error
    assert abs(running.mean() - expected) < 4 * running.std() / math.sqrt(count)
    closed = expected_cost(JOB, alone.interruptions_per_hour(0), alone.mean_price(0))
    assert closed == pytest.approx(expected / HOUR, rel=0.05)


# A costs 1 and then 4 dollars, b 3 and then 2: a is best at first, b on the whole.
CROSSING: dict[str, Prices] = {"a": [1.0] * 4 + [4.0] * 16, "b": [3.0] * 4 + [2.0] * 16}
SIMPLE = MovingJob(work_seconds=4 * HOUR, interval_seconds=HOUR, on_demand_per_hour=5.0)


def without_a(*hours: int) -> Market:
    """The crossing zones, without a machine in zone a in some hours."""
    prices = [None if hour in hours else price for hour, price in enumerate(CROSSING["a"])]
    return market({**CROSSING, "a": prices})


def test_policies_by_hand() -> None:
    """From 0, 8 and 16 h, staying in b costs 12, 8 and 8 dollars, and moving 4, 8 and 8."""
    staying, _, paying = compare_policies(market(CROSSING), SIMPLE, 3)
    assert (staying.policy, staying.zone) == ("staying", "b")
    assert staying.cost.mean == pytest.approx(28 / 3)
    assert staying.cost.worst == pytest.approx(12)
    assert paying.cost.mean == pytest.approx(20 / 3)
    assert paying.saved.mean == pytest.approx((1 - 4 / 12) / 3)
    assert SIMPLE.on_demand_cost == pytest.approx(20)


def test_starts_without_an_end_are_left_out_for_all() -> None:
    """The zone for staying is b, which ends all starts. If no start ends, there is an error."""
    assert compare_policies(without_a(*range(14, 20)), SIMPLE, 3)[0].zone == "b"
    closing = market({"a": [1.0] * 18 + [None] * 2})
    assert compare_policies(closing, SIMPLE, 3)[0].cost.worst == pytest.approx(4)
    with pytest.raises(InputError, match="ends under every policy, got 0 of 3"):
        compare_policies(market({"a": [None] * 20}), SIMPLE, 3)
