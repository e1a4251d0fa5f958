"""How many times as fast a work is on more vCPUs, beside the line of equal efficiency."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import partial
from typing import Any

from epochcost.analysis.comparisons import Scaling, VcpuPoint
from epochcost.report.charts import axes, theme
from epochcost.report.charts.figure import Figure
from epochcost.report.escape import one_line
from epochcost.report.tables import Column, Table

_HEIGHT = 320
# The factor between neighbouring series on the axis of vCPUs.
_ASIDE = 1.012
# How many times its mean the end of a bar may be.
_MOST_DRAWN = 3
_IDEAL = "each vCPU as good as the first"
# Lines are told apart by their points too, so that colour is never the only difference.
_SHAPES = ("circle", "square", "diamond", "triangle-up", "triangle-down", "cross")


@dataclass(frozen=True, slots=True)
class ScalingPoint:
    """One count of vCPUs of one series; ``value`` is (low, mean, high) of the speed-up."""

    series: str
    vcpus: int
    value: tuple[float, float, float]


@dataclass(frozen=True)
class ScalingChart:
    """The chart's input: points of every series, the fewest vCPUs of each at a speed-up of 1."""

    points: tuple[ScalingPoint, ...]

    def spec(self) -> dict[str, Any]:
        """Lines with points and error bars over a logarithmic axis of vCPUs, and the ideal."""
        import altair as alt  # noqa: PLC0415  a cached drawing needs no Altair

        layers = _layers(alt, self)
        return theme.finished(layers, _HEIGHT, "Speed-up against vCPUs.")


def _layers(alt: Any, chart: ScalingChart) -> list[Any]:
    names = list(dict.fromkeys(point.series for point in chart.points))
    data = alt.Data(values=[_datum(point, _aside(names, point)) for point in chart.points])
    colours = theme.series_scale({name: at for at, name in enumerate(names)}, names)
    shapes = [_SHAPES[at % len(_SHAPES)] for at in range(len(names))]
    x, y = _axes(alt, chart)
    base = alt.Chart(data).encode(
        x=x("at:Q"), color=alt.Color("series:N", scale=alt.Scale(**colours), title="work")
    )
    marks = base.mark_point(filled=True, size=60).encode(
        y=y,
        shape=alt.Shape("series:N", scale=alt.Scale(domain=names, range=shapes), title="work"),
        tooltip=[
            alt.Tooltip("series:N", title="work"),
            alt.Tooltip("vcpus:Q", title="vCPUs"),
            alt.Tooltip("value:Q", title="times as fast", format=".3~g"),
        ],
    )
    return [
        *_ideal(alt, chart, x, y),
        base.mark_line(strokeWidth=2).encode(y=y),
        base.mark_rule(strokeWidth=1.5).encode(y=alt.Y("low:Q"), y2=alt.Y2("high")),
        marks,
    ]


def _ideal(alt: Any, chart: ScalingChart, x: Any, y: Any) -> list[Any]:
    """A dashed line from the fewest vCPUs to the most, named at its end."""
    counts = [point.vcpus for point in chart.points]
    few, many = min(counts), max(counts)
    ends: list[dict[str, Any]] = [
        {"vcpus": few, "value": 1},
        {"vcpus": many, "value": many / few},
    ]
    line = alt.Chart(alt.Data(values=ends)).encode(x=x("vcpus:Q"), y=y)
    end = alt.Chart(alt.Data(values=[ends[1] | {"words": _IDEAL}])).encode(x=x("vcpus:Q"), y=y)
    soft = "var(--ec-soft)"
    return [
        line.mark_line(strokeDash=[4, 4], strokeWidth=1.5, color=soft),
        end.mark_text(align="right", dx=-8, dy=-8, fontSize=12, color=soft).encode(
            text=alt.Text("words:N")
        ),
    ]


def _axes(alt: Any, chart: ScalingChart) -> tuple[Any, Any]:
    counts = sorted({point.vcpus for point in chart.points})
    ideal = counts[-1] / counts[0]
    domain = _domain([*(end for point in chart.points for end in _ends(point)), 1.0, ideal])
    x = partial(
        alt.X,
        scale=alt.Scale(type="log", domain=(counts[0] / 1.1, counts[-1] * 1.1), nice=False),
        axis=alt.Axis(values=counts, labelExpr=axes.COUNT_LABEL),
        title="vCPUs that the trial was pinned to (log scale)",
    )
    y = alt.Y(
        "value:Q",
        scale=alt.Scale(type="log", domain=domain, nice=False),
        axis=alt.Axis(values=axes.log_ticks(domain), labelExpr="format(datum.value, '~r')"),
        title="times as fast as on the fewest (log scale)",
    )
    return x, y


def _domain(values: list[float]) -> tuple[float, float]:
    return min(values) / 1.1, max(values) * 1.15


def _ends(point: ScalingPoint) -> tuple[float, float, float]:
    """The interval, cut where a few scattered samples would shrink all others to a line."""
    low, mean, high = point.value
    return max(low, mean / _MOST_DRAWN), mean, min(high, mean * _MOST_DRAWN)


def _aside(names: list[str], point: ScalingPoint) -> float:
    """Where the point is drawn: beside those of other series, so that no bar hides another."""
    middle = (len(names) - 1) / 2
    return float(point.vcpus * _ASIDE ** (names.index(point.series) - middle))


def _datum(point: ScalingPoint, at: float) -> dict[str, Any]:
    low, value, high = _ends(point)
    return {
        "series": point.series,
        "vcpus": point.vcpus,
        "at": at,
        "low": low,
        "value": value,
        "high": high,
    }


def speedup_by_vcpus(scalings: Sequence[Scaling], *, identifier: str) -> Figure | None:
    """The speed-up of each work over the fewest vCPUs; None where nothing was scaled."""
    machines = {found.machine for found in scalings}
    series = [(_name(found, len(machines) > 1), found) for found in scalings]
    if not series:
        return None
    points = tuple(
        ScalingPoint(name, point.vcpus, (point.speedup.low, point.speedup.mean, point.speedup.high))
        for name, found in series
        for point in found.points
    )
    rows = ((name, point) for name, found in series for point in found.points)
    return Figure(
        id=identifier,
        title="vCPUs against speed",
        description=(
            "How many times as fast a step is as on the fewest vCPUs; bars are 95 % intervals. "
            "Where a line stays below the dashed one, the larger instance costs more for each job "
            "at a price in proportion to vCPUs."
        ),
        chart=ScalingChart(points),
        table=_table(rows),
    )


def _name(found: Scaling, with_machine: bool) -> str:
    work = f"{found.mode}, batch {found.batch_size}"
    return f"{one_line(found.machine.name)}: {work}" if with_machine else work


def _table(rows: Iterable[tuple[str, VcpuPoint]]) -> Table:
    columns = (
        Column("work", "Work"),
        Column("vcpus", "vCPUs", "number"),
        Column("speedup_low", "Times as fast, lower end", "number"),
        Column("speedup", "Times as fast", "number"),
        Column("speedup_high", "Times as fast, upper end", "number"),
        Column("efficiency", "Efficiency", "number"),
        Column("relative_cost", "Cost over that of the fewest", "number"),
    )
    return Table(columns, tuple(_row(name, point) for name, point in rows))


def _row(name: str, point: VcpuPoint) -> tuple[str | int | Decimal, ...]:
    faster, cost = point.speedup, point.relative_cost
    figures = (faster.low, faster.mean, faster.high, point.efficiency, cost.mean)
    return (name, point.vcpus, *(Decimal(f"{figure:.4g}") for figure in figures))
