"""Charts enter finished pages here, so that neither Markdown nor the search ever reads them.

A page holds ``<div class="ec-plot" data-ec-figure="ID"></div>``; the static SVG and, in a
``<template>``, the spec for the interactive chart take its inside.
"""

from __future__ import annotations

import html
import re
from collections.abc import Mapping

from epochcost.report.charts.drawing import Drawer, Drawing
from epochcost.report.charts.figure import Figure

_PLACE = re.compile(r'(<div class="ec-plot" data-ec-figure="([^"]+)">)</div>')
# JSON inside a template element is parsed as HTML first.
_JSON_IN_HTML = str.maketrans({"<": "\\u003c", ">": "\\u003e", "&": "\\u0026"})


def inject(page: str, figures: Mapping[str, Figure], drawer: Drawer) -> str:
    """The page with every figure drawn in its place; unknown ids stay empty."""

    def filled(found: re.Match[str]) -> str:
        figure = figures.get(html.unescape(found.group(2)))
        return found.group() if figure is None else _plot(found.group(1), figure, drawer)

    return _PLACE.sub(filled, page)


def _plot(opening: str, figure: Figure, drawer: Drawer) -> str:
    drawing = drawer.draw(figure)
    label = html.escape(f"{figure.title}. {figure.description}")
    picture = f'<div class="ec-static" role="img" aria-label="{label}">{_quiet(drawing)}</div>'
    spec = drawing.spec.translate(_JSON_IN_HTML)
    return f"{opening}{picture}<template>{spec}</template></div>"


def _quiet(drawing: Drawing) -> str:
    """The SVG as one picture: the label speaks for it, its parts stay silent."""
    return drawing.svg.replace("<svg ", '<svg aria-hidden="true" ', 1)
