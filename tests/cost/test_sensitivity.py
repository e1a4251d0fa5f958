"""Inputs that move a cost, and values at which another choice costs as much, by hand."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings

from epochcost.cost.bill import quote_quantile
from epochcost.cost.estimate import MachineTime, Time
from epochcost.cost.lines import Usage
from epochcost.cost.sensitivity import (
    INTERRUPTIONS,
    SPEED,
    PricedJob,
    cost_interval,
    switching_value,
)
from epochcost.errors import InputError
from epochcost.specs.price import Price
from price_plans import figures, job_seconds, owned, plan, rented, rented_plans

HOUR = Decimal(3600)
JOB = PricedJob(rented("0.90", "prorated"), MachineTime(Time.exact(10 * HOUR)))


def test_inputs_of_a_rented_and_of_an_owned_machine() -> None:
    """Inputs are price and speed if rented, else purchase, utilisation, electricity and speed."""
    assert list(JOB.input_names()) == ["amount", SPEED]
    assert list(PricedJob(owned(), JOB.work).input_names()) == [
        "owned.purchase", "owned.utilisation", "owned.electricity_per_kwh", SPEED
    ]  # fmt: skip


def test_a_share_beyond_one_is_no_plan() -> None:
    """At a utilisation of 1 no utilisation makes an owned machine cheaper."""
    job = PricedJob(owned(utilisation="1"), JOB.work)
    assert switching_value(job, "owned.utilisation", job.bill().total / 2) is None


@settings(max_examples=20)  # each bisects a hundred bills, judged as specs
@given(figures("0.01", "100"))
def test_the_job_costs_as_much_there(cost: Decimal) -> None:
    """At the switching value the job costs the requested amount."""
    for name in ("amount", SPEED):
        got = switching_value(JOB, name, cost)
        assert got is not None
        assert JOB.with_input(name, got.value).bill().total == pytest.approx(cost)


def test_the_interruption_rate_at_which_spot_is_no_cheaper() -> None:
    """Spot at half the price is cheaper than on demand below the rate found, and dearer above."""
    terms = {
        "rate_per_hour": Decimal("0.01"),
        "checkpoint_seconds": Decimal(60),
        "restart_seconds": Decimal(300),
    }
    spot = plan(plan="spot", amount=Decimal("0.45"), billing="prorated", interruptions=terms)
    job = PricedJob(spot, JOB.work)
    got = switching_value(job, "interruptions.rate_per_hour", JOB.bill().total)
    assert got is not None
    assert got.value > got.now
    for factor, cheaper in ((Decimal("0.99"), True), (Decimal("1.01"), False)):
        bill = job.with_input("interruptions.rate_per_hour", got.value * factor).bill()
        assert (bill.total < 9) is cheaper


def test_an_input_that_is_none() -> None:
    """A figure that the plan does not have and a speed of zero are refused."""
    with pytest.raises(InputError, match=r"owned\.utilisation"):
        switching_value(JOB, "owned.utilisation", Decimal(1))
    with pytest.raises(InputError, match="factor above 0, got 0"):
        JOB.with_input(SPEED, Decimal(0))


DAYS = Time.exact(100 * HOUR)


def prorated(**fields: Any) -> Price:
    """A plan at a dollar an hour, billed as used."""
    return plan(amount=Decimal(1), billing="prorated", **fields)


def between(low: str, high: str) -> dict[str, Decimal]:
    """A range as specs declare it."""
    return {"low": Decimal(low), "high": Decimal(high)}


def test_a_utilisation_that_falls_costs_more() -> None:
    """The low end of a utilisation gives the high end of the cost: half doubles depreciation."""
    price = owned(residual="0", utilisation="0.25").model_copy(
        update={"ranges": prorated(ranges={"owned.utilisation": between("0.125", "0.25")}).ranges}
    )
    job = PricedJob(price, MachineTime(DAYS))
    got = cost_interval(job)
    worn = job.bill().lines[0].amount
    assert got.cost.low == got.cost.mean
    assert got.cost.high - got.cost.mean == pytest.approx(worn)


def test_interruptions_are_a_part() -> None:
    """The ends of the interruptions' part are the bills at 5 and at 95 %."""
    price = prorated(
        interruptions={"rate_per_hour": Decimal("0.1"), "restart_seconds": Decimal(60)}
    )
    got = cost_interval(PricedJob(price, MachineTime(DAYS)))
    ends = [quote_quantile(price, Usage(DAYS.mean), share).total for share in (0.05, 0.95)]
    assert [(part.name, part.low, part.high) for part in got.parts] == [(INTERRUPTIONS, *ends)]
    assert [got.cost.low, got.cost.high] == pytest.approx(ends)


def test_as_covering_as_sampling() -> None:
    """The interval holds 95 % of bills whose inputs are normal with the parts' 95 % ends."""
    ranges = {"amount": between("0.9", "1.1"), "components[0].amount": between("0.3", "0.7")}
    gpu = {"label": "GPU", "amount": Decimal("0.5")}
    job = PricedJob(
        prorated(components=[gpu], ranges=ranges),
        MachineTime(Time(90 * HOUR, 100 * HOUR, 110 * HOUR)),
    )
    draw = np.random.default_rng(5)
    hours, amount, part = (
        draw.normal(mean, half / 1.96, 20_000) for mean, half in ((100, 10), (1.0, 0.1), (0.5, 0.2))
    )
    costs = hours * (amount + part)
    got = cost_interval(job).cost
    inside = np.mean((costs >= float(got.low)) & (costs <= float(got.high)))
    assert 0.94 < inside < 0.96


@given(rented_plans(), job_seconds)
def test_nothing_uncertain_is_an_exact_cost(price: Price, used: Decimal) -> None:
    """An exact time under a plan without ranges gives one figure and no parts."""
    got = cost_interval(PricedJob(price, MachineTime(Time.exact(used))))
    assert got.cost.low == got.cost.mean == got.cost.high
    assert got.largest is None
