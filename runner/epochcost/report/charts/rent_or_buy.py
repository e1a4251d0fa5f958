"""Cost of a month against the hours of use: one owned machine and its rented substitutes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Literal

from epochcost.cost.break_even import BreakEven, MonthlyCost, Payback, Rent
from epochcost.cost.owned import HOURS_PER_CALENDAR_MONTH
from epochcost.report.charts import theme
from epochcost.report.charts.figure import Figure, symbol
from epochcost.report.escape import one_line
from epochcost.report.tables import Column, Table, Value
from epochcost.specs.price import Price

_HEIGHT = 340
_BOUGHT, _RENTED = "bought", "rented"
_DASHES = {_BOUGHT: [1, 0], _RENTED: [5, 4]}


@dataclass(frozen=True, slots=True)
class MonthLine:
    """A plan's straight line: what a month costs without use and with the most hours."""

    plan: str
    kind: Literal["bought", "rented"]
    unused: float
    whole: float


@dataclass(frozen=True, slots=True)
class Crossing:
    """Where a rented plan costs what the owned machine does."""

    plan: str
    hours: float
    cost: float


@dataclass(frozen=True)
class RentOrBuy:
    """The chart's input; the first line is the owned machine's, ``most_hours`` those of a month."""

    currency_symbol: str
    most_hours: float
    lines: tuple[MonthLine, ...]
    crossings: tuple[Crossing, ...]

    def spec(self) -> dict[str, Any]:
        """Solid the owned line, dashed the rented ones, and a ring at each crossing."""
        import altair as alt  # noqa: PLC0415  a cached drawing needs no Altair

        layers = _layers(alt, self)
        description = "Cost of a month against hours of use: one machine bought, and rented ones."
        return theme.finished(layers, _HEIGHT, description)


def _layers(alt: Any, chart: RentOrBuy) -> list[Any]:
    names = [line.plan for line in chart.lines]
    scale = theme.series_scale({name: at for at, name in enumerate(names)}, names)
    picked = alt.selection_point(name="picked", fields=["plan"], bind="legend")
    encoded = {
        "x": _hours(alt, chart),
        "y": _cost(alt, chart),
        "color": alt.Color("plan:N", scale=alt.Scale(**scale), title="price plan"),
        "opacity": theme.faded(alt, picked),
    }
    dashes = alt.Scale(domain=[_BOUGHT, _RENTED], range=list(_DASHES.values()))
    lines = (
        alt.Chart(alt.Data(values=_line_data(chart)))
        .mark_line(strokeWidth=2)
        .encode(**encoded, strokeDash=alt.StrokeDash("kind:N", scale=dashes, title="machine"))
        .add_params(picked)
    )
    tooltip = [
        alt.Tooltip("plan:N", title="price plan"),
        alt.Tooltip("hours:Q", title="equal at hours a month", format=",.4~r"),
        alt.Tooltip("cost:Q", title="cost of a month", format=",.4~r"),
    ]
    rings = (
        alt.Chart(alt.Data(values=_crossing_data(chart)))
        .mark_point(size=130, strokeWidth=2.5, shape="circle", fill="var(--ec-paper)")
        .encode(**encoded, tooltip=tooltip)
    )
    return [lines, rings]


def _hours(alt: Any, chart: RentOrBuy) -> Any:
    ticks = list(range(0, int(chart.most_hours) + 1, 100))
    return alt.X(
        "hours:Q",
        scale=alt.Scale(domain=[0, chart.most_hours], nice=False),
        axis=alt.Axis(values=ticks),
        title="hours of use in a month",
    )


def _cost(alt: Any, chart: RentOrBuy) -> Any:
    label = f"'{chart.currency_symbol}' + format(datum.value, ',~r')"
    axis = alt.Axis(labelExpr=label, tickCount=6)
    return alt.Y("cost:Q", scale=alt.Scale(zero=True), axis=axis, title="cost of a month")


def _line_data(chart: RentOrBuy) -> list[dict[str, Any]]:
    return [
        {"plan": line.plan, "kind": line.kind, "hours": hours, "cost": cost}
        for line in chart.lines
        for hours, cost in ((0, line.unused), (chart.most_hours, line.whole))
    ]


def _crossing_data(chart: RentOrBuy) -> list[dict[str, Any]]:
    return [{"plan": one.plan, "hours": one.hours, "cost": one.cost} for one in chart.crossings]


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
