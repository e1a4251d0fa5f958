"""Owned machines: depreciation and energy, per machine or per vCPU."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given

from epochcost.cost import Usage, quote
from epochcost.cost.bill import in_constant_use
from epochcost.cost.break_even import Rent, payback
from epochcost.cost.owned import HOURS_PER_CALENDAR_MONTH, Ownership
from epochcost.errors import InputError
from epochcost.specs.price import Price
from epochcost.specs.terms import Commitment
from price_plans import figures, owned, plan, rented

HOUR = Decimal(3600)


def test_an_hour_of_a_bought_machine() -> None:
    """(100 - 10) / (4 years x 8766 h x a quarter), and 10 W x 1.1 for an hour at 20 cents."""
    depreciation, energy = quote(owned(), Usage(HOUR)).lines
    assert (depreciation.quantity, depreciation.unit) == (1, "hour")
    assert depreciation.amount == Decimal("0.010266940451745380")
    assert (energy.quantity, energy.unit) == (Decimal("0.011"), "kWh")
    assert energy.amount == Decimal("0.0022")
    assert "declared" in energy.label


def test_a_machine_already_paid_for_costs_its_electricity() -> None:
    """A purchase price of 0 leaves 10 W x 1.1 for an hour at 20 cents."""
    bought = owned("0").model_dump(exclude_none=True)
    price = Price.model_validate(bought | {"owned": bought["owned"] | {"purchase": 0}})
    assert quote(price, Usage(HOUR)).total == Decimal("0.0022")
    assert payback(price, Rent(rented("1")), Decimal(100)).phrase == "after 0.0 years"


def test_a_machine_in_constant_use_pays_for_no_idle_hours() -> None:
    """An owned plan and a commitment at any utilisation cost what they cost at 1."""
    commitment = Commitment(
        term_months=12, payment="no-upfront", hourly=Decimal(1), utilisation=Decimal("0.5")
    )
    committed = in_constant_use(plan(plan="reserved", billing="prorated", commitment=commitment))
    assert quote(committed, Usage(HOUR)).total == 1
    assert in_constant_use(owned("10", "0.5", **UPKEEP)) == owned("10", "1", **UPKEEP)


def test_per_vcpu_multiplies_both_lines() -> None:
    """Eight vCPUs on two machines cost sixteen times one."""
    one = quote(owned(per_vcpu=True), Usage(HOUR, 1, 1))
    many = quote(owned(per_vcpu=True), Usage(HOUR, 2, 8))
    assert [line.amount for line in many.lines] == [line.amount * 16 for line in one.lines]
    assert many.lines[0].unit == "vCPU-hour"


def test_per_vcpu_demands_vcpus() -> None:
    """Without their number the plan has no price, and says what is missing."""
    with pytest.raises(InputError, match=r"^bought: this plan is per vCPU; state the machine's"):
        quote(owned(per_vcpu=True), Usage(HOUR))


def test_a_price_of_vcpus_covers_no_accelerator() -> None:
    """Work on a GPU is not billed as if it were free; a plan of the whole machine covers it."""
    with pytest.raises(InputError, match=r"^bought: this plan prices vCPUs and no accelerator"):
        quote(owned(per_vcpu=True), Usage(HOUR, vcpus=8, accelerated=True))
    assert quote(owned(), Usage(HOUR, accelerated=True)) == quote(owned(), Usage(HOUR))


UPKEEP = {"rack_per_month": "73.05", "maintenance_per_year": "87.66", "idle_watts": "2"}


def test_upkeep_and_idle_energy_are_spread_over_the_used_hours() -> None:
    """A quarter in use: rack 0.1, maintenance 0.01 and 2 W an hour, each four or three times."""
    lines = {line.label: line for line in quote(owned(**UPKEEP), Usage(HOUR)).lines}
    assert list(lines) == [
        "depreciation",
        "rack",
        "maintenance",
        "idle energy, from declared power",
        "energy, from declared power",
    ]
    assert lines["rack"].amount == Decimal("0.4")
    assert lines["maintenance"].amount == Decimal("0.04")
    idle = lines["idle energy, from declared power"]
    assert (idle.quantity, idle.unit) == (Decimal("0.0066"), "kWh")


@given(figures("0.01", "1"), figures("0", "10"))
def test_use_as_assumed_costs_what_the_months_do(share: Decimal, idle_watts: Decimal) -> None:
    """The bill of all used hours of a month is the month's cost of owning, for any use."""
    upkeep = {**UPKEEP, "idle_watts": str(idle_watts)}
    price = owned("10", str(share), **upkeep)
    assert price.owned is not None
    used = HOURS_PER_CALENDAR_MONTH * share
    own = Ownership.of(price.owned)
    month = own.fixed_per_month + used * own.energy_per_hour
    assert abs(quote(price, Usage(used * HOUR)).total - month) <= Decimal("1e-9")
