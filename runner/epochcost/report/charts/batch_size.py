"""Batch size against a quantity (time, cost, rate, memory), one line per series and mode."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from epochcost.report.charts import axes, theme

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
