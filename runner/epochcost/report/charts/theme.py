"""Define the look of all charts: a Vega-Lite config, shapes of marks, and colours.

Colours are CSS variables, for light and dark pages and print. Colours of series differ by CIEDE2000
≥ 15, also with protan, deutan and tritan vision. Their contrast to the background is at least 3:1.
"""

from __future__ import annotations

import html
import re
import textwrap
from collections.abc import Callable, Mapping
from typing import Any, Literal

from epochcost.report import wording
from epochcost.report.charts.data import ChartData

WIDTH = 680
# A concrete stack: vl-convert measures labels with it, and a CSS variable would clip them.
FONT = "Roboto, Helvetica, Arial, sans-serif"
_TRIANGLE_RIGHT = "M-.8,-1L1,0L-.8,1ZM-.45,-.45V.45L.4,0Z"
_TRIANGLE_DOWN = "M-1,-.8H1L0,1ZM-.45,-.45L0,.4L.45,-.45Z"
_RING = "M0,-1A1,1,0,1,1,0,1A1,1,0,1,1,0,-1ZM0,-.6A.6,.6,0,1,0,0,.6A.6,.6,0,1,0,0,-.6Z"
_FILLED = ("circle", "square", "diamond", "triangle-up")
# Marks of kinds of figures, as on pages: hollow ones are paths whose holes turn back.
SHAPES = dict(
    zip(wording.SHAPES, (*_FILLED, _RING, _TRIANGLE_RIGHT, "cross", _TRIANGLE_DOWN), strict=True)
)
# The mark of a break-even point, and of an interval that misses the truth.
CROSS = "M-1,-.6L-.6,-1L0,-.4L.6,-1L1,-.6L.4,0L1,.6L.6,1L0,.4L-.6,1L-1,.6L-.4,0Z"
# Shapes of series differ from the shapes of kinds of evidence.
_SERIES_SHAPES = (
    CROSS,
    "M0,-1L.3,-.3L1,0L.3,.3L0,1L-.3,.3L-1,0L-.3,-.3Z",
    "M-1,-.4H1V.4H-1Z",
    "triangle-left",
    "M-.4,-1H.4V1H-.4Z",
    "wedge",
)

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
        # A reader's font may be a sixth wider than the font of the static layout.
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


def colour_by(alt: Any, data: ChartData[Any], field: str, **options: Any) -> Any:
    """Colour marks by their value of ``field``; values get colours in the order of occurrence."""
    return _by_value(alt.Color, data, field, series_colour, **options)


def shape_by(alt: Any, data: ChartData[Any], field: str) -> Any:
    """Give each series a shape, so that colour is never the only difference."""
    return _by_value(alt.Shape, data, field, lambda at: _SERIES_SHAPES[at % len(_SERIES_SHAPES)])


def _by_value(
    channel: Any, data: ChartData[Any], field: str, look: Callable[[int], str], **options: Any
) -> Any:
    names = list(dict.fromkeys(data.values_of(field)))
    scale = {"domain": names, "range": [*map(look, range(len(names)))]}
    return channel(f"{field}:N", scale=scale, title=data.fields[field].label, **options)


def shape_by_kind(alt: Any, data: ChartData[Any]) -> Any:
    """Give each kind of evidence (measured, published, …) a shape, the same on every page."""
    present = set(data.values_of("figure"))
    shapes = {kind: shape for kind, shape in SHAPES.items() if kind in present}
    scale = {"domain": list(shapes), "range": list(shapes.values())}
    legend = alt.Legend(labelExpr="replace(datum.label, ', price assumed', ' · assumed price')")
    return alt.Shape("figure:N", scale=scale, title=data.fields["figure"].label, legend=legend)


def line_at_one(alt: Any, field: str) -> Any:
    """Draw a dashed line where ``field`` is 1; the caller adds the axis."""
    return alt.Chart(alt.Data(values=[{field: 1}])).mark_rule(
        strokeDash=[4, 4], strokeWidth=1.5, color="var(--ec-ink)"
    )


def error_bars(alt: Any, base: Any, channel: Literal["X", "Y"], field: str, **look: Any) -> Any:
    """Draw a line between the ends of each interval."""
    look = {"strokeWidth": 1.5, **look}
    low, high = getattr(alt, channel), getattr(alt, f"{channel}2")
    return base.mark_rule(**look).encode(low(f"{field}_low:Q"), high(f"{field}_high"))


# Hues near those of Okabe and Ito's palette, searched to differ as much as possible. The contrast
# follows WCAG 2.2, success criterion 1.4.11.
LIGHT_SERIES = (
    "#4b78ff", "#872d00", "#006969", "#c378a5", "#78785a", "#4ba500", "#3c2d2d", "#1e1ea5",
)  # fmt: skip
DARK_SERIES = (
    "#87d2ff", "#c3692d", "#2da578", "#a587a5", "#e1b400", "#d2f0a5", "#f0e1e1", "#8778ff",
)  # fmt: skip
_LIGHT_INKS = {"ink": "#24292f", "soft": "#57606a", "grid": "#e3e6ea", "paper": "#ffffff"}
_DARK_INKS = {"ink": "#e6e8ee", "soft": "#aab1c0", "grid": "#3a3f4f", "paper": "#1e2129"}


def _variables(inks: Mapping[str, str], series: tuple[str, ...]) -> Mapping[str, str]:
    named = {f"--ec-{name}": value for name, value in inks.items()}
    numbered = {f"--ec-series-{at}": value for at, value in enumerate(series, start=1)}
    return {**named, **numbered}


LIGHT = _variables(_LIGHT_INKS, LIGHT_SERIES)
DARK = _variables(_DARK_INKS, DARK_SERIES)


def series_colour(number: int) -> str:
    """The CSS variable of a series' colour; numbers start at 0, and colours repeat."""
    return f"var(--ec-series-{number % len(LIGHT_SERIES) + 1})"


def stylesheet() -> str:
    """Render the style sheet of all colours for light and dark pages, embedded charts and print."""
    light, dark = (_declarations(variables) for variables in (LIGHT, DARK))
    return (
        f":root, [data-md-color-scheme=default] {{\n{light}}}\n"
        f"[data-md-color-scheme=slate] {{\n{dark}}}\n"
        f"@media (prefers-color-scheme: dark) {{\n:root {{\n{dark}}}\n}}\n"
        f"@media print {{\n:root, [data-md-color-scheme] {{\n{light}}}\n}}\n"
    )


def _declarations(variables: Mapping[str, str]) -> str:
    return "".join(f"  {name}: {value};\n" for name, value in variables.items())


_VARIABLE = re.compile(r"var\((--ec-[a-z0-9-]+)\)")
_OPENING = re.compile(r"<svg [^>]*>")
_SIZE = re.compile(r'width="([\d.]+)" height="([\d.]+)" viewBox="[^"]*"')
_TITLE_CHARACTER, _LINE = 8.2, 20


def standalone_svg(svg: str, *, title: str, source: str) -> str:
    """Add palette, background, title and source to an SVG; raises KeyError for unknown colours."""
    size = _SIZE.search(svg)
    assert size is not None, "the first tag of a drawing states its size"
    width, height = map(float, size.groups())
    lines = textwrap.wrap(title, int(width / _TITLE_CHARACTER))
    top, whole = _LINE * len(lines) + 12, height + _LINE * (len(lines) + 1) + 16
    look = f'x="8" font-family="{FONT}"'
    texts = "".join(
        f'<text {look} y="{_LINE * at - top:g}" font-size="15" font-weight="600" '
        f'fill="{LIGHT["--ec-ink"]}">{html.escape(line)}</text>'
        for at, line in enumerate(lines, start=1)
    ) + (
        f'<text {look} y="{height + 14:g}" font-size="11" fill="{LIGHT["--ec-soft"]}">'
        f"{html.escape(source)}</text>"
    )
    frame = f'width="{width:g}" height="{whole:g}" viewBox="0 {-top:g} {width:g} {whole:g}"'
    paper = f'<rect y="{-top:g}" width="100%" height="100%" fill="{LIGHT["--ec-paper"]}"/>'
    coloured = _VARIABLE.sub(lambda match: LIGHT[match[1]], svg.replace(size[0], frame, 1))
    return _OPENING.sub(lambda match: match[0] + paper + texts, coloured, count=1)
