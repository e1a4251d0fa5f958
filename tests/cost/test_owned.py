"""Owned machines: depreciation and energy, per machine or per vCPU."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given

from epochcost.cost.bill import in_constant_use, quote
from epochcost.cost.break_even import monthly_owned, payback
from epochcost.cost.lines import Usage
from epochcost.cost.owned import HOURS_PER_CALENDAR_MONTH
from epochcost.errors import InputError
from epochcost.specs.price import Price
from epochcost.specs.terms import Commitment
from price_plans import figures, owned, plan

HOUR = Decimal(3600)


def test_an_hour_of_a_bought_machine() -> None:
    """An hour costs 90 over a quarter of 4 years, and 10 W x 1.1 at 20 cents a kWh."""
    depreciation, energy = quote(owned(), Usage(HOUR)).lines
    assert (depreciation.quantity, depreciation.unit) == (1, "hour")
    assert depreciation.amount == Decimal("0.010266940451745380")
    assert (energy.quantity, energy.unit) == (Decimal("0.011"), "kWh")
    assert energy.amount == Decimal("0.0022")
    assert "declared" in energy.label


def test_a_machine_already_paid_for_costs_its_electricity() -> None:
    """At a purchase price of 0 an hour costs its energy, 10 W x 1.1 at 20 cents a kWh."""
    bought = owned("0").model_dump(exclude_none=True)
    price = Price.model_validate(bought | {"owned": bought["owned"] | {"purchase": 0}})
    assert quote(price, Usage(HOUR)).total == Decimal("0.0022")
    assert payback(price, Decimal(100), Decimal(100)).phrase == "after 0.0 years"


def test_a_machine_in_constant_use_pays_for_no_idle_hours() -> None:
    """In constant use, an owned plan and a commitment cost what they cost at utilisation 1."""
    commitment = Commitment(
        term_months=12, payment="no-upfront", hourly=Decimal(1), utilisation=Decimal("0.5")
    )
    committed = in_constant_use(plan(plan="reserved", billing="prorated", commitment=commitment))
    assert quote(committed, Usage(HOUR)).total == 1
    assert in_constant_use(owned("10", "0.5", **UPKEEP)) == owned("10", "1", **UPKEEP)


def test_per_vcpu_multiplies_both_lines() -> None:
    """Eight vCPUs on each of two machines cost sixteen times one vCPU."""
    one = quote(owned(per_vcpu=True), Usage(HOUR, 1, 1))
    many = quote(owned(per_vcpu=True), Usage(HOUR, 2, 8))
    assert [line.amount for line in many.lines] == [line.amount * 16 for line in one.lines]
    assert many.lines[0].unit == "vCPU-hour"


def test_per_vcpu_demands_vcpus() -> None:
    """A plan per vCPU is refused without the number of vCPUs."""
    with pytest.raises(InputError, match=r"^bought: this plan is per vCPU; state the machine's"):
        quote(owned(per_vcpu=True), Usage(HOUR))


def test_a_price_of_vcpus_covers_no_accelerator() -> None:
    """A plan per vCPU does not cover work on a GPU. A plan of the whole machine covers it."""
    with pytest.raises(InputError, match=r"^bought: this plan prices vCPUs and no accelerator"):
        quote(owned(per_vcpu=True), Usage(HOUR, vcpus=8, accelerated=True))
    assert quote(owned(), Usage(HOUR, accelerated=True)) == quote(owned(), Usage(HOUR))


UPKEEP = {"rack_per_month": "73.05", "maintenance_per_year": "87.66", "idle_watts": "2"}


def test_upkeep_and_idle_energy_are_spread_over_the_used_hours() -> None:
    """At a quarter of use, upkeep is multiplied by four and idle energy by three."""
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
    """The bill of a month's used hours equals the month's cost of owning, at any utilisation."""
    upkeep = {**UPKEEP, "idle_watts": str(idle_watts)}
    price = owned("10", str(share), **upkeep)
    used = HOURS_PER_CALENDAR_MONTH * share
    month = monthly_owned(price).at(used)
    assert abs(quote(price, Usage(used * HOUR)).total - month) <= Decimal("1e-9")
