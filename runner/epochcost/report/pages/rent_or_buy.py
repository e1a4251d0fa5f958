"""The page "Rent or buy": each owned machine against the rented ones that can do its work."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal

from epochcost.cost.break_even import (
    Substitutes,
    break_even,
    buying_words,
    monthly_owned,
    monthly_rented,
    payback,
    payback_words,
)
from epochcost.cost.owned import HOURS_PER_CALENDAR_MONTH
from epochcost.report.charts.figure import Figure
from epochcost.report.charts.rent_or_buy import Substitute, rent_or_buy
from epochcost.report.escape import one_line
from epochcost.report.pages.page import Page, Report
from epochcost.specs.hardware import Hardware
from epochcost.specs.price import Price
from epochcost.units import money


@dataclass(frozen=True)
class RentedPlan:
    """One rented plan against the owned machine, in words."""

    price: Price
    hardware: Hardware
    why: str
    hour: str
    buying: str
    month: str
    payback: str


@dataclass(frozen=True)
class OwnedMachine:
    """One owned machine, ``hours`` of use that its plan assumes, and all that can replace it."""

    own: Price
    hardware: Hardware
    hours: Decimal
    unused: str
    hour: str
    month: str
    answers: tuple[RentedPlan, ...]
    figure: Figure | None


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
            "alone": [price for price in bought if price not in [one.own for one in found]],
        },
        figures={one.own.id: one.figure for one in found},
    )


def _comparison(report: Report, own: Price) -> OwnedMachine:
    """The answers, cheapest first at the hours of use that the owned plan assumes."""
    assert own.owned is not None, "asked for an owned plan"
    hardware, month = report.catalogue.machine(own.hardware), monthly_owned(own)
    hours = HOURS_PER_CALENDAR_MONTH * own.owned.utilisation
    found = sorted(_substitutes(report, own, hours), key=lambda one: one.month.at(hours))
    return OwnedMachine(
        own,
        hardware,
        hours,
        money(month.at(Decimal(0)), own.currency),
        money(month.per_hour, own.currency),
        money(month.at(hours), own.currency),
        tuple(_answer(report, one, hours) for one in found),
        rent_or_buy(own, month, found),
    )


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


def _answer(report: Report, one: Substitute, hours: Decimal) -> RentedPlan:
    price = one.rent.price
    return RentedPlan(
        price,
        report.catalogue.machine(price.hardware),
        one.rent.why,
        money(one.month.per_hour, price.currency),
        buying_words(one.crossing),
        money(one.month.at(hours), price.currency),
        payback_words(one.payback),
    )
