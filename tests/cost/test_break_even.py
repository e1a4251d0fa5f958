"""Rent or buy: where the two monthly costs cross, and after how long a purchase has paid."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import given

from epochcost.cost.break_even import (
    BreakEven,
    MonthlyCost,
    Rent,
    compare,
    crossing,
    monthly_owned,
    monthly_rented,
    payback,
    rent_at,
    rents_alike,
)
from epochcost.cost.owned import HOURS_PER_CALENDAR_MONTH
from epochcost.errors import InputError
from epochcost.specs.catalogue import Catalogue
from epochcost.specs.hardware import Accelerator, Hardware
from epochcost.specs.price import Price
from epochcost.specs.terms import Commitment, Component
from price_plans import figures, owned, plan, rented

ZERO = Decimal(0)
monthly = figures("0", "5000")
hourly = figures("0", "50")
# 90 dollars over 48 months, and 11 Wh for an hour of use at 20 cents a kWh.
FIXED, HOURLY = Decimal("1.875"), Decimal("0.0022")


def reserved(utilisation: str) -> Price:
    """A machine for 73 dollars a month, used or not."""
    terms = Commitment(
        term_months=Decimal(12),
        payment="no-upfront",
        hourly=Decimal("0.1"),
        utilisation=Decimal(utilisation),
    )
    return plan(id="kept", plan="reserved", commitment=terms)


def break_even(own: Price, rent: Rent) -> BreakEven:
    """The hours of use at which buying is cheaper than a rented plan."""
    (alternative,) = compare(own, [rent]).alternatives
    return alternative.crossing


def test_the_month_of_an_owned_machine() -> None:
    """The loss of value is a fixed cost a month, the energy a cost per hour of use."""
    assert monthly_owned(owned()) == MonthlyCost(FIXED, HOURLY)


def test_the_exact_crossing() -> None:
    """An hour owned saves 0.075 of a rented hour at 0.0772; 25 hours save a month's fixed cost."""
    assert break_even(owned(), Rent(rented("0.0772"))) == BreakEven("above", Decimal(25))


def test_a_faster_rented_machine_is_worth_more_hours() -> None:
    """A rented machine of twice the speed and price breaks even at the same hours of work."""
    twice = Rent(rented("0.1544"), Decimal(2))
    assert break_even(owned(), twice).hours == 25


def test_renting_below_the_price_of_electricity_is_never_beaten() -> None:
    """Buying is never cheaper if a rented hour costs less than the owned machine's energy."""
    assert break_even(owned(), Rent(rented("0.002"))) == BreakEven("never")


def test_a_machine_sold_for_its_price_is_always_cheaper() -> None:
    """Without loss of value and with a cheaper hour, buying is cheaper at any use."""
    assert break_even(owned("100"), Rent(rented())) == BreakEven("always")


@pytest.mark.parametrize(
    ("utilisation", "speed", "cost"),
    [("1", "1", 73), ("0.25", "1", 73), ("0.25", "2", 73), ("1", "0.5", 146)],
)
def test_a_commitment_costs_the_same_at_any_use(utilisation: str, speed: str, cost: int) -> None:
    """A commitment costs 730 hours at 10 cents at any utilisation; two slow machines cost twice."""
    month = monthly_rented(Rent(reserved(utilisation), Decimal(speed)))
    assert month.at(ZERO) == month.at(HOURS_PER_CALENDAR_MONTH) == cost


def test_against_a_commitment_buying_may_be_cheaper_below() -> None:
    """Owning at 72 a month and 10 cents an hour is cheaper than 73 a month below ten hours."""
    found = crossing(MonthlyCost(Decimal(72), Decimal("0.1")), MonthlyCost(Decimal(73), ZERO))
    assert found == BreakEven("below", Decimal(10))


@given(monthly, hourly, monthly, hourly)
def test_the_outcome_is_what_the_lines_say(
    fixed: Decimal, per_hour: Decimal, rent_fixed: Decimal, rent_per_hour: Decimal
) -> None:
    """The outcome names the cheaper side before and after the crossing, or for the whole month."""
    own, rent = MonthlyCost(fixed, per_hour), MonthlyCost(rent_fixed, rent_per_hour)
    found = crossing(own, rent)
    if found.hours is None:
        for hours in (ZERO, HOURS_PER_CALENDAR_MONTH):
            saved = rent.at(hours) - own.at(hours)
            assert saved >= 0 if found.outcome == "always" else saved <= 0
        return
    assert 0 < found.hours < HOURS_PER_CALENDAR_MONTH
    assert abs(own.at(found.hours) - rent.at(found.hours)) < Decimal("1e-12")
    at_the_end = own.at(HOURS_PER_CALENDAR_MONTH) < rent.at(HOURS_PER_CALENDAR_MONTH)
    assert at_the_end == (found.outcome == "above")


def test_the_purchase_has_paid_after_years() -> None:
    """A purchase of 100 dollars is paid back by savings of 10 less 0.22 dollars a month."""
    found = payback(owned(), Decimal(10), Decimal(100))
    assert found.years is not None
    assert abs(found.years * 12 * Decimal("9.78") - 100) < Decimal("1e-9")


def test_a_purchase_that_never_pays() -> None:
    """An idle machine saves nothing."""
    found = payback(owned(), ZERO, ZERO)
    assert (found.years, found.by_resale) == (None, False)
    assert found.phrase == "not in the machine's life"


def test_a_purchase_that_pays_by_its_resale() -> None:
    """Eight vCPUs cost 800 dollars, less 720 at the end, and 84 for energy; renting costs 240."""
    found = payback(owned("90", per_vcpu=True), Decimal(5), Decimal(100), vcpus=8)
    assert found.phrase == "only with the resale value"


@pytest.mark.parametrize("hours", ["-1", "731", "NaN", "Infinity"])
def test_hours_that_no_month_has(hours: str) -> None:
    """Negative hours, hours beyond a month and hours that are no number are refused in one line."""
    with pytest.raises(InputError, match=r"^hours per month: expected at least 0 and at most"):
        compare(owned(), [Rent(rented())], Decimal(hours))


def test_what_cannot_be_compared() -> None:
    """A plan of the wrong side, another currency, and an unknown number of vCPUs are refused."""
    with pytest.raises(InputError, match="expected an owned plan, got plan 'on-demand'"):
        monthly_owned(rented())
    with pytest.raises(InputError, match="expected a rented plan to compare with"):
        break_even(owned(), Rent(owned()))
    with pytest.raises(InputError, match="expected a plan in USD, the currency of bought, got EUR"):
        break_even(owned(), Rent(rented(currency="EUR")))
    with pytest.raises(InputError, match="this plan is per vCPU"):
        monthly_owned(owned(per_vcpu=True))
    assert monthly_owned(owned(per_vcpu=True), 8).at(ZERO) == 8 * FIXED


def machine(identifier: str, accelerator: str | None, count: int = 1) -> Hardware:
    """A machine with some accelerators of one kind, or with none."""
    gpus = (Accelerator(name=accelerator, count=count),) if accelerator else ()
    return Hardware(
        id=identifier, name=identifier, provider="A", accelerators=gpus, source="a test"
    )


def rental(identifier: str, hardware: str, **fields: str) -> Price:
    """A rented plan of a machine."""
    return plan(id=identifier, hardware=hardware, amount=Decimal(1), **fields)


MACHINES = (
    machine("local", "H9", 8),
    machine("same", "H9", 8),
    machine("fewer", "H9", 4),
    machine("plain", None),
)
PRICES = (
    rental("of-same", "same"),
    rental("in-euros", "same", currency="EUR"),
    rental("of-fewer", "fewer"),
    rental("of-plain", "plain"),
    plan(
        id="by-the-run",
        hardware="same",
        components=(Component(label="run", amount=Decimal(3), per="run"),),
    ),
)


OWN = owned()
CATALOGUE = Catalogue(
    root=Path(),
    hardware={one.id: one for one in MACHINES},
    prices={one.id: one for one in (*PRICES, OWN)},
    models={},
    studies={},
    published={},
)


def test_the_same_accelerators_make_a_substitute() -> None:
    """A substitute is another hourly plan in the same currency with equal accelerators."""
    (found,) = rents_alike(CATALOGUE, OWN)
    assert (found.price.id, found.speed, found.why) == ("of-same", 1, "the same kind of machine")


def test_a_named_plan_needs_a_speed() -> None:
    """The speed of a named plan is 1 for machines of the same kind, or else must be declared."""
    assert rent_at(CATALOGUE, OWN, "of-same").speed == 1
    slower = rent_at(CATALOGUE, OWN, "of-plain", Decimal("0.50"))
    assert slower.why == "declared as 0.5 times as fast"
    with pytest.raises(InputError, match=r"^of-plain: expected a machine with the accelerators"):
        rent_at(CATALOGUE, OWN, "of-plain")
