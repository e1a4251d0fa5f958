"""A dot plot of amounts by category, sorted as given: prices per hour, costs by machine."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from epochcost.analysis.rows import Row
from epochcost.cost import Estimate, Time, Usage, share
from epochcost.errors import InputError
from epochcost.report.charts import axes, theme
from epochcost.report.charts.figure import (
    BATCH,
    MACHINE,
    MARK,
    PLAN,
    Colours,
    Figure,
    ends,
    interval_columns,
    interval_values,
    machine_name,
    priced,
    symbol,
    used,
)
from epochcost.report.escape import one_line
from epochcost.report.tables import Column, Table
from epochcost.specs.price import Price
from epochcost.units import SECONDS_PER_HOUR

_LINE_HEIGHT = 14
_ROW_GAP = 14


@dataclass(frozen=True, slots=True)
class Dot:
    """One row of the plot; ``value`` is (low, mean, high) in the chart's currency.

    A line break in the label breaks its line.
    """

    label: str
    machine: str
    mark: str
    value: tuple[float, float, float]


@dataclass(frozen=True)
class Dots:
    """The chart's input; ``title`` is the horizontal axis."""

    title: str
    currency_symbol: str
    dots: tuple[Dot, ...]
    colours: tuple[tuple[str, int], ...]

    def spec(self) -> dict[str, Any]:
        """One row per dot over a logarithmic axis of amounts."""
        import altair as alt  # noqa: PLC0415  a cached drawing needs no Altair

        lines = max(dot.label.count("\n") + 1 for dot in self.dots)
        height = (_LINE_HEIGHT * lines + _ROW_GAP) * len({dot.label for dot in self.dots})
        layers = _layers(alt, self)
        return theme.finished(layers, height, f"{self.title}, by machine.")


def _layers(alt: Any, chart: Dots) -> list[Any]:
    data = alt.Data(values=[_datum(dot) for dot in chart.dots])
    machines = theme.series_scale(dict(chart.colours), (dot.machine for dot in chart.dots))
    shapes = theme.mark_scale(dot.mark for dot in chart.dots)
    order = list(dict.fromkeys(dot.label for dot in chart.dots))
    domain = axes.log_domain(value for dot in chart.dots for value in axes.drawn(dot.value))
    y = alt.Y("label:N", sort=order, title=None, axis=_labels(alt))
    x = alt.X(
        "value:Q",
        scale=alt.Scale(type="log", domain=domain, nice=False),
        axis=alt.Axis(
            values=axes.log_ticks(domain), labelExpr=axes.money_label(chart.currency_symbol)
        ),
        title=f"{chart.title} (log scale)",
    )
    colour = alt.Color("machine:N", scale=alt.Scale(**machines), legend=None)
    base = alt.Chart(data).encode(y=y, color=colour)
    return [
        base.mark_rule(strokeWidth=1.5).encode(x=alt.X("low:Q"), x2=alt.X2("high")),
        base.mark_point(size=110, strokeWidth=2).encode(
            x=x,
            shape=alt.Shape("mark:N", scale=alt.Scale(**shapes), title="figure"),
            tooltip=[alt.Tooltip("label:N"), alt.Tooltip("value:Q", format=".4~g")],
        ),
    ]


def _labels(alt: Any) -> Any:
    return alt.Axis(grid=True, labelExpr=r"split(datum.label, '\n')", labelLineHeight=_LINE_HEIGHT)


def _datum(dot: Dot) -> dict[str, Any]:
    low, value, high = axes.drawn(dot.value)
    return {
        "label": dot.label,
        "machine": dot.machine,
        "mark": dot.mark,
        "low": low,
        "value": value,
        "high": high,
    }


def workloads_compared(rows: Sequence[Row], *, identifier: str, colours: Colours) -> Figure | None:
    """What one epoch of each workload costs on one machine; None below two workloads."""
    return _compared(
        priced(rows, "epoch"),
        lambda row: one_line(row.observed.subject.name),
        identifier=identifier,
        title="cost of one epoch of training",
        by="workload",
        colours=colours,
    )


def _compared(
    found: Sequence[tuple[Row, Time, Estimate]],
    label: Callable[[Row], str],
    *,
    identifier: str,
    title: str,
    by: str,
    colours: Colours,
) -> Figure | None:
    """The cheapest of each label, cheapest first; None below two labels."""
    best: dict[str, tuple[Row, Estimate]] = {}
    for row, _, cost in sorted(found, key=lambda one: one[2].mean):
        best.setdefault(label(row), (row, cost))
    if len(best) < 2:
        return None
    dots = tuple(
        Dot(name, machine_name(row.observed), row.mark, ends(cost))
        for name, (row, cost) in best.items()
    )
    currency = found[0][2].currency
    return Figure(
        id=identifier,
        title=f"{title.capitalize()}, by {by}",
        description=f"Each {by} at its cheapest current plan and batch size; bars are intervals.",
        chart=Dots(title, symbol(currency), dots, used(colours, (dot.machine for dot in dots))),
        table=_table(by, currency, best),
    )


def _table(by: str, currency: str, best: Mapping[str, tuple[Row, Estimate]]) -> Table:
    costs = interval_columns("cost", currency, "money", "Cost")
    rows = (
        (name, row.plan, row.mark, row.observed.batch_size, *interval_values(ends(cost)))
        for name, (row, cost) in best.items()
    )
    return Table((Column(by, by.capitalize()), PLAN, MARK, BATCH, *costs), tuple(rows))


def hourly_prices(
    prices: Sequence[tuple[str, Price]], *, identifier: str, colours: Colours
) -> Figure | None:
    """The price of an hour of each machine's plans in US dollars; None below two plans."""
    found = [
        (machine, price, hour)
        for machine, price in prices
        if price.currency == "USD" and (hour := hourly(price)) is not None
    ]
    if len(found) < 2:
        return None
    found.sort(key=lambda one: one[2])
    dots = tuple(
        Dot(
            one_line(machine),
            one_line(machine),
            _plan_mark(price),
            (float(hour),) * 3,
        )
        for machine, price, hour in found
    )
    return Figure(
        id=identifier,
        title="Price of an hour, by machine",
        description="Current prices, before any billing step; each at its date in the table.",
        chart=Dots("price of one hour", "$", dots, used(colours, (dot.machine for dot in dots))),
        table=Table(
            (MACHINE, PLAN, Column("as_of", "Date"), Column("hour_USD", "One hour", "money")),
            tuple((machine, price.plan, str(price.as_of), hour) for machine, price, hour in found),
        ),
    )


def _plan_mark(price: Price) -> str:
    if price.assumed:
        return "assumed price"
    return price.plan if price.plan in {"on-demand", "spot"} else "list price"


def hourly(price: Price) -> Decimal | None:
    """What one hour of use costs; None for a plan per vCPU or per run, which has no hour here."""
    if price.owned is not None and price.owned.per_vcpu:
        return None
    return _hour(price, Usage(Decimal(SECONDS_PER_HOUR)))


def owned_hour(price: Price) -> Decimal | None:
    """What one hour of use of an owned machine costs, of one vCPU where the plan is per vCPU.

    None where the plan's figures make no amount of money.
    """
    return _hour(price, Usage(Decimal(SECONDS_PER_HOUR), vcpus=1))


def _hour(price: Price, usage: Usage) -> Decimal | None:
    try:
        return share(price, usage).total
    except InputError:
        return None
