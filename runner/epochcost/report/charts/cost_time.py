"""Cost against time of one job, by machine and plan, with the Pareto frontier."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from epochcost.analysis.observations import Goal
from epochcost.analysis.rows import Row, on_frontier
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
from epochcost.report.tables import Column, Table

_HEIGHT = 360


@dataclass(frozen=True, slots=True)
class Point:
    """One machine and plan: seconds and cost with their intervals (equal ends: none)."""

    machine: str
    plan: str
    mark: str
    software: str
    batch_size: int
    seconds: tuple[float, float, float]
    cost: tuple[float, float, float]
    on_frontier: bool


@dataclass(frozen=True)
class CostTime:
    """The chart's input; ``job`` is a phrase such as "full training, 20 epochs"."""

    job: str
    currency_symbol: str
    points: tuple[Point, ...]
    colours: tuple[tuple[str, int], ...]

    def spec(self) -> dict[str, Any]:
        """Points by machine (colour) and kind (shape), error bars, and the frontier as a line."""
        import altair as alt  # noqa: PLC0415  a cached drawing needs no Altair

        layers = _layers(alt, self, dict(self.colours))
        description = f"Cost against time of one {self.job}, by machine and price plan."
        return theme.finished(layers, _HEIGHT, description)


def _layers(alt: Any, chart: CostTime, colours: Mapping[str, int]) -> list[Any]:
    data = alt.Data(values=theme.as_json([_datum(point) for point in chart.points]))
    x, y = _axes(alt, chart)
    picked = alt.selection_point(name="picked", fields=["machine"], bind="legend")
    machines = theme.series_scale(colours, (point.machine for point in chart.points))
    shapes = theme.mark_scale(point.mark for point in chart.points)
    colour = alt.Color("machine:N", scale=alt.Scale(**machines), title="machine")
    opacity = theme.faded(alt, picked)
    bars = alt.Chart(data).encode(color=colour, opacity=opacity)
    return [
        _frontier(alt, data).encode(x=x, y=y),
        # Of layers with one legend the first decides whether it hears clicks.
        bars.mark_rule(strokeWidth=1.5)
        .encode(x=alt.X("seconds_low:Q"), x2=alt.X2("seconds_high"), y=y)
        .add_params(picked),
        bars.mark_rule(strokeWidth=1.5).encode(y=alt.Y("cost_low:Q"), y2=alt.Y2("cost_high"), x=x),
        alt.Chart(data)
        .mark_point(size=110, strokeWidth=2, filled=False)
        .encode(
            x=x,
            y=y,
            color=colour,
            shape=alt.Shape("mark:N", scale=alt.Scale(**shapes), title="figure"),
            opacity=opacity,
            tooltip=_tooltips(alt),
        ),
    ]


def _frontier(alt: Any, data: Any) -> Any:
    return (
        alt.Chart(data)
        .mark_line(
            interpolate="step-after", strokeDash=[5, 4], strokeWidth=1.5, color="var(--ec-soft)"
        )
        .transform_filter("datum.on_frontier")
    )


def _axes(alt: Any, chart: CostTime) -> tuple[Any, Any]:
    times = axes.log_domain(value for point in chart.points for value in axes.drawn(point.seconds))
    costs = axes.log_domain(value for point in chart.points for value in axes.drawn(point.cost))
    x = alt.X(
        "seconds:Q",
        scale=alt.Scale(type="log", domain=times, nice=False),
        axis=alt.Axis(values=axes.time_ticks(times), labelExpr=axes.SECONDS_LABEL),
        title=f"time of one {chart.job} (log scale)",
    )
    y = alt.Y(
        "cost:Q",
        scale=alt.Scale(type="log", domain=costs, nice=False),
        axis=alt.Axis(
            values=axes.log_ticks(costs), labelExpr=axes.money_label(chart.currency_symbol)
        ),
        title=f"cost of one {chart.job} (log scale)",
    )
    return x, y


def _tooltips(alt: Any) -> list[Any]:
    return [
        alt.Tooltip("machine:N"),
        alt.Tooltip("plan:N", title="price plan"),
        alt.Tooltip("mark:N", title="figure"),
        alt.Tooltip("software:N"),
        alt.Tooltip("batch_size:Q", title="batch size"),
        alt.Tooltip("seconds:Q", title="time in s", format=".4~g"),
        alt.Tooltip("cost:Q", title="cost", format=".4~g"),
    ]


def _datum(point: Point) -> dict[str, Any]:
    low, seconds, high = axes.drawn(point.seconds)
    cost_low, cost, cost_high = axes.drawn(point.cost)
    return {
        "machine": point.machine,
        "plan": point.plan,
        "mark": point.mark,
        "software": point.software,
        "batch_size": point.batch_size,
        "seconds": seconds,
        "seconds_low": low,
        "seconds_high": high,
        "cost": cost,
        "cost_low": cost_low,
        "cost_high": cost_high,
        "on_frontier": point.on_frontier,
    }


def cost_against_time(
    rows: Sequence[Row], goal: Goal, *, identifier: str, job: str, colours: Colours
) -> Figure | None:
    """Cost against time for one job of one workload; None where nothing has a price."""
    found = priced(rows, goal)
    if not found:
        return None
    frontier = on_frontier(rows, goal)
    points = tuple(
        Point(
            machine=machine_name(row.observed),
            plan=row.plan,
            mark=row.mark,
            software=row.observed.software,
            batch_size=row.observed.batch_size,
            seconds=ends(time),
            cost=ends(cost),
            on_frontier=row in frontier,
        )
        for row, time, cost in found
    )
    currency = found[0][2].currency
    chart = CostTime(
        job, symbol(currency), points, used(colours, (point.machine for point in points))
    )
    return Figure(
        id=identifier,
        title=f"Cost against time of one {job}",
        description=_words(points, job),
        chart=chart,
        table=_table(points, currency),
    )


def _words(points: Sequence[Point], job: str) -> str:
    """What the chart shows, for who cannot see it."""
    if len(points) == 1:
        return f"Only {points[0].machine} has a figure for one {job} so far."
    cheapest = min(points, key=lambda point: point.cost[1])
    fastest = min(points, key=lambda point: point.seconds[1])
    of = f"Of {len(points)} combinations of machine, plan, batch size and software"
    if cheapest is fastest:
        return f"{of}, that of {cheapest.machine} is both the cheapest and the fastest."
    return (
        f"{of}, that of {cheapest.machine} is the cheapest and that of {fastest.machine} the "
        "fastest. The dashed line is the Pareto frontier: no combination beats its corners in "
        "both time and cost."
    )


def _table(points: Sequence[Point], currency: str) -> Table:
    columns = (
        MACHINE,
        PLAN,
        MARK,
        Column("software", "Software"),
        BATCH,
        *interval_columns("time", "s", "seconds", "Time"),
        *interval_columns("cost", currency, "money", "Cost"),
        Column("on_frontier", "On frontier"),
    )
    rows = tuple(
        (
            point.machine,
            point.plan,
            point.mark,
            point.software,
            point.batch_size,
            *interval_values(point.seconds),
            *interval_values(point.cost),
            "yes" if point.on_frontier else "no",
        )
        for point in points
    )
    return Table(columns, rows)
