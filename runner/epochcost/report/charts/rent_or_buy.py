"""Cost of a month against the hours of use: one owned machine and its rented substitutes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from epochcost.report.charts import theme

_HEIGHT = 340
_BOUGHT, _RENTED = "bought", "rented"
_DASHES = {_BOUGHT: [1, 0], _RENTED: [5, 4]}


@dataclass(frozen=True, slots=True)
class MonthLine:
    """A plan's straight line: what a month costs without use and with the most hours."""

    plan: str
    kind: Literal["bought", "rented"]
    unused: float
    whole: float


@dataclass(frozen=True, slots=True)
class Crossing:
    """Where a rented plan costs what the owned machine does."""

    plan: str
    hours: float
    cost: float


@dataclass(frozen=True)
class RentOrBuy:
    """The chart's input; the first line is the owned machine's, ``most_hours`` those of a month."""

    currency_symbol: str
    most_hours: float
    lines: tuple[MonthLine, ...]
    crossings: tuple[Crossing, ...]

    def spec(self) -> dict[str, Any]:
        """Solid the owned line, dashed the rented ones, and a ring at each crossing."""
        import altair as alt  # noqa: PLC0415  a cached drawing needs no Altair

        layers = _layers(alt, self)
        description = "Cost of a month against hours of use: one machine bought, and rented ones."
        return theme.finished(layers, _HEIGHT, description)


def _layers(alt: Any, chart: RentOrBuy) -> list[Any]:
    names = [line.plan for line in chart.lines]
    scale = theme.series_scale({name: at for at, name in enumerate(names)}, names)
    picked = alt.selection_point(name="picked", fields=["plan"], bind="legend")
    encoded = {
        "x": _hours(alt, chart),
        "y": _cost(alt, chart),
        "color": alt.Color("plan:N", scale=alt.Scale(**scale), title="price plan"),
        "opacity": theme.faded(alt, picked),
    }
    dashes = alt.Scale(domain=[_BOUGHT, _RENTED], range=list(_DASHES.values()))
    lines = (
        alt.Chart(alt.Data(values=_line_data(chart)))
        .mark_line(strokeWidth=2)
        .encode(**encoded, strokeDash=alt.StrokeDash("kind:N", scale=dashes, title="machine"))
        .add_params(picked)
    )
    tooltip = [
        alt.Tooltip("plan:N", title="price plan"),
        alt.Tooltip("hours:Q", title="equal at hours a month", format=",.4~r"),
        alt.Tooltip("cost:Q", title="cost of a month", format=",.4~r"),
    ]
    rings = (
        alt.Chart(alt.Data(values=_crossing_data(chart)))
        .mark_point(size=130, strokeWidth=2.5, shape="circle", fill="var(--ec-paper)")
        .encode(**encoded, tooltip=tooltip)
    )
    return [lines, rings]


def _hours(alt: Any, chart: RentOrBuy) -> Any:
    ticks = list(range(0, int(chart.most_hours) + 1, 100))
    return alt.X(
        "hours:Q",
        scale=alt.Scale(domain=[0, chart.most_hours], nice=False),
        axis=alt.Axis(values=ticks),
        title="hours of use in a month",
    )


def _cost(alt: Any, chart: RentOrBuy) -> Any:
    label = f"'{chart.currency_symbol}' + format(datum.value, ',~r')"
    axis = alt.Axis(labelExpr=label, tickCount=6)
    return alt.Y("cost:Q", scale=alt.Scale(zero=True), axis=axis, title="cost of a month")


def _line_data(chart: RentOrBuy) -> list[dict[str, Any]]:
    return [
        {"plan": line.plan, "kind": line.kind, "hours": hours, "cost": cost}
        for line in chart.lines
        for hours, cost in ((0, line.unused), (chart.most_hours, line.whole))
    ]


def _crossing_data(chart: RentOrBuy) -> list[dict[str, Any]]:
    return [{"plan": one.plan, "hours": one.hours, "cost": one.cost} for one in chart.crossings]
