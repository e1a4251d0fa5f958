"""Commitments against the scenarios of FOCUS, the FinOps Open Cost and Usage Specification.

`focus_commitments.csv` has the figures of all 53 scenarios of commitment discounts that the FOCUS
repository has had (FinOps-Open-Cost-and-Usage-Spec/FOCUS_Spec, specification/data and
specification/appendix, read on 2026-11-26). Copyright Joint Development Foundation Projects, LLC,
FinOps Open Cost and Usage Specification (FOCUS) Series and its contributors, CC BY 4.0. Most plans
occur under the names of two or three providers, and their first version has round thousands.

A test makes a plan of a scenario's purchases; the bill must have its used, unused and standard
costs. Published costs are sums of hours that were rounded to cents. ``read`` names the source of
the figures: the rows of the CSV file, the page, or only the table at the page's head. Rows of
unused hours have no list price; the list price is half more than the committed price. FOCUS
disagrees with itself in three places:

- recurring purchases are those of the 672 hours of February, but a twelfth of the year, 730 hours,
  in Crestnode's reservation and in all first versions;
- first versions call an upfront payment and one month of a partial plan the year's commitment, and
  divide it by 24 hours where their rows divide by 8,760;
- charge periods of the second and third generic purchase end in the 30th hour of a day.

Scenario 4 of generic usage has no list price; it is taken as half more than the committed price, as
in all others.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path

import pytest

import price_plans as plans
from epochcost.cost.bill import quote
from epochcost.cost.break_even import Rent, monthly_rented
from epochcost.cost.lines import Quote, Usage
from epochcost.specs.price import Price
from epochcost.specs.terms import Commitment

ZERO, CENT = Decimal(0), Decimal("0.01")
HOURS_OF_YEAR, HOURS_OF_MONTH = Decimal(8760), Decimal(730)
PAID = ("upfront, by the hour", "commitment")


@dataclass(frozen=True)
class Scenario:
    """A plan and the costs of its rows; ``recurring`` pays for ``recurring_hours``."""

    name: str
    upfront: Decimal
    recurring: Decimal
    recurring_hours: Decimal
    hour: Decimal
    list_hour: Decimal
    used_hours: Decimal
    used: Decimal
    unused_hours: Decimal
    unused: Decimal
    above_hours: Decimal
    above: Decimal

    @property
    def price(self) -> Price:
        """The price plan, with the used share of the hours as utilisation."""
        hourly = self.recurring / self.recurring_hours if self.recurring else ZERO
        payment = "partial-upfront" if self.upfront and hourly else "all-upfront"
        hours = self.used_hours + self.unused_hours
        terms = Commitment(
            term_months=Decimal(12),
            payment=payment if self.upfront else "no-upfront",
            upfront=self.upfront,
            hourly=hourly,
            utilisation=self.used_hours / hours if self.used_hours else Decimal(1),
            on_demand_hourly=self.list_hour or None,
        )
        return plans.plan(plan="savings-plan", commitment=terms, billing="prorated")

    def bill(self, hours: Decimal, count: int = 1) -> Quote:
        """The bill of some hours on machines at once."""
        return quote(self.price, Usage(hours * 3600, count=count))


def scenarios() -> list[Scenario]:
    """All scenarios of the table; an empty cell means 0."""
    text = Path(__file__).with_name("focus_commitments.csv").read_text("utf-8")
    _, *rows = csv.reader(text.splitlines())
    return [Scenario(name, *(Decimal(cell or 0) for cell in cells)) for name, _, *cells in rows]


SCENARIOS = scenarios()


def amount(bill: Quote, *labels: str) -> Decimal:
    """The sum of the lines with these labels."""
    return sum((line.amount for line in bill.lines if line.label in labels), ZERO)


def agrees(ours: Decimal, theirs: Decimal, hours: Decimal) -> bool:
    """Whether two sums differ by no more than the rounding of so many hours."""
    return abs(ours - theirs) <= CENT / 2 * max(hours, Decimal(1))


def test_all_scenarios_are_there() -> None:
    """The table has 53 scenarios, all with different names."""
    assert len({scenario.name for scenario in SCENARIOS}) == len(SCENARIOS) == 53


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)
def test_an_hour_costs_its_published_cent(scenario: Scenario) -> None:
    """Upfront and recurring purchase by the hour sum to the published effective cost."""
    hour = amount(scenario.bill(Decimal(1)), *PAID)
    assert round(hour, 2) == scenario.hour


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)
def test_used_and_unused_hours_cost_as_published(scenario: Scenario) -> None:
    """The bill of used hours has the cost of unused hours. An unused plan costs its month."""
    used, unused = scenario.used_hours, scenario.unused_hours
    if used:
        bill = scenario.bill(used)
        assert agrees(amount(bill, *PAID), scenario.used, used)
        assert agrees(amount(bill, "commitment, idle hours"), scenario.unused, unused)
    else:
        month = monthly_rented(Rent(scenario.price)).at(ZERO)
        assert agrees(month / HOURS_OF_MONTH * unused, scenario.unused, unused)


@pytest.mark.parametrize(
    "scenario",
    [scenario for scenario in SCENARIOS if scenario.above_hours],
    ids=lambda scenario: scenario.name,
)
def test_usage_above_costs_the_list_price(scenario: Scenario) -> None:
    """The second of two machines is above the commitment and costs the list price."""
    bill = scenario.bill(scenario.above_hours, count=2)
    assert round(amount(bill, "on demand, above the commitment"), 2) == scenario.above
    assert amount(bill, *PAID) == amount(scenario.bill(scenario.above_hours), *PAID)


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)
def test_a_term_costs_its_purchases(scenario: Scenario) -> None:
    """The bill of a fully used term equals the payments, line by line."""
    terms = scenario.price.commitment
    assert terms is not None
    year = scenario.bill(HOURS_OF_YEAR)
    assert round(amount(year, "upfront, by the hour"), 2) == scenario.upfront
    assert agrees(amount(year, "commitment"), terms.hourly * HOURS_OF_YEAR, Decimal(1))
    period = scenario.bill(scenario.recurring_hours or Decimal(1))
    assert round(amount(period, "commitment"), 2) == scenario.recurring
