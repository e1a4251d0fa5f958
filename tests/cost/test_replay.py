"""Replayed spot jobs: three zones worked out by hand, and what holds of every trace."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from decimal import Decimal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from epochcost.cost.market import Market
from epochcost.cost.money import exact_arithmetic
from epochcost.cost.replay import (
    MovingJob,
    Outcome,
    Policy,
    compare_policies,
    evenly_spaced_starts,
    expected_cost,
    fall_back_on_demand,
    move_when_interrupted,
    move_when_it_pays,
    replay,
    saving_interval,
    stay,
)
from epochcost.cost.spot import SpotJob, daly_interval_seconds, expected_time, simulate
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
    """Zones with a price, or no machine, for each hour."""
    rows = {
        zone: ZoneTrace(
            np.arange(len(prices)) * HOUR,
            np.array([math.nan if price is None else price for price in prices]),
        )
        for zone, prices in zones.items()
    }
    return Market(Trace(rows, "USD", 0.0, len(zones["a"]) * HOUR))


def play(policy: Policy, job: MovingJob = JOB, hour: float = 0, **zones: Prices) -> Outcome:
    """One start."""
    return replay(market(zones or ZONES), job, policy, np.array([hour * HOUR]))


def check(got: Outcome, cost: float, hours: float, interruptions: int, moves: int) -> None:
    """A single start's figures, to far below a cent."""
    assert got.finished.all()
    assert got.cost[0] == pytest.approx(cost, abs=1e-9)
    assert got.elapsed[0] / HOUR == pytest.approx(hours)
    assert (got.interruptions[0], got.moves[0]) == (interruptions, moves)


def test_staying_by_hand() -> None:
    """2 h of a at $1, of which one stretch is saved, an hour's wait, then 3.4 h at $0.50."""
    check(play(stay), 2 + 3.4 * 0.5, 6.4, 1, 0)


def test_staying_in_a_given_zone_by_hand() -> None:
    """B is never interrupted; c gets cheap for the last 0.3 h."""
    costs = [replay(market(ZONES), JOB, stay, np.zeros(1), home).cost[0] for home in (1, 2)]
    assert costs == pytest.approx([4.3 * 2, 4 * 3 + 0.3 * 0.2])


def test_moving_at_an_interruption_by_hand() -> None:
    """2 h of a, then 0.3 h to be in b and 3.2 h there at $2, and 25 cents for the move."""
    check(play(move_when_interrupted), 2 + 3.5 * 2 + 0.25, 5.5, 1, 1)


def test_moving_for_the_price_by_hand() -> None:
    """After a stretch in b, a saves $3.00 of the rest; in a, c would save 30 cents, and costs 31.

    2 h of a at $1, 1.4 h of b at $2, 2.4 h of a at 50 cents, two moves.
    """
    check(play(move_when_it_pays), 2 + 1.4 * 2 + 2.4 * 0.5 + 2 * 0.25, 5.8, 1, 2)


def test_a_move_that_costs_a_little_less_is_made_by_hand() -> None:
    """At 23 cents a move c saves a cent, too: 1.4 h of a at 50 cents and 1.3 h of c at 20."""
    got = play(move_when_it_pays, replace(JOB, move_charge=0.23))
    check(got, 2 + 1.4 * 2 + 1.4 * 0.5 + 1.3 * 0.2 + 3 * 0.23, 6.1, 1, 3)


def test_a_deadline_by_hand() -> None:
    """At 2 h, losing the next stretch would end it after 6.6 h: 3.2 h on demand at $4 instead."""
    check(play(fall_back_on_demand), 9.25, 5.5, 1, 1)
    got = play(fall_back_on_demand, replace(JOB, deadline_seconds=6.5 * HOUR))
    check(got, 2 + 3.2 * 4, 5.2, 1, 0)


def test_a_wait_that_would_be_too_long_by_hand() -> None:
    """With a alone the job does not wait from 2 h to 3 h, for it could not before 2.3 h."""
    got = play(fall_back_on_demand, replace(JOB, deadline_seconds=5.5 * HOUR), a=ZONES["a"])
    check(got, 2 + 3.2 * 4, 5.2, 1, 0)


def test_a_job_begins_in_the_middle() -> None:
    """Half an hour before a is taken back, nothing of it is saved."""
    check(play(stay, hour=1.5), 0.5 + (0.2 + 4.3) * 0.5, 1.5 + 4.5, 1, 0)


def test_a_trace_that_ends_too_early() -> None:
    """What happens after it is not known, so there is no cost; on demand the price is."""
    assert not play(stay, hour=8).finished.any()
    assert not play(stay, a=(None, 1, None, None), b=(None,) * 4).finished.any()
    rescued = play(
        fall_back_on_demand, replace(JOB, deadline_seconds=5 * HOUR), a=(1, None), b=(None, None)
    )
    check(rescued, 4 * 4, 4, 0, 0)


def test_starts_are_within_the_trace() -> None:
    """The last one's undisturbed work ends with it; a trace shorter than the work has none."""
    got = evenly_spaced_starts(market(ZONES), JOB, 3)
    assert (got / HOUR).tolist() == pytest.approx([0, 3.85, 7.7])
    with pytest.raises(InputError, match=r"trace: expected one longer than the work, 4 h, got 2 h"):
        evenly_spaced_starts(market({"a": (1, 1)}), JOB, 3)


def test_a_deadline_before_the_end_of_work() -> None:
    """Is refused with both."""
    with pytest.raises(InputError, match="deadline: expected at least the work, 14400 s, got 1080"):
        replace(JOB, deadline_seconds=3 * HOUR)


@pytest.mark.parametrize("per_hour", [0.05, 0.3])
def test_replays_agree_with_the_simulation(per_hour: float) -> None:
    """Taken back at random for a second each time: the time that machines run, and its closed form.

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


def test_the_closed_form_without_interruptions() -> None:
    """The work and three saves, at the mean price."""
    steady = market({"a": (2,) * 9})
    got = expected_cost(JOB, steady.interruptions_per_hour(0), steady.mean_price(0))
    assert got == pytest.approx(4.3 * 2)


class LeastCost:
    """The least that any policy could pay, knowing all that comes: every choice is tried.

    In hours; shares nothing with the replay.
    """

    def __init__(self, zones: dict[str, Prices], job: MovingJob, *, on_demand: bool) -> None:
        self._zones, self._end, self._job = zones, len(zones["a"]), job
        self._on_demand = job.on_demand_per_hour if on_demand else None
        self._known: dict[tuple[float, float, str, bool], float] = {}

    def of_job(self) -> float:
        """From the trace's begin."""
        return self._least(0.0, self._job.work_seconds / HOUR, "", held=False)

    def _least(self, hour: float, left: float, zone: str, *, held: bool) -> float:
        if left < 1e-9:
            return 0.0
        key = (round(hour, 6), round(left, 6), zone, held)
        if key not in self._known:
            self._known[key] = min(self._choices(hour, left, zone, held=held), default=math.inf)
        return self._known[key]

    def _choices(self, hour: float, left: float, zone: str, *, held: bool) -> Iterator[float]:
        """On demand to the end, nothing until the next hour, or a stretch somewhere."""
        restart = self._job.restart_seconds / HOUR if zone else 0.0
        if self._on_demand is not None:
            yield (restart + left) * self._on_demand
        if _next(hour) < self._end:
            yield self._least(_next(hour), left, zone, held=False)
        done = min(left, self._job.interval_seconds / HOUR)
        stretch = done + (self._job.save_seconds / HOUR if left > done else 0.0)
        for other in self._zones:
            moved = bool(zone) and other != zone
            begun = 0.0 if held and not moved else restart
            length = begun + moved * self._job.move_seconds / HOUR + stretch
            if hour + length <= self._end and self._price(other, hour) is not None:
                paid, then, lasted = self._use(other, hour, length)
                after = self._least(then, left - done * lasted, other, held=lasted)
                yield paid + moved * self._job.move_charge + after

    def _price(self, zone: str, hour: float) -> float | None:
        return self._zones[zone][int(hour + 1e-9)]

    def _use(self, zone: str, hour: float, length: float) -> tuple[float, float, bool]:
        """What a machine costs, until when, and whether it lasted."""
        paid, until = 0.0, hour + length
        while hour < until - 1e-9:
            now = self._price(zone, hour)
            if now is None:
                return paid, hour, False
            then = min(_next(hour), until)
            paid, hour = paid + (then - hour) * now, then
        return paid, hour, True


def _next(hour: float) -> float:
    return float(int(hour + 1e-9) + 1)


hours = st.lists(st.sampled_from([None, 1.0, 1.5, 2.0, 4.0]), min_size=14, max_size=14)


@settings(max_examples=1000)
@given(hours, hours, st.sampled_from([4.5, 6.0, 9.0]))
def test_what_every_replay_holds(east: Prices, west: Prices, deadline: float) -> None:
    """Nothing is cheaper than undisturbed work at the lowest price, or than knowing what comes.

    Whoever may do more pays no more: of two zones than of one, with on demand than without.
    """
    zones = {"a": east, "b": west}
    job = replace(JOB, work_seconds=3 * HOUR, deadline_seconds=deadline * HOUR)
    alone = LeastCost({"a": east}, job, on_demand=False).of_job()
    spot = LeastCost(zones, job, on_demand=False).of_job()
    everything = LeastCost(zones, job, on_demand=True).of_job()
    assert everything <= spot <= alone
    bounds: list[tuple[Policy, float]] = [
        (stay, alone),
        (move_when_interrupted, spot),
        (move_when_it_pays, spot),
        (fall_back_on_demand, everything),
    ]
    for policy, least in bounds:
        home = 0 if policy is stay else None
        got = replay(market(zones), job, policy, np.zeros(1), home)
        late = got.elapsed[got.finished] > deadline * HOUR + 1e-6
        assert (got.cost[got.finished] >= max(least, 3 * 1.0) - 1e-9).all()
        assert policy is not fall_back_on_demand or not late.any()


# A costs 1 and then 4 dollars, b 3 and then 2: a is best at first, b on the whole.
CROSSING: dict[str, Prices] = {"a": [1.0] * 4 + [4.0] * 16, "b": [3.0] * 4 + [2.0] * 16}
SIMPLE = MovingJob(work_seconds=4 * HOUR, interval_seconds=HOUR, on_demand_per_hour=5.0)


def without_a(*hours: int) -> Market:
    """The crossing zones, of which a has no machine in some hours."""
    prices = [None if hour in hours else price for hour, price in enumerate(CROSSING["a"])]
    return market({**CROSSING, "a": prices})


def test_policies_by_hand() -> None:
    """From 0, 8 and 16 h: b alone costs 12, 8 and 8 dollars; moving when it pays 4, 8 and 8."""
    staying, _, paying = compare_policies(market(CROSSING), SIMPLE, 3)
    assert (staying.policy, staying.zone) == ("staying", "b")
    assert staying.cost.mean == pytest.approx(28 / 3)
    assert staying.cost.worst == pytest.approx(12)
    assert paying.cost.mean == pytest.approx(20 / 3)
    assert paying.saved.mean == pytest.approx((1 - 4 / 12) / 3)
    assert SIMPLE.on_demand_cost == pytest.approx(20)


def test_falling_back_needs_a_deadline_and_a_price() -> None:
    """It is compared only if the job has both."""
    job = replace(SIMPLE, deadline_seconds=10 * HOUR)
    names = [result.policy for result in compare_policies(market(CROSSING), job, 3)]
    assert names[-1] == "falling back to on demand"
    for lacking in (SIMPLE, replace(job, on_demand_per_hour=None)):
        results = compare_policies(market(CROSSING), lacking, 3)
        assert [result.policy for result in results] == names[:-1]


def test_starts_without_an_end_are_left_out_for_all() -> None:
    """From 14 h a has no machine any more; b, which ends every start, is the zone to stay in."""
    assert compare_policies(without_a(*range(14, 20)), SIMPLE, 3)[0].zone == "b"
    with pytest.raises(InputError, match="ends under every policy, found it in 0 of 3 starts"):
        compare_policies(market({"a": [None] * 20}), SIMPLE, 3)


def test_the_interval_between_saves() -> None:
    """Daly's at one interruption in the 39 h that both zones run; ten minutes without any."""
    got = saving_interval(without_a(7), 30.0)
    assert got == pytest.approx(float(daly_interval_seconds(Decimal(30), Decimal(39 * 3600))))
    assert saving_interval(market(CROSSING), 30.0) == saving_interval(without_a(7), 0.0) == 600
