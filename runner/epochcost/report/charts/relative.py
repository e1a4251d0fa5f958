"""Ratios of time and of cost by machine, beside the line at 1 where both sides are equal."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from epochcost.report.charts import axes, theme

_ROW_HEIGHT = 44
_SHAPES = {"cost": "circle", "time": "triangle-up"}


@dataclass(frozen=True, slots=True)
class Ratio:
    """One quantity of one machine, ``cost`` or ``time``; ``value`` is (low, mean, high)."""

    machine: str
    quantity: str
    mark: str
    value: tuple[float, float, float]


@dataclass(frozen=True)
class RelativeChart:
    """The chart's input; ``title`` is the horizontal axis."""

    title: str
    ratios: tuple[Ratio, ...]

    def spec(self) -> dict[str, Any]:
        """A row for each machine over a logarithmic axis of ratios, with the line at 1."""
        import altair as alt  # noqa: PLC0415  a cached drawing needs no Altair

        height = _ROW_HEIGHT * len({one.machine for one in self.ratios})
        return theme.finished(_layers(alt, self), height, f"{self.title}, by machine.")


def _layers(alt: Any, chart: RelativeChart) -> list[Any]:
    data = alt.Data(values=[_datum(one) for one in chart.ratios])
    domain = axes.log_domain(end for one in chart.ratios for end in (*axes.drawn(one.value), 1.0))
    scale = alt.Scale(type="log", domain=domain, nice=False)
    ticks = sorted({*axes.log_ticks(domain), 1.0})
    x = alt.X(
        "value:Q",
        scale=scale,
        axis=alt.Axis(values=ticks, labelExpr="format(datum.value, '~r')"),
        title=f"{chart.title} (log scale)",
    )
    order = list(dict.fromkeys(one.machine for one in chart.ratios))
    y = alt.Y("machine:N", sort=order, title=None, axis=alt.Axis(grid=True))
    names = list(_SHAPES)
    colours = theme.series_scale({name: at for at, name in enumerate(names)}, names)
    colour = alt.Color("quantity:N", scale=alt.Scale(**colours), title="ratio of")
    shapes = alt.Scale(domain=names, range=list(_SHAPES.values()))
    base = alt.Chart(data).encode(y=y, color=colour)
    tips = [
        alt.Tooltip("machine:N"),
        alt.Tooltip("quantity:N", title="ratio of"),
        alt.Tooltip("value:Q", title="times the GPU's", format=".3~g"),
        alt.Tooltip("mark:N", title="figure"),
    ]
    return [
        *_break_even(alt, scale),
        base.mark_rule(strokeWidth=1.5).encode(x=alt.X("low:Q"), x2=alt.X2("high")),
        base.mark_point(size=110, strokeWidth=2).encode(
            x=x, shape=alt.Shape("quantity:N", scale=shapes, title="ratio of"), tooltip=tips
        ),
    ]


def _break_even(alt: Any, scale: Any) -> list[Any]:
    one = alt.Chart(alt.Data(values=[{"value": 1, "words": "as the GPU"}]))
    x = alt.X("value:Q", scale=scale)
    return [
        one.mark_rule(strokeDash=[4, 4], strokeWidth=1.5, color="var(--ec-ink)").encode(x=x),
        one.mark_text(align="center", dy=-7, color="var(--ec-ink)").encode(
            x=x, y=alt.value(0), text="words:N"
        ),
    ]


def _datum(one: Ratio) -> dict[str, Any]:
    low, value, high = axes.drawn(one.value)
    return {
        "machine": one.machine,
        "quantity": one.quantity,
        "mark": one.mark,
        "low": low,
        "value": value,
        "high": high,
    }
