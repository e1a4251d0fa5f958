"""The figure of one owned machine against its rented substitutes, over the hours of a month."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal

from epochcost.cost.break_even import BreakEven, MonthlyCost, Payback, Rent
from epochcost.cost.owned import HOURS_PER_CALENDAR_MONTH
from epochcost.report.charts.figure import Figure
from epochcost.report.charts.rent_or_buy import Crossing, MonthLine, RentOrBuy
from epochcost.report.escape import one_line
from epochcost.report.figures.parts import symbol
from epochcost.report.tables import Column, Table, Value
from epochcost.specs.price import Price

# More lines than that are told apart by nobody: there are eight colours, one is the owned line's.
_MOST_LINES = 7
# The hours that the table lists beside the crossing.
_HOURS = (*map(Decimal, range(0, 701, 100)), HOURS_PER_CALENDAR_MONTH)


@dataclass(frozen=True, slots=True)
class Substitute:
    """A rented plan beside the owned one, with all answers about it."""

    rent: Rent
    name: str
    month: MonthlyCost
    crossing: BreakEven
    payback: Payback


def rent_or_buy(own: Price, month: MonthlyCost, substitutes: Sequence[Substitute]) -> Figure | None:
    """Cost of a month by hours of use, of the cheapest substitutes; None without any."""
    if not substitutes:
        return None
    whole = HOURS_PER_CALENDAR_MONTH
    drawn = sorted(substitutes, key=lambda one: one.month.at(whole))[:_MOST_LINES]
    bought = one_line(f"{own.hardware}, bought")
    lines = (
        _line(bought, month, bought=True),
        *(_line(one.name, one.month, bought=False) for one in drawn),
    )
    crossings = tuple(
        Crossing(one.name, float(one.crossing.hours), float(month.at(one.crossing.hours)))
        for one in drawn
        if one.crossing.hours is not None
    )
    return Figure(
        id=f"rent-or-buy-{own.id}",
        title="Cost of a month, by hours of use",
        description=_description(drawn, len(substitutes) - len(drawn)),
        chart=RentOrBuy(symbol(own.currency), float(HOURS_PER_CALENDAR_MONTH), lines, crossings),
        table=_table(own.currency, bought, month, drawn),
    )


def _description(drawn: Sequence[Substitute], left: int) -> str:
    text = "The solid line is the machine bought, dashed lines are rented ones; "
    text += "rings mark where both cost the same"
    if all(one.crossing.outcome != "below" for one in drawn):
        text += ", and right of a ring buying is cheaper"
    return f"{text}.{f' The {left} dearest stand in the table above only.' if left else ''}"


def _line(plan: str, month: MonthlyCost, *, bought: bool) -> MonthLine:
    unused, whole = (float(month.at(hours)) for hours in (Decimal(0), HOURS_PER_CALENDAR_MONTH))
    return MonthLine(plan, "bought" if bought else "rented", unused, whole)


def _table(currency: str, bought: str, month: MonthlyCost, drawn: Sequence[Substitute]) -> Table:
    columns = (
        Column("price_plan", "Price plan"),
        Column("machine", "Machine"),
        Column("point", "Point"),
        Column("hours_per_month", "Hours a month", "number"),
        Column(f"cost_per_month_{currency}", "Cost of a month", "money", currency=currency),
    )
    rows = [*_rows(bought, "bought", month)]
    for one in drawn:
        rows += _rows(one.name, "rented", one.month)
        if (hours := one.crossing.hours) is not None:
            rows.append((one.name, "rented", "break-even", _tenth(hours), one.month.at(hours)))
    return Table(columns, tuple(rows))


def _rows(plan: str, kind: str, month: MonthlyCost) -> Iterator[tuple[Value, ...]]:
    for hours in _HOURS:
        yield plan, kind, "use", hours, month.at(hours)


def _tenth(hours: Decimal) -> Decimal:
    return hours.quantize(Decimal("0.1"))
