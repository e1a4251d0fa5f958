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


def without_validation() -> AbstractContextManager[None]:
    """Within it Altair builds parts without validating each, which takes most of its time."""
    from altair.utils.schemapi import debug_mode  # noqa: PLC0415  a cached drawing needs no Altair

    return debug_mode(False)


def layered(layers: Sequence[Any], picks: str) -> dict[str, Any]:
    """What `alt.layer` makes of charts, which copies all rows several times.

    Rows that all layers draw stand once. Of marks coloured by the field ``picks``, if there is one,
    those fade that a reader does not pick in the legend.
    """
    shared = len({id(layer.data) for layer in layers}) == 1
    units = [_unit(layer) if shared else {"data": _data(layer), **_unit(layer)} for layer in layers]
    found = {"layer": units, **({"data": _data(layers[0])} if shared else {})}
    if not picks:
        return found
    coloured = [one for one in units if one["encoding"].get("color", {}).get("field") == picks]
    for unit in coloured:
        unit["encoding"]["opacity"] = {"condition": {"param": "picked", "value": 1}, "value": 0.15}
    # Of layers with one legend the first decides whether it hears clicks.
    coloured[0]["name"] = "picking"
    select = {"type": "point", "fields": [picks]}
    param = {"name": "picked", "select": select, "bind": "legend", "views": ["picking"]}
    return {**found, "params": [param]}


def _unit(layer: Any) -> dict[str, Any]:
    """A layer without its data, of which Altair needs nothing: every field says its type."""
    import altair as alt  # noqa: PLC0415  a cached drawing needs no Altair

    bare = layer.copy(deep=False)
    bare.data = alt.Undefined
    unit: dict[str, Any] = bare.to_dict(validate=False, context={"top_level": False, "data": None})
    return unit


def _data(layer: Any) -> dict[str, Any]:
    return {"values": layer.data["values"]}
