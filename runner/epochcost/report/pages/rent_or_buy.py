"""The page "Rent or buy": each owned machine against the rented ones that can do its work."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal

from epochcost.cost.break_even import (
    MonthlyCost,
    Substitutes,
    break_even,
    monthly_owned,
    monthly_rented,
    payback,
)
from epochcost.cost.owned import HOURS_PER_CALENDAR_MONTH
from epochcost.report.charts.rent_or_buy import Substitute, rent_or_buy
from epochcost.report.escape import one_line
from epochcost.report.pages.page import Page, Report
from epochcost.specs.price import Price


@dataclass(frozen=True)
class OwnedMachine:
    """One owned machine, ``hours`` of use that its plan assumes, and all that can replace it."""

    own: Price
    hours: Decimal
    month: MonthlyCost
    answers: tuple[Substitute, ...]


def pages(report: Report) -> Iterator[Page]:
    """The one page."""
    bought = [price for price in report.catalogue.prices.values() if price.owned]
    whole = [price for price in bought if price.owned and not price.owned.per_vcpu]
    compared = [_comparison(report, price) for price in whole]
    found = [one for one in compared if one.answers]
    yield Page(
        uri="rent-or-buy.md",
        title="Rent or buy",
        template="rent_or_buy.md.jinja",
        description="After how many hours of use a month buying a machine beats renting one.",
        context={
            "comparisons": found,
            "machines": report.catalogue.hardware,
            "alone": [price for price in bought if price not in [one.own for one in found]],
        },
        figures={one.own.id: rent_or_buy(one.own, one.month, one.answers) for one in found},
    )


def _comparison(report: Report, own: Price) -> OwnedMachine:
    """The answers, cheapest first at the hours of use that the owned plan assumes."""
    assert own.owned is not None, "asked for an owned plan"
    hours = HOURS_PER_CALENDAR_MONTH * own.owned.utilisation
    found = sorted(_substitutes(report, own, hours), key=lambda one: one.month.at(hours))
    return OwnedMachine(own, hours, monthly_owned(own), tuple(found))


def _substitutes(report: Report, own: Price, hours: Decimal) -> Iterator[Substitute]:
    results = [stored.result for stored in report.inputs.stored]
    rents = list(Substitutes(report.catalogue, own, results).rents())
    names = Counter(_name(rent.price) for rent in rents)
    for rent in rents:
        name = _name(rent.price)
        yield Substitute(
            rent,
            one_line(name if names[name] == 1 else f"{name}, {rent.price.region}"),
            monthly_rented(rent),
            break_even(own, rent),
            payback(own, rent, hours),
        )


def _name(price: Price) -> str:
    """What the chart calls a plan: legends are narrow."""
    return f"{price.hardware}, {price.plan}"
