"""Times with an interval become costs with an interval; no price is a state."""

from __future__ import annotations

import math
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from epochcost.cost import Estimate, Time, Unpriced, billed_cost, prorated_cost
from epochcost.errors import InputError
from price_plans import durations, owned, rented

EPOCH = Time(Decimal(3590), Decimal(3600), Decimal(3610))


def test_the_interval_goes_through_the_billing() -> None:
    """A time around an hour costs one hour at its mean and two at its high end."""
    alone = billed_cost(rented("0.90", "whole-hour"), EPOCH)
    assert isinstance(alone, Estimate)
    assert (alone.low, alone.mean, alone.high) == (
        Decimal("0.90"),
        Decimal("0.90"),
        Decimal("1.80"),
    )


def test_a_share_is_not_rounded_up() -> None:
    """The same time as a share of a running job costs in proportion."""
    share = prorated_cost(rented("0.90", "whole-hour"), EPOCH)
    assert isinstance(share, Estimate)
    assert (share.low, share.mean, share.high) == (
        Decimal("0.8975"),
        Decimal("0.90"),
        Decimal("0.9025"),
    )


@given(st.lists(durations, min_size=3, max_size=3).map(sorted))
def test_the_order_of_the_ends_is_kept(ends: list[Decimal]) -> None:
    """Low, mean and high of the cost are in that order, as those of the time are."""
    cost = billed_cost(rented(), Time(*ends))
    assert isinstance(cost, Estimate)
    assert cost.low <= cost.mean <= cost.high


def test_no_price_is_not_zero() -> None:
    """Without a price there is no amount to read, and a reason instead."""
    assert billed_cost(None, EPOCH) == Unpriced("no price is known")


def test_a_plan_that_cannot_be_applied_says_why() -> None:
    """A plan per vCPU of a machine whose vCPUs are unknown leaves the cost unpriced."""
    cost = billed_cost(owned(per_vcpu=True), EPOCH)
    assert isinstance(cost, Unpriced)
    assert "per vCPU" in cost.reason
    assert isinstance(billed_cost(owned(per_vcpu=True), EPOCH, vcpus=2), Estimate)


def test_longer_than_a_century_is_unpriced() -> None:
    """A job that nobody would wait for has no bill, and does not stop the other rows."""
    assert isinstance(billed_cost(rented(), EPOCH.scaled(10**7)), Unpriced)


def test_the_plans_assumptions_travel_with_the_cost() -> None:
    """An assumed plan's cost says so."""
    cost = billed_cost(owned(), EPOCH)
    assert isinstance(cost, Estimate)
    assert (cost.assumed, cost.price_id) == (True, "bought")


@pytest.mark.parametrize(
    "ends", [(math.nan, 1, 2), (1, math.nan, 2), (1, 2, math.inf), (0, 0, 0), (-2, -1, 1)]
)
def test_times_that_are_none(ends: tuple[float, float, float]) -> None:
    """Not finite, zero or negative at the mean: refused in one line."""
    with pytest.raises(InputError, match=r"^time: demanded 0 < low <= mean <= high"):
        Time.measured(*ends)


def test_a_wide_interval_stays_positive() -> None:
    """The interval of few samples may reach below zero; a time does not, its mean is kept."""
    time = Time.measured(-0.5, 1.0, 2.5)
    assert 0 < time.low < Decimal("1e-9")
    assert (time.mean, time.high) == (1, Decimal("2.5"))


def test_a_rounding_of_equal_samples_is_mended() -> None:
    """Ends that miss the mean by the last bit of a float are put upon it."""
    below, above = math.nextafter(0.1, 0), math.nextafter(0.1, 1)
    time = Time.measured(above, 0.1, below)
    assert time == Time.exactly(Decimal("0.1"))


@given(st.floats(min_value=1e-12, max_value=1e12))
def test_floats_become_their_shortest_decimal(seconds: float) -> None:
    """The decimal reads back as the same float, and 0.1 is a tenth."""
    assert float(Time.measured(seconds, seconds, seconds).mean) == seconds


def test_an_interval_without_a_low_end_has_words_of_its_own() -> None:
    """What a few scattered samples leave open below is never shown as an amount."""
    ends = ("1e-16", "20", "578.1"), ("19", "20", "21"), ("20", "20", "20"), ("0", "0", "0")
    found = [Estimate(*map(Decimal, one), "USD", "p", assumed=False) for one in ends]
    assert [one.between for one in found] == ["at most $578.10", "$19.00 to $21.00", "", ""]
    assert [one.bounded for one in found] == [False, True, True, True]
