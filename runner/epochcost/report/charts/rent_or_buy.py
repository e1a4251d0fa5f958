"""Chart the cost of a month against hours of use, for an owned machine and rented ones."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Annotated, Any, Literal

from epochcost.cost.break_even import Alternative, Comparison, MonthlyCost
from epochcost.cost.owned import HOURS_PER_CALENDAR_MONTH
from epochcost.report.charts import theme
from epochcost.report.charts.data import ChartData, PlanName, Shown, distinct
from epochcost.report.charts.figure import Figure, day_range
from epochcost.report.escape import one_line
from epochcost.specs.hardware import Hardware
from epochcost.units import symbol

_DASHES = {"bought": [1, 0], "rented": [5, 4]}
# More lines cannot be told apart: there are eight colours, one is the owned line's.
_MOST_LINES = 7
# Hours in the table, besides the crossing.
_HOURS = (*map(Decimal, range(0, 701, 100)), HOURS_PER_CALENDAR_MONTH)


@dataclass(frozen=True, slots=True)
class MonthPoint:
    """The cost of a month; at a ``point`` of "break-even", renting and buying cost the same."""

    price_plan: PlanName
    machine: Annotated[Literal["bought", "rented"], Shown("Machine")]
    point: Annotated[Literal["use", "break-even"], Shown("Point")]
    hours_per_month: Annotated[Decimal, Shown("Hours a month", "number")]
    cost_per_month: Annotated[Decimal, Shown("Cost of a month", "money")]


class RentOrBuy(Figure):
    """Chart an owned machine (solid line), rented machines (dashed) and points of equal cost."""

    def layers(self, alt: Any) -> list[Any]:
        """Lines of cost, and crosses where renting and buying cost the same, if anywhere."""
        dash = {"domain": list(_DASHES), "range": list(_DASHES.values())}
        most = float(HOURS_PER_CALENDAR_MONTH)
        label = f"'{symbol(self.data.currency)}' + format(datum.value, ',~r')"
        money = alt.Axis(labelExpr=label, tickCount=6)
        base = self.marks(alt).encode(
            x=alt.X(
                "hours_per_month:Q",
                scale=alt.Scale(domain=[0, most], nice=False),
                axis=alt.Axis(values=list(range(0, int(most) + 1, 100))),
                title="hours of use in a month",
            ),
            y=alt.Y("cost_per_month:Q", axis=money, title="cost of a month"),
            color=theme.colour_by(alt, self.data, "price_plan", legend={"symbolType": "stroke"}),
        )
        lines = (
            base.transform_filter("datum.point == 'use'")
            .mark_line(strokeWidth=2)
            .encode(strokeDash=alt.StrokeDash("machine:N", scale=dash, title="machine"))
        )
        crossings = self.data.with_tooltips(
            alt,
            base.transform_filter("datum.point == 'break-even'").mark_point(
                size=90, filled=True, opacity=1, shape=theme.CROSS
            ),
        )
        return [lines, crossings] if "break-even" in self.data.values_of("point") else [lines]


def rent_or_buy(comparison: Comparison, machines: Mapping[str, Hardware]) -> RentOrBuy:
    """Chart an owned machine and its cheapest alternatives, of which there must be one or more."""
    alternatives, bought = comparison.alternatives, comparison.owned
    whole = HOURS_PER_CALENDAR_MONTH
    drawn = sorted(alternatives, key=lambda rented: rented.month.at(whole))[:_MOST_LINES]
    rents = [rented.rent.price for rented in drawn]
    owned, *rented_names = (one_line(machines[plan.hardware].name) for plan in (bought, *rents))
    plans = [*zip(rented_names, rents, strict=True)]
    # Short, because legends are narrow.
    names = distinct(
        [f"{name.partition(' (')[0]}, {price.plan}" for name, price in plans],
        [
            ", ".join(filter(None, (name, price.plan_text, price.region, price.sku)))
            for name, price in plans
        ],
    )
    points = [*_line(owned, "bought", comparison.month)]
    for rented, name in zip(drawn, map(one_line, names), strict=True):
        points += _line(name, "rented", rented.month)
        if (hours := rented.crossing.hours) is not None:
            cost = rented.month.at(hours)
            tenth = hours.quantize(Decimal("0.1"))
            points.append(MonthPoint(name, "rented", "break-even", tenth, cost))
    return RentOrBuy(
        id=f"rent-or-buy-{bought.id}",
        title=(
            f"{owned} costs less than {rented_names[0]}, {rents[0].plan_text}, "
            f"{drawn[0].crossing.phrase}"
        ),
        description=_description(drawn, len(alternatives) - len(drawn)),
        data=ChartData(tuple(points), bought.currency),
        source=f"Prices of {day_range(plan.as_of for plan in (bought, *rents))}",
    )


def _line(
    plan: str, machine: Literal["bought", "rented"], month: MonthlyCost
) -> Iterator[MonthPoint]:
    for hours in sorted({*_HOURS, *month.bends()}):
        yield MonthPoint(plan, machine, "use", hours, month.at(hours))


def _description(drawn: Sequence[Alternative], omitted: int) -> str:
    text = "The solid line is the machine bought, dashed lines are rented ones; "
    text += "crosses mark where both cost the same"
    if all(rented.crossing.outcome != "below" for rented in drawn):
        text += ", and right of a cross buying is cheaper"
    return f"{text}.{f' The {omitted} dearest are only in the table above.' if omitted else ''}"
