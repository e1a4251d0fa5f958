"""Step times over the days of measuring, each work over its own first, with what surely changed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from epochcost.analysis.history import Series, SeriesPoint
from epochcost.report.charts import axes, theme
from epochcost.report.charts.figure import Figure
from epochcost.report.escape import one_line
from epochcost.report.tables import Column, Table

_HEIGHT = 320
_SHAPES = ("circle", "square", "diamond", "triangle-up", "triangle-down", "cross")


@dataclass(frozen=True, slots=True)
class HistoryPoint:
    """One measurement; ``at`` is ISO 8601 in UTC, ``value`` (low, mean, high) over the first.

    ``step``: what lies between it and the one before is no chance.
    """

    series: str
    at: str
    value: tuple[float, float, float]
    step: bool


@dataclass(frozen=True)
class HistoryChart:
    """The chart's input: the points of every series, earliest first."""

    points: tuple[HistoryPoint, ...]

    def spec(self) -> dict[str, Any]:
        """Lines with error bars over time, a rule at 1, and rings where a step is significant."""
        import altair as alt  # noqa: PLC0415  a cached drawing needs no Altair

        layers = _layers(alt, self)
        description = "Step time over the first, by day of measuring."
        return theme.finished(layers, _HEIGHT, description, long_names=True)


def _layers(alt: Any, chart: HistoryChart) -> list[Any]:
    names = list(dict.fromkeys(point.series for point in chart.points))
    data = alt.Data(values=[_datum(point) for point in chart.points])
    scale = theme.series_scale({name: at for at, name in enumerate(names)}, names)
    shapes = [_SHAPES[at % len(_SHAPES)] for at in range(len(names))]
    domain = axes.log_domain(
        end for point in chart.points for end in (*axes.drawn(point.value), 1.0)
    )
    x = alt.X(
        "at:T",
        scale=alt.Scale(type="utc"),
        axis=alt.Axis(format="%Y-%m-%d %H:%M", tickCount=5),
        title="measured at (UTC)",
    )
    y = alt.Y(
        "value:Q",
        scale=alt.Scale(type="log", domain=domain, nice=False),
        axis=alt.Axis(values=axes.log_ticks(domain), labelExpr="format(datum.value, '~r')"),
        title="step time over the first (log scale)",
    )
    picked = alt.selection_point(name="picked", fields=["series"], bind="legend")
    colour = alt.Color("series:N", scale=alt.Scale(**scale), title="work")
    base = alt.Chart(data).encode(x=x, color=colour, opacity=theme.faded(alt, picked))
    shape = alt.Shape("series:N", scale=alt.Scale(domain=names, range=shapes), title="work")
    tips = [alt.Tooltip("series:N", title="work"), alt.Tooltip("at:T", title="measured at"),
            alt.Tooltip("value:Q", title="over the first", format=".3~g")]  # fmt: skip
    rings = (
        alt.Chart(data)
        .transform_filter("datum.step")
        .mark_point(filled=False, size=260, strokeWidth=1.5, color="var(--ec-ink)")
    )
    one = alt.Chart(alt.Data(values=[{"value": 1}]))
    return [
        one.mark_rule(strokeDash=[4, 4], color="var(--ec-soft)").encode(y=y),
        # Of layers with one legend the first decides whether it hears clicks.
        base.mark_line(strokeWidth=2).encode(y=y).add_params(picked),
        base.mark_rule(strokeWidth=1.5).encode(y=alt.Y("low:Q"), y2=alt.Y2("high")),
        base.mark_point(filled=True, size=60).encode(y=y, shape=shape, tooltip=tips),
        # A layer without data has no extent, of which Vega warns.
        *([rings.encode(x=x, y=y)] if any(point.step for point in chart.points) else ()),
    ]  # fmt: skip


def _datum(point: HistoryPoint) -> dict[str, Any]:
    low, value, high = axes.drawn(point.value)
    return {"series": point.series, "at": point.at, "low": low, "value": value, "high": high,
            "step": point.step}  # fmt: skip


# More lines than there are colours are told apart by nobody.
_MOST_LINES = 8


def moved(series: Sequence[Series], *, identifier: str) -> Figure | None:
    """Step times over the first of each series; None where nothing was measured twice."""
    again = [one for one in series if len(one.taken) > 1]
    drawn = sorted(again, key=lambda one: -one.farthest)[:_MOST_LINES]
    if not drawn:
        return None
    points = tuple(
        HistoryPoint(one_line(one.name), _at(point), _ends(point), point in one.steps)
        for one in drawn
        for point in one.points
    )
    left = len(again) - len(drawn)
    return Figure(
        id=identifier,
        title="Step time over the first measurement",
        description=(
            "Above 1 is slower than at first; bars are 95 % intervals. A ring marks a step that is "
            "significant: its interval leaves out 1, it is at least 5 %, and both sides were "
            "measured in several rounds."
            + (f" Drawn are the {_MOST_LINES} works that moved most of {len(again)}." * bool(left))
        ),
        chart=HistoryChart(points),
        table=_table(drawn),
    )


def _at(point: SeriesPoint) -> str:
    return point.at.isoformat(timespec="seconds")


def _ends(point: SeriesPoint) -> tuple[float, float, float]:
    return point.relative.low, point.relative.mean, point.relative.high


def _table(series: Sequence[Series]) -> Table:
    columns = (
        Column("work", "Work"),
        Column("measured_at", "Measured at"),
        Column("software", "Software"),
        Column("step_s", "One step", "seconds"),
        Column("over_first_low", "Over the first, lower end", "number"),
        Column("over_first", "Over the first", "number"),
        Column("over_first_high", "Over the first, upper end", "number"),
        Column("significant", "Significant step"),
    )
    rows = (
        (
            one_line(one.name),
            _at(point),
            one_line(point.software),
            point.step.mean,
            *(Decimal(f"{end:.4g}") for end in _ends(point)),
            "yes" if point in one.steps else "no",
        )
        for one in series
        for point in one.points
    )
    return Table(columns, tuple(rows))
