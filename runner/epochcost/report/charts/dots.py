"""A dot plot of amounts by category, sorted as given: prices per hour, costs by machine."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from epochcost.report.charts import axes, theme

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
