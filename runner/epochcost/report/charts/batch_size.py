"""Batch size against a quantity (time, cost, rate, memory), one line per series and mode."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from epochcost.analysis.observations import Observation
from epochcost.analysis.rows import Row
from epochcost.cost import Estimate
from epochcost.report.charts import axes, theme
from epochcost.report.charts.figure import (
    BATCH,
    Colours,
    Figure,
    ends,
    interval_columns,
    interval_values,
    machine_name,
    symbol,
    used,
)
from epochcost.report.charts.palette import LIGHT_SERIES
from epochcost.report.escape import one_line
from epochcost.report.tables import Column, Form, Table
from epochcost.report.wording import counted

_HEIGHT = 300
_INK = "var(--ec-ink)"
_DASHES = {"training": [1, 0], "inference": [5, 4]}


@dataclass(frozen=True, slots=True)
class BatchPoint:
    """One batch size of one series; ``value`` is (low, mean, high) in the chart's quantity."""

    series: str
    mode: str
    batch_size: int
    value: tuple[float, float, float]


@dataclass(frozen=True, slots=True)
class SweepEnd:
    """The last point of a sweep, at ``value``, and in a few words what ended it."""

    series: str
    mode: str
    batch_size: int
    value: float
    words: str


@dataclass(frozen=True)
class BatchSize:
    """The chart's input; ``title`` is the vertical axis, ``by`` what a series is.

    A ``paired`` one stands beside another.
    """

    title: str
    by: str
    quantity: Literal["seconds", "money", "rate", "bytes"]
    currency_symbol: str
    points: tuple[BatchPoint, ...]
    colours: tuple[tuple[str, int], ...]
    ends: tuple[SweepEnd, ...] = ()
    paired: bool = False

    def spec(self) -> dict[str, Any]:
        """Lines with points and error bars over a logarithmic axis of measured batch sizes."""
        import altair as alt  # noqa: PLC0415  a cached drawing needs no Altair

        layers = _layers(alt, self, dict(self.colours))
        description = f"Batch size against {self.title}."
        return theme.finished(layers, _HEIGHT, description, paired=self.paired)


def _layers(alt: Any, chart: BatchSize, colours: Mapping[str, int]) -> list[Any]:
    data = alt.Data(values=[_datum(point) for point in chart.points])
    picked = alt.selection_point(name="picked", fields=["series"], bind="legend")
    modes = sorted({point.mode for point in chart.points}, reverse=True)
    series = theme.series_scale(colours, (point.series for point in chart.points))
    x, y = _axes(alt, chart)
    base = alt.Chart(data).encode(
        x=x,
        color=alt.Color("series:N", scale=alt.Scale(**series), title=chart.by),
        opacity=theme.faded(alt, picked),
    )
    dash = alt.Scale(domain=modes, range=[_DASHES[mode] for mode in modes])
    return [
        # Of layers with one legend the first decides whether it hears clicks.
        base.mark_line(strokeWidth=2)
        .encode(y=y, strokeDash=alt.StrokeDash("mode:N", scale=dash, title="work"))
        .add_params(picked),
        base.mark_rule(strokeWidth=1.5).encode(y=alt.Y("low:Q"), y2=alt.Y2("high")),
        base.mark_point(filled=True, size=55).encode(y=y, tooltip=_tooltips(alt, chart.by)),
        *(_end_marks(alt, chart.ends, x, y) if chart.ends else ()),
    ]


def _end_marks(alt: Any, ends: tuple[SweepEnd, ...], x: Any, y: Any) -> list[Any]:
    """A ring around the last point of each sweep, with the reason beside it."""
    values = [
        {"series": e.series, "batch_size": e.batch_size, "value": e.value, "words": e.words}
        for e in ends
    ]
    base = alt.Chart(alt.Data(values=values)).encode(x=x, y=y)
    ring = base.mark_point(filled=False, size=190, strokeWidth=1.5, color=_INK)
    words = base.mark_text(align="right", dx=-9, dy=-11, color=_INK).encode(
        text=alt.Text("words:N")
    )
    return [ring.encode(tooltip=[alt.Tooltip("words:N", title="end of the sweep")]), words]


def _axes(alt: Any, chart: BatchSize) -> tuple[Any, Any]:
    sizes = sorted({point.batch_size for point in chart.points})
    values = axes.log_domain(value for point in chart.points for value in axes.drawn(point.value))
    label = {
        "seconds": axes.SECONDS_LABEL,
        "money": axes.money_label(chart.currency_symbol),
        "rate": axes.COUNT_LABEL,
        "bytes": axes.BYTES_LABEL,
    }[chart.quantity]
    ticks_of = {"seconds": axes.time_ticks, "bytes": axes.byte_ticks}
    ticks = ticks_of.get(chart.quantity, axes.log_ticks)(values)
    x = alt.X(
        "batch_size:Q",
        scale=alt.Scale(type="log", domain=axes.log_domain(sizes), nice=False),
        axis=alt.Axis(values=sizes, labelExpr=axes.COUNT_LABEL, labelSeparation=4),
        title="batch size in examples (log scale)",
    )
    y = alt.Y(
        "value:Q",
        scale=alt.Scale(type="log", domain=values, nice=False),
        axis=alt.Axis(values=ticks, labelExpr=label),
        title=f"{chart.title} (log scale)",
    )
    return x, y


def _tooltips(alt: Any, by: str) -> list[Any]:
    return [
        alt.Tooltip("series:N", title=by),
        alt.Tooltip("mode:N", title="work"),
        alt.Tooltip("batch_size:Q", title="batch size"),
        alt.Tooltip("value:Q", title="value", format=".4~g"),
    ]


def _datum(point: BatchPoint) -> dict[str, Any]:
    low, value, high = axes.drawn(point.value)
    return {
        "series": point.series,
        "mode": point.mode,
        "batch_size": point.batch_size,
        "low": low,
        "value": value,
        "high": high,
    }


def time_by_batch(
    observations: Sequence[Observation], *, identifier: str, colours: Colours
) -> Figure | None:
    """Measured time per example of one workload, by machine; None where nothing was measured."""
    return _time_by_batch(observations, machine_name, "machine", identifier, colours)


def time_by_batch_on_machine(
    observations: Sequence[Observation], *, identifier: str
) -> Figure | None:
    """The same of one machine, by workload: those of most batch sizes, a colour for each.

    A workload of one batch size has no line and stays in the page's tables.
    """
    timed = {(_workload(one), one.batch_size) for one in _timed(observations)}
    sizes = Counter(name for name, _ in sorted(timed))
    lines = [name for name, count in sizes.most_common(len(LIGHT_SERIES)) if count > 1]
    colours = tuple((name, at) for at, name in enumerate(sorted(lines)))
    drawn = [one for one in observations if _workload(one) in lines]
    left = len(sizes) - len(lines)
    note = f" {counted(left, 'other workload')}: in the tables below." if left else ""
    return _time_by_batch(drawn, _workload, "workload", identifier, colours, note)


def _timed(observations: Iterable[Observation]) -> list[Observation]:
    return [one for one in observations if one.kind == "measured" and one.step is not None]


def _workload(observed: Observation) -> str:
    return one_line(observed.subject.name)


def _time_by_batch(
    observations: Sequence[Observation],
    series: Callable[[Observation], str],
    by: str,
    identifier: str,
    colours: Colours,
    note: str = "",
) -> Figure | None:
    points = tuple(_time_point(series(one), one) for one in _timed(observations))
    if not points:
        return None
    drawn = used(colours, (point.series for point in points))
    paired = by == "machine"
    chart = BatchSize("time per example", by, "seconds", "", points, drawn, paired=paired)
    return Figure(
        id=identifier,
        title="Batch size against time per example",
        description=(
            "Measured mean time of a batch over the number of its examples; bars are 95 % "
            f"intervals. Lower is faster.{note}"
        ),
        chart=chart,
        table=_table(points, by, "time_per_example", "s", "seconds", "Time per example"),
    )


def cost_by_batch(rows: Sequence[Row], *, identifier: str, colours: Colours) -> Figure | None:
    """Measured cost of a million examples against batch size, at each machine's cheapest plan."""
    found = _cheapest_measured(rows)
    if not found:
        return None
    currency = found[0][1].currency
    points = tuple(
        _money_point(row, cost, row.observed) for row, cost in found if cost.currency == currency
    )
    chart = BatchSize(
        "cost of a million examples",
        "machine",
        "money",
        symbol(currency),
        points,
        used(colours, (point.series for point in points)),
        paired=True,
    )
    return Figure(
        id=identifier,
        title="Batch size against cost of a million examples",
        description=(
            "The measured times at each machine's cheapest current plan, as a share of a running "
            "machine's bill; bars are 95 % intervals of the time, carried into money."
        ),
        chart=chart,
        table=_table(points, "machine", "cost_per_million", currency, "money", "Cost of a million"),
    )


def _cheapest_measured(rows: Iterable[Row]) -> list[tuple[Row, Estimate]]:
    """The cheapest plan of each measured machine, mode and batch size: rows come cheapest first."""
    best: dict[tuple[object, ...], tuple[Row, Estimate]] = {}
    for row in rows:
        cost = row.cost(row.observed.goals[0])
        if row.current and row.observed.kind == "measured" and isinstance(cost, Estimate):
            key = (row.observed.machine, row.observed.mode, row.observed.batch_size)
            best.setdefault(key, (row, cost))
    return list(best.values())


def _money_point(row: Row, cost: Estimate, observed: Observation) -> BatchPoint:
    """The cost of a million examples: an epoch's is scaled by the examples that it covers."""
    time = observed.epoch or observed.million
    assert time is not None, "a measured observation has a time"
    assert observed.step is not None, "a measured observation has a step"
    examples = time.mean / observed.step.mean * observed.batch_size
    low, mean, high = (amount * 1_000_000 / examples for amount in (cost.low, cost.mean, cost.high))
    values = (float(low), float(mean), float(high))
    return BatchPoint(machine_name(row.observed), observed.mode, observed.batch_size, values)


def _time_point(series: str, observed: Observation) -> BatchPoint:
    assert observed.step is not None, "only what was timed has a point"
    low, mean, high = (value / observed.batch_size for value in ends(observed.step))
    return BatchPoint(series, observed.mode, observed.batch_size, (low, mean, high))


def _table(
    points: Sequence[BatchPoint], by: str, name: str, unit: str, form: Form, title: str
) -> Table:
    columns = (
        Column(by, by.capitalize()),
        Column("work", "Work"),
        BATCH,
        *interval_columns(name, unit, form, title),
    )
    rows = tuple(
        (point.series, point.mode, point.batch_size, *interval_values(point.value))
        for point in points
    )
    return Table(columns, rows)
