"""The price of an hour over the dates at which it was read, a line for each plan."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from epochcost.report.charts import axes, theme
from epochcost.report.charts.dots import hourly
from epochcost.report.charts.figure import MACHINE, PLAN, Figure, symbol
from epochcost.report.charts.palette import LIGHT_SERIES
from epochcost.report.escape import one_line
from epochcost.report.tables import Column, Table
from epochcost.specs.price import Price

_HEIGHT = 320
# Of the first, the second and the third eight lines: colours repeat, dashes do not.
_DASHES = ([1, 0], [7, 3], [2, 3], [9, 3, 2, 3])


@dataclass(frozen=True, slots=True)
class DatedPrice:
    """What an hour costs under a plan at a date (ISO 8601)."""

    plan: str
    date: str
    hour: float


@dataclass(frozen=True)
class PriceHistory:
    """The chart's input; ``plans`` are those of the prices, in the order of the legend."""

    currency_symbol: str
    plans: tuple[str, ...]
    prices: tuple[DatedPrice, ...]

    def spec(self) -> dict[str, Any]:
        """Steps from date to date: a price holds until another is read."""
        import altair as alt  # noqa: PLC0415  a cached drawing needs no Altair

        layers = _layers(alt, self)
        return theme.finished(layers, _HEIGHT, "Price of one hour over its dates, by plan.")


def _layers(alt: Any, chart: PriceHistory) -> list[Any]:
    data = alt.Data(
        values=[{"plan": one.plan, "date": one.date, "hour": one.hour} for one in chart.prices]
    )
    colours = theme.series_scale({plan: at for at, plan in enumerate(chart.plans)}, chart.plans)
    picked = alt.selection_point(name="picked", fields=["plan"], bind="legend")
    legend = alt.Legend(symbolType="stroke", symbolSize=250)
    base = alt.Chart(data).encode(
        x=alt.X("date:T", title="date of the price", axis=alt.Axis(format="%Y", tickCount="year")),
        y=_hours(alt, chart),
        color=alt.Color("plan:N", scale=alt.Scale(**colours), title="plan", legend=legend),
        opacity=theme.faded(alt, picked),
    )
    dashes = alt.Scale(domain=colours["domain"], range=_dashes(chart.plans, colours["domain"]))
    tips = [
        alt.Tooltip("plan:N"),
        alt.Tooltip("date:T", format="%Y-%m-%d"),
        alt.Tooltip("hour:Q", title="one hour", format=".4~g"),
    ]
    return [
        base.mark_line(interpolate="step-after", strokeWidth=2)
        .encode(strokeDash=alt.StrokeDash("plan:N", scale=dashes, title="plan", legend=legend))
        .add_params(picked),
        base.mark_point(size=60, filled=True).encode(tooltip=tips),
    ]


def _dashes(plans: tuple[str, ...], ordered: list[str]) -> list[list[int]]:
    return [_DASHES[plans.index(plan) // len(LIGHT_SERIES) % len(_DASHES)] for plan in ordered]


def _hours(alt: Any, chart: PriceHistory) -> Any:
    domain = axes.log_domain(one.hour for one in chart.prices)
    label = axes.money_label(chart.currency_symbol)
    return alt.Y(
        "hour:Q",
        scale=alt.Scale(type="log", domain=domain, nice=False),
        axis=alt.Axis(values=axes.log_ticks(domain), labelExpr=label),
        title="price of one hour (log scale)",
    )


_CURRENCY = "USD"


def price_history(prices: Sequence[tuple[str, Price]], *, identifier: str) -> Figure | None:
    """Each plan that has a price at two dates or more, by (machine's name, price); else None."""
    found = _dated(prices)
    if not found:
        return None
    latest = {plan: dated[-1][2] for plan, dated in found.items()}
    plans = tuple(sorted(found, key=lambda plan: (-latest[plan], plan)))
    chart = PriceHistory(
        symbol(_CURRENCY),
        plans,
        tuple(
            DatedPrice(plan, f"{price.as_of}", float(hour))
            for plan in plans
            for _, price, hour in found[plan]
        ),
    )
    return Figure(
        id=identifier,
        title="Price of an hour over time",
        description=_words(found),
        chart=chart,
        table=_table([one for plan in plans for one in found[plan]]),
    )


def _dated(
    prices: Sequence[tuple[str, Price]],
) -> dict[str, list[tuple[str, Price, Decimal]]]:
    """By plan its prices in US dollars at two dates or more, the earliest first."""
    groups: defaultdict[str, list[tuple[str, Price, Decimal]]] = defaultdict(list)
    for machine, price in prices:
        hour = hourly(price) if price.currency == _CURRENCY else None
        if hour is not None:
            groups[f"{one_line(machine)}, {price.plan}"].append((one_line(machine), price, hour))
    return {
        plan: sorted(dated, key=lambda one: (one[1].as_of, one[1].id))
        for plan, dated in groups.items()
        if len({price.as_of for _, price, _ in dated}) > 1
    }


def _words(found: dict[str, list[tuple[str, Price, Decimal]]]) -> str:
    """What changed, for who cannot see it."""
    ends = [(dated[0][2], dated[-1][2]) for dated in found.values()]
    fell = sum(last < first for first, last in ends)
    rose = sum(last > first for first, last in ends)
    return (
        f"From the first date to the last {fell} of {len(ends)} plans became cheaper, {rose} "
        f"dearer and {len(ends) - fell - rose} neither. A point is a date at which a source states "
        "the price; between two of them it may have moved."
    )


def _table(dated: Sequence[tuple[str, Price, Decimal]]) -> Table:
    columns = (MACHINE, PLAN, Column("region", "Region"), Column("as_of", "Date"))
    hour = Column(f"hour_{_CURRENCY}", "One hour", "money", currency=_CURRENCY)
    return Table(
        (*columns, hour),
        tuple((name, one.plan, one.region, str(one.as_of), cost) for name, one, cost in dated),
    )
