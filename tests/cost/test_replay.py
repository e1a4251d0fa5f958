"""Replayed spot jobs: a small history worked out by hand, and what cannot be replayed."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from epochcost.cost.estimate import Unpriced
from epochcost.cost.replay import MovingJob, Stay, compare_with_staying, replay
from epochcost.errors import InputError
from epochcost.specs.prices.history import PriceHistory, PricePoint

START = dt.datetime(2017, 3, 1, tzinfo=dt.UTC)
HOUR = Decimal(3600)


def history(hours: int = 10, **series: Sequence[tuple[float, str]]) -> PriceHistory:
    """Regions with their prices from so many hours on."""
    points = {
        region: tuple(
            PricePoint(START + dt.timedelta(hours=after), Decimal(price)) for after, price in rows
        )
        for region, rows in series.items()
    }
    return PriceHistory(points, START, START + dt.timedelta(hours=hours))


# East is outbid from 2 h to 3 h, then the cheaper one; west costs 2 dollars an hour throughout.
MARKET = history(east=[(0, "1"), (2, "5"), (3, "0.5")], west=[(0, "2")])
JOB = MovingJob(
    work=4 * HOUR, interval=HOUR, save=Decimal(360), restart=Decimal(720), bid=Decimal(3)
)


def test_moving_by_hand() -> None:
    """Two hours of east of which one is saved, then 12 min, three hours and two saves of west."""
    got = replay(MARKET, JOB, START)
    assert got.stays == (
        Stay("east", Decimal(0), 2 * HOUR, Decimal(2)),
        Stay("west", 2 * HOUR, Decimal(19_440), Decimal("6.8")),
    )
    assert (got.cost, got.elapsed_seconds) == (Decimal("8.8"), 19_440)
    assert (got.interruptions, got.moves) == (1, 1)


def test_staying_by_hand() -> None:
    """East waits an hour and goes on at half the price; west is never interrupted."""
    got = compare_with_staying(MARKET, JOB, START)
    east, west = got.staying["east"], got.staying["west"]
    assert not isinstance(east, Unpriced)
    assert not isinstance(west, Unpriced)
    assert (east.cost, east.elapsed_seconds, east.interruptions) == (Decimal("3.7"), 23_040, 1)
    assert (west.cost, west.elapsed_seconds, west.interruptions) == (Decimal("8.6"), 15_480, 0)
    assert got.moving.cost == Decimal("8.8")
    assert got.saved == pytest.approx(1 - Decimal("8.8") / Decimal("3.7"))


def test_switching_by_hand() -> None:
    """At the save after 3 h 18 min east costs a quarter of west: the job moves back."""
    got = replay(MARKET, replace(JOB, switch_below=Decimal("0.5")), START)
    assert [stay.amount for stay in got.stays] == [2, Decimal("2.6"), Decimal("1.15")]
    assert (got.cost, got.elapsed_seconds) == (Decimal("5.75"), 20_160)
    assert (got.interruptions, got.moves) == (1, 2)


def test_moves_take_time_and_money() -> None:
    """Half an hour to copy the checkpoint and 10 cents for it, on top of the restart."""
    moving = replace(JOB, move=HOUR / 2, move_charge=Decimal("0.10"))
    got = replay(MARKET, moving, START)
    assert got.elapsed_seconds == 19_440 + 1800
    assert got.cost == Decimal("8.8") + 1 + Decimal("0.10")


def test_without_a_bid_nothing_interrupts() -> None:
    """East to its end at every price: 2 h at 1, 1 h at 5, 1.3 h at 0.5."""
    got = replay(MARKET, replace(JOB, bid=None), START, ("east",))
    assert got.interruptions == 0
    assert got.cost == 2 + 5 + Decimal("1.3") * Decimal("0.5")


def test_a_job_begins_in_the_middle() -> None:
    """Half an hour before east's price rises, nothing of it is saved."""
    got = replay(MARKET, JOB, START + dt.timedelta(hours=1.5))
    assert got.stays[0] == Stay("east", Decimal(0), HOUR / 2, Decimal("0.5"))
    assert got.elapsed_seconds == HOUR / 2 + 720 + 4 * HOUR + 3 * 360


def test_waiting_for_a_first_price() -> None:
    """A region without a price is not to be had; time passes, and costs nothing."""
    late = history(east=[(0, "9"), (3, "1")], south=[(2, "2")])
    got = replay(late, JOB, START)
    assert got.stays[0].region == "south"
    assert got.stays[0].start == 2 * HOUR
    assert got.cost == Decimal("8.6")


@pytest.mark.parametrize(
    ("market", "message"),
    [
        (history(5, east=[(0, "1")]), None),
        (history(4, east=[(0, "1")]), "found none after 4 h, with 3 h of work saved"),
        (history(8, east=[(0, "9")]), "found none after 8 h, with 0 h of work saved"),
    ],
)
def test_a_history_that_ends_too_early(market: PriceHistory, message: str | None) -> None:
    """What happens after its last row is not known, so there is no answer."""
    if message is None:
        assert replay(market, JOB, START).cost == Decimal("4.3")
        return
    with pytest.raises(InputError, match=message):
        replay(market, JOB, START)
    with pytest.raises(InputError):
        compare_with_staying(market, JOB, START)


def test_a_region_alone_that_never_ends_is_unpriced() -> None:
    """The others are compared all the same."""
    got = compare_with_staying(history(west=[(0, "2")], dear=[(0, "9")]), JOB, START)
    assert isinstance(got.staying["dear"], Unpriced)
    assert got.saved == 0


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"work": Decimal(0)}, "work: expected a finite number above 0, got 0"),
        ({"bid": Decimal("NaN")}, "bid: expected a finite number above 0, got NaN"),
        ({"save": Decimal(-1)}, "save: expected a finite number of at least 0, got -1"),
        ({"switch_below": Decimal(1)}, "switch_below: expected more than 0 and less than 1, got 1"),
    ],
)
def test_figures_out_of_range(fields: dict[str, Any], message: str) -> None:
    """Each is named with its demand."""
    with pytest.raises(InputError, match=message):
        replace(JOB, **fields)


def test_times_and_regions_that_are_not_there() -> None:
    """Before the first row, after the last, without a zone, or somewhere else."""
    for start in (START - dt.timedelta(1), START + dt.timedelta(1), START.replace(tzinfo=None)):
        with pytest.raises(InputError, match="start: expected a time with a zone"):
            replay(MARKET, JOB, start)
    with pytest.raises(InputError, match="region: expected one of the history, east, west, got 'n"):
        replay(MARKET, JOB, START, ("north",))


rows = st.lists(st.integers(1, 6), min_size=8, max_size=8).map(
    lambda prices: [(hour, str(price)) for hour, price in enumerate(prices)]
)


@given(rows, rows, st.sampled_from([None, Decimal("0.6")]))
def test_what_every_replay_holds(
    east: list[tuple[float, str]], west: list[tuple[float, str]], share: Decimal | None
) -> None:
    """Stays follow each other, hold all the work, and cost no more than the bid for their time.

    Nothing is cheaper than the work at the lowest price.
    """
    market = history(60, east=[*east, (8, "1")], west=[*west, (8, "1")])
    got = replay(market, replace(JOB, switch_below=share), START)
    assert got.cost == sum(stay.amount for stay in got.stays)
    assert all(one.end <= other.start for one, other in zip(got.stays, got.stays[1:], strict=False))
    used = sum(stay.end - stay.start for stay in got.stays)
    assert used >= JOB.work
    assert used / HOUR * 3 >= got.cost >= JOB.work / HOUR
    assert got.moves + 1 <= len(got.stays)
    assert got.interruptions <= len(got.stays)
