"""Sustained use: published amounts of N1 machines, and limits of any such discount."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

import price_plans as plans
from epochcost.cost.bill import quote, share
from epochcost.cost.break_even import MonthlyCost, Rent, crossing, monthly_rented
from epochcost.cost.lines import Quote, Usage
from epochcost.cost.owned import HOURS_PER_CALENDAR_MONTH
from epochcost.specs.price import Price

N1 = plans.plan(amount=Decimal("0.5672"), sustained_use="gce-n1")
HOUR = Decimal(3600)


def bill(hours: str | int, price: Price = N1, runs: int = 1) -> Quote:
    """The bill of some hours."""
    return quote(price, Usage(Decimal(hours) * HOUR, runs=runs))


@pytest.mark.parametrize(
    ("hours", "cost"),
    [("182.5", "103.51"), (365, "186.33"), (400, "198.24"), (730, "289.84"), (1460, "579.68")],
)
def test_a_month_is_cheaper_the_longer_the_machine_runs(hours: str, cost: str) -> None:
    """Quarters of a month cost 100, 80, 60 and 40 %, and each month begins anew."""
    assert round(bill(hours).total, 2) == Decimal(cost)


def test_the_discount_is_a_line_of_the_bill() -> None:
    """The discount is a line of its own that takes hours off at the list price."""
    used, discount = bill(400).lines
    assert (used.quantity, used.amount) == (400, Decimal("226.88"))
    assert (discount.label, discount.quantity) == ("sustained-use discount", Decimal("-50.5"))


def test_runs_in_a_row_add_up_within_the_month() -> None:
    """Ten runs of 73 hours cost a month. Ten machines at once each begin a month."""
    assert abs(bill(73, runs=10).total - bill(730).total) < Decimal("1e-12")
    at_once = quote(N1, Usage(73 * HOUR, count=10))
    assert round(at_once.total, 2) == Decimal("414.06")


def test_parts_and_shares_are_discounted_too() -> None:
    """A GPU of an N1 machine and a share of a month have the discount of the host."""
    parts = [{"label": "host", "amount": Decimal("0.38")}, {"label": "T4", "amount": 1}]
    host = plans.plan(plan="on-demand", components=parts, sustained_use="gce-n1")
    month = share(host, Usage(730 * HOUR))
    assert round(month.total, 6) == round(Decimal("1.38") * 730 * Decimal("0.7"), 6)


@given(plans.figures("0.5", "3000", "0.01"), plans.figures("0.01", "50", "0.01"), plans.rules)
def test_more_hours_never_cost_less_in_total(hours: Decimal, more: Decimal, rule: object) -> None:
    """Longer use never costs less in total, nor more than the list price."""
    price = plans.plan(amount=Decimal("0.5672"), sustained_use="gce-n1", billing=rule)
    shorter, longer = bill(str(hours), price), bill(str(hours + more), price)
    assert shorter.total <= longer.total
    listed = bill(str(hours), price.model_copy(update={"sustained_use": None}))
    assert listed.total * Decimal("0.7") <= shorter.total <= listed.total


@given(plans.figures("0", "730", "0.5"), st.sampled_from(("0.5", "1", "2")))
def test_a_rented_month_costs_its_bill(hours: Decimal, speed: str) -> None:
    """A rented month in rent or buy equals the bill, at any hours and speed."""
    month = monthly_rented(Rent(N1, Decimal(speed)))
    used = hours / Decimal(speed)
    billed = share(N1, Usage(used * HOUR)).total if hours else Decimal(0)
    assert abs(month.at(hours) - billed) < Decimal("1e-9")


def test_buying_crosses_a_bent_line() -> None:
    """Buying at 150 dollars a month is cheaper above the hours at which renting costs 150."""
    month = monthly_rented(Rent(N1))
    above = crossing(MonthlyCost(Decimal(150), Decimal(0)), month)
    assert above.outcome == "above"
    assert above.hours is not None
    assert abs(month.at(above.hours) - 150) < Decimal("1e-12")
    assert 182 < above.hours < 365


def test_buying_may_be_cheaper_between_two_uses() -> None:
    """An owned hour at 62 % of the list price loses again to the discounted late hours."""
    own, month = MonthlyCost(Decimal(40), Decimal("0.35")), monthly_rented(Rent(N1))
    between = crossing(own, month)
    assert between.outcome == "between"
    assert between.hours is not None
    assert between.until is not None
    for hours in (between.hours, between.until):
        assert abs(month.at(hours) - own.at(hours)) < Decimal("1e-9")
    assert between.hours < between.until < HOURS_PER_CALENDAR_MONTH
    assert between.phrase == "between 186 and 684 hours a month"
