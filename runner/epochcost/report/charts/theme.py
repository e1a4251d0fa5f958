"""The look that all charts share: a Vega-Lite config and the scales for series and kinds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, Literal

from epochcost.report.charts.data import ChartData
from epochcost.report.charts.palette import series_colour

WIDTH = 680
# Of charts that stand two beside each other on wide screens.
PAIRED_WIDTH = 470
# A concrete stack: vl-convert measures labels with it, and a CSS variable would clip them.
FONT = "Roboto, Helvetica, Arial, sans-serif"
_SHAPES = {
    "measured": "circle",
    "measured, price assumed": "square",
    "published": "diamond",
    "published, price assumed": "triangle-up",
    "predicted": "circle",
    "predicted, price assumed": "triangle-right",
    "estimated": "cross",
    "estimated, price assumed": "triangle-down",
    "on-demand": "diamond",
    "spot": "circle",
    "list price": "square",
    "assumed price": "triangle-up",
}

_SERIES_SHAPES = ("circle", "square", "diamond", "triangle-up", "triangle-down", "cross")

CONFIG: Mapping[str, Any] = {
    "font": FONT,
    "background": None,
    "view": {"stroke": None},
    "axis": {
        "domainColor": "var(--ec-soft)",
        "gridColor": "var(--ec-grid)",
        "labelColor": "var(--ec-soft)",
        "labelFontSize": 12,
        "labelOverlap": "greedy",
        "tickColor": "var(--ec-soft)",
        "titleColor": "var(--ec-ink)",
        "titleFontSize": 12,
        "titleFontWeight": 500,
        "titlePadding": 10,
    },
    "axisY": {"labelLimit": 380},
    "legend": {
        # A reader's font may be a sixth wider than the one that a static chart was laid out in.
        "columnPadding": 40,
        "columns": 2,
        "labelColor": "var(--ec-ink)",
        "labelFontSize": 12,
        "labelLimit": 300,
        "layout": {"bottom": {"anchor": "start", "bounds": "full", "direction": "vertical"}},
        "orient": "bottom",
        "symbolStrokeWidth": 2,
        "titleColor": "var(--ec-soft)",
        "titleFontSize": 12,
        "titleFontWeight": 500,
    },
}
AUTOSIZE = {"type": "fit-x", "contains": "padding"}


def series_scale(colours: Mapping[str, int], present: Iterable[str]) -> dict[str, Any]:
    """Each series its colour of the whole site; only those present stand in the legend."""
    names = sorted(set(present), key=lambda name: (colours.get(name, 0), name))
    return {"domain": names, "range": [series_colour(colours.get(name, 0)) for name in names]}


def colour_by(
    alt: Any,
    data: ChartData[Any],
    field: str,
    colours: Iterable[tuple[str, int]] = (),
    **options: Any,
) -> Any:
    """A colour for each value of a field: of the whole site, or in the order of the rows."""
    present = dict.fromkeys(data.values_of(field))
    numbers = dict(colours) or {name: at for at, name in enumerate(present)}
    scale = series_scale(numbers, present)
    return alt.Color(f"{field}:N", scale=scale, title=data.title(field).lower(), **options)


def shape_by(alt: Any, data: ChartData[Any], field: str) -> Any:
    """A shape for each series, so that colour is never the only difference."""
    names = list(dict.fromkeys(data.values_of(field)))
    shapes = [_SERIES_SHAPES[at % len(_SERIES_SHAPES)] for at in range(len(names))]
    return alt.Shape(
        f"{field}:N", scale={"domain": names, "range": shapes}, title=data.title(field).lower()
    )


def shape_by_kind(alt: Any, data: ChartData[Any]) -> Any:
    """A shape for each kind of figure, the same on every page."""
    known = set(data.values_of("figure"))
    shapes = {kind: shape for kind, shape in _SHAPES.items() if kind in known}
    scale = {"domain": list(shapes), "range": list(shapes.values())}
    legend = alt.Legend(labelExpr="replace(datum.label, ', price assumed', ' · assumed price')")
    return alt.Shape("figure:N", scale=scale, title=data.title("figure").lower(), legend=legend)


def error_bars(
    alt: Any, base: Any, channel: Literal["X", "Y"], field: str, **look: Any
) -> list[Any]:
    """A rule from the lower end of each interval to the upper one; none of what has no ends."""
    if f"{field}_low" not in base.data["values"][0]:
        return []
    look = {"strokeWidth": 1.5, **look}
    low, high = getattr(alt, channel), getattr(alt, f"{channel}2")
    return [base.mark_rule(**look).encode(low(f"{field}_low:Q"), high(f"{field}_high"))]


def fade_unpicked(alt: Any, picked: Any) -> Any:
    """The opacity of what a reader picked, and of all else.

    As `alt.condition` says it, which takes Altair twenty milliseconds.
    """
    return alt.OpacityValue(0.15, condition={"param": picked.name, "value": 1})


def layered_spec(
    layers: Sequence[Any],
    height: int,
    description: str,
    *,
    paired: bool = False,
    long_names: bool = False,
) -> dict[str, Any]:
    """The spec of layered charts with size, config and description, as both renderers take it.

    A paired chart has half the width. Its legend is one column, as one of long names is.

    Altair validates each part as it is made, where that is not turned off; the whole is left to the
    tests.
    """
    import altair as alt  # noqa: PLC0415  a cached drawing needs no Altair

    legend = dict(CONFIG["legend"])
    if paired or long_names:
        legend |= {"columns": 1, "labelLimit": PAIRED_WIDTH if paired else WIDTH}
    return {
        "$schema": alt.SCHEMA_URL,
        **_layered(layers),
        "width": PAIRED_WIDTH if paired else WIDTH,
        "height": height,
        "autosize": AUTOSIZE,
        "config": {**CONFIG, "legend": legend},
        "description": description,
        "padding": 4,
    }


def without_validation() -> AbstractContextManager[None]:
    """Within it Altair builds parts without validating each, which takes most of its time."""
    from altair.utils.schemapi import debug_mode  # noqa: PLC0415  a cached drawing needs no Altair

    return debug_mode(False)


def _layered(layers: Sequence[Any]) -> dict[str, Any]:
    """What `alt.layer` makes of charts, which copies all rows several times.

    Rows that all layers draw stand once.
    """
    shared = len({id(layer.data) for layer in layers}) == 1
    units = [_unit(layer) if shared else {"data": _data(layer), **_unit(layer)} for layer in layers]
    data = {"data": _data(layers[0])} if shared else {}
    params = [
        {**param, "views": [unit.setdefault("name", f"view_{at}")]}
        for at, unit in enumerate(units)
        for param in unit.pop("params", ())
    ]
    return {"layer": units, **data, **({"params": params} if params else {})}


def _unit(layer: Any) -> dict[str, Any]:
    """A layer without its data, of which Altair needs nothing: every field says its type."""
    import altair as alt  # noqa: PLC0415  a cached drawing needs no Altair

    bare = layer.copy(deep=False)
    bare.data = alt.Undefined
    unit: dict[str, Any] = bare.to_dict(validate=False, context={"top_level": False, "data": None})
    return unit


def _data(layer: Any) -> dict[str, Any]:
    return {"values": layer.data["values"]}
