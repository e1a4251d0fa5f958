"""Times with an interval become costs with an interval; without a price there is a reason."""

from __future__ import annotations

import math
from decimal import Decimal

import pytest

from epochcost.cost.estimate import Cost, Estimate, MachineTime, Time, Unpriced
from epochcost.cost.sensitivity import PricedJob, cost_interval
from epochcost.errors import InputError
from epochcost.specs.terms import Billing
from price_plans import owned, rented

EPOCH = Time(Decimal(3590), Decimal(3600), Decimal(3610))


def test_the_interval_goes_through_the_billing() -> None:
    """A time around an hour costs one hour at its mean and two at its high end."""
    alone = MachineTime(EPOCH).cost(rented("0.90", "whole-hour"))
    assert isinstance(alone, Estimate)
    assert (alone.low, alone.mean, alone.high) == (
        Decimal("0.90"),
        Decimal("0.90"),
        Decimal("1.80"),
    )


def test_a_share_is_not_rounded_up() -> None:
    """The same time as a share of a running job costs in proportion."""
    share = MachineTime(EPOCH, shared=True).cost(rented("0.90", "whole-hour"))
    assert isinstance(share, Estimate)
    assert (share.low, share.mean, share.high) == (
        Decimal("0.8975"),
        Decimal("0.90"),
        Decimal("0.9025"),
    )


def test_no_price_is_not_zero() -> None:
    """Without a price the cost is a reason and has no amount."""
    assert MachineTime(EPOCH).cost(None) == Unpriced("no price is known")


def test_a_plan_that_cannot_be_applied_says_why() -> None:
    """A plan per vCPU of a machine whose vCPUs are unknown leaves the cost unpriced."""
    cost = MachineTime(EPOCH).cost(owned(per_vcpu=True))
    assert isinstance(cost, Unpriced)
    assert "per vCPU" in cost.reason
    assert isinstance(MachineTime(EPOCH, vcpus=2).cost(owned(per_vcpu=True)), Estimate)


def test_a_job_is_billed_whole_and_a_step_is_its_share() -> None:
    """A step or an epoch within a job costs its share. Alone, 1 or 25 epochs cost whole hours."""
    price, step = rented("1", "whole-hour"), Time.exact(Decimal("0.36"))
    assert _mean(MachineTime(step, shared=True).cost(price)) == Decimal("0.0001")
    assert _mean(MachineTime(step.scaled(1000), shared=True).cost(price)) == Decimal("0.1")
    assert _mean(MachineTime(step.scaled(1000)).cost(price)) == 1
    assert _mean(MachineTime(step.scaled(25_000)).cost(price)) == 3


@pytest.mark.parametrize("shared", [False, True])
def test_accelerated_work_is_unpriced_by_a_plan_of_vcpus(*, shared: bool) -> None:
    """A price without GPUs gives no cost of work on a GPU."""
    price = owned(per_vcpu=True)
    cost = MachineTime(EPOCH, 8, accelerated=True, shared=shared).cost(price)
    assert isinstance(cost, Unpriced)
    assert "no accelerator" in cost.reason
    assert isinstance(MachineTime(EPOCH, 8, shared=shared).cost(price), Estimate)


def _mean(cost: Cost) -> Decimal:
    assert isinstance(cost, Estimate)
    return cost.mean


@pytest.mark.parametrize(
    "ends", [(math.nan, 1, 2), (1, math.nan, 2), (1, 2, math.inf), (0, 0, 0), (-2, -1, 1)]
)
def test_times_that_are_none(ends: tuple[float, float, float]) -> None:
    """Times that are not finite, or not positive at the mean, are refused in one line."""
    with pytest.raises(InputError, match=r"^time: expected 0 < low <= mean <= high"):
        Time.from_floats(*ends)


def test_a_wide_interval_stays_positive() -> None:
    """The low end of a wide interval is raised above zero, and the mean is kept."""
    time = Time.from_floats(-0.5, 1.0, 2.5)
    assert 0 < time.low < Decimal("1e-9")
    assert (time.mean, time.high) == (1, Decimal("2.5"))


def test_a_rounding_of_equal_samples_is_mended() -> None:
    """Ends that miss the mean by the last bit of a float are set to the mean."""
    below, above = math.nextafter(0.1, 0), math.nextafter(0.1, 1)
    time = Time.from_floats(above, 0.1, below)
    assert time == Time.exact(Decimal("0.1"))


def test_an_interval_without_a_low_end_has_words_of_its_own() -> None:
    """A low end that a few scattered samples leave open is not shown as an amount."""
    ends = ("1e-16", "20", "578.1"), ("19", "20", "21"), ("20", "20", "20"), ("0", "0", "0")
    found = [Estimate(*map(Decimal, one), "USD", "p", assumed=False) for one in ends]
    assert [one.between for one in found] == ["at most $578.10", "$19.00 to $21.00", "", ""]
    assert [one.bounded for one in found] == [False, True, True, True]


def test_the_least_bill_of_a_plan_is_no_bound() -> None:
    """The least bill is a low end of the cost only if a time has one, or if all bills are equal."""
    price = rented("0.90", Billing(increment_seconds=Decimal(1), minimum_seconds=Decimal(60)))
    unbounded = [Time.from_floats(0, 100.0, 250.0), Time.from_floats(0, 1.0, 2.5)]
    costs = [MachineTime(time).cost(price) for time in unbounded]
    intervals = [cost_interval(PricedJob(price, MachineTime(time))).cost for time in unbounded]
    for cost, same in (costs, intervals):
        assert isinstance(cost, Estimate)
        assert isinstance(same, Estimate)
        assert (cost.low > 0, cost.between, cost.known_low) == (True, "at most $0.062", None)
        assert (same.between, same.known_low) == ("", Decimal("0.015"))
    assert [time.known_low for time in (*unbounded, EPOCH)] == [None, None, EPOCH.low]
