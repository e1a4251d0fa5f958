"""The price of an hour over its dates, by plan."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Annotated, Any

from epochcost.report.charts import axes, theme
from epochcost.report.charts.data import ChartData, MachineName, PlanName, Shown
from epochcost.report.charts.figure import Chart, Figure
from epochcost.report.charts.theme import LIGHT_SERIES
from epochcost.report.escape import one_line
from epochcost.report.list_prices import hourly
from epochcost.specs.price import Price

# Of the first, the second and the third eight lines: colours repeat, dashes do not.
_DASHES = ([1, 0], [7, 3], [2, 3], [9, 3, 2, 3])
_CURRENCY = "USD"


@dataclass(frozen=True, slots=True)
class DatedPrice:
    """The price of an hour at a date (ISO 8601) under a plan, whose line is named ``plan``."""

    machine: MachineName
    price_plan: PlanName
    region: Annotated[str | None, Shown("Region")]
    as_of: Annotated[str, Shown("Date", "date")]
    hour: Annotated[Decimal, Shown("One hour", "money")]
    plan: Annotated[str, Shown("Plan", place="chart")]


@dataclass(frozen=True)
class PriceHistory(Chart[DatedPrice]):
    """Steps from date to date, for a price holds until another is read."""

    summary = "Price of one hour over its dates, by plan."
    picks = "plan"

    def layers(self, alt: Any) -> list[Any]:
        """Lines by plan (colour and dash), the first of the legend first, and points."""
        legend = alt.Legend(symbolType="stroke", symbolSize=250)
        plans = list(dict.fromkeys(self.data.values_of("plan")))
        dashes = [_DASHES[at // len(LIGHT_SERIES) % len(_DASHES)] for at in range(len(plans))]
        dash = alt.StrokeDash(
            "plan:N", scale={"domain": plans, "range": dashes}, title="plan", legend=legend
        )
        base = self.marks(alt).encode(
            x=alt.X(
                "as_of:T", title="date of the price", axis=alt.Axis(format="%Y", tickCount="year")
            ),
            y=axes.log_axis(alt.Y, self.data, "hour", "price of one hour"),
            color=theme.colour_by(alt, self.data, "plan", legend=legend),
        )
        return [
            base.mark_line(interpolate="step-after", strokeWidth=2).encode(strokeDash=dash),
            base.mark_point(size=60, filled=True).encode(tooltip=self.data.tooltips(alt)),
        ]


def price_history(prices: Sequence[tuple[str, Price]], *, identifier: str) -> Figure | None:
    """Each plan that has a price at two dates or more, by (machine's name, price); else None."""
    by_plan = _dated(prices)
    if not by_plan:
        return None
    plans = sorted(by_plan, key=lambda plan: (-by_plan[plan][-1].hour, plan))
    points = tuple(point for plan in plans for point in by_plan[plan])
    return Figure(
        id=identifier,
        title="Price of an hour over time",
        description=_change_words(by_plan),
        chart=PriceHistory(ChartData(points, _CURRENCY)),
    )


def _dated(prices: Sequence[tuple[str, Price]]) -> Mapping[str, list[DatedPrice]]:
    """Prices in US dollars of the plans with two dates or more, the earliest first."""
    groups: defaultdict[str, list[DatedPrice]] = defaultdict(list)
    for machine, price in sorted(
        prices, key=lambda dated_price: (dated_price[1].as_of, dated_price[1].id)
    ):
        hour = hourly(price) if price.currency == _CURRENCY else None
        if hour is not None:
            name = one_line(machine)
            plan = f"{name}, {price.plan}"
            groups[plan].append(
                DatedPrice(name, price.plan, price.region, str(price.as_of), hour, plan)
            )
    return {
        plan: dated
        for plan, dated in groups.items()
        if len({dated_price.as_of for dated_price in dated}) > 1
    }


def _change_words(by_plan: Mapping[str, list[DatedPrice]]) -> str:
    """A description of the changes for readers who cannot see the chart."""
    ends = [(dated[0].hour, dated[-1].hour) for dated in by_plan.values()]
    fell = sum(last < first for first, last in ends)
    rose = sum(last > first for first, last in ends)
    return (
        f"{fell or 'None'} of {len(ends)} plans got cheaper, {rose or 'none'} dearer. A point "
        "is a date at which a source states the price; between two points it may have changed."
    )
