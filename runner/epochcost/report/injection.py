"""Charts and their tables enter finished pages here: neither Markdown nor the search reads them.

A page holds ``<div class="ec-plot" data-ec-figure="ID"></div>``; the static SVG and, in a
``<template>``, the spec for the interactive chart take its inside. The table of the chart's data
takes that of ``<div class="ec-table" data-ec-table="ID"></div>``.
"""

from __future__ import annotations

import html
import re
from collections.abc import Mapping

from epochcost.report.charts.drawing import Drawer, Drawing
from epochcost.report.charts.figure import Figure
from epochcost.report.tables import as_html

_PLACE = re.compile(r'(<div class="ec-(plot|table)" data-ec-(?:figure|table)="([^"]+)">)</div>')
# JSON inside a template element is parsed as HTML first. Replaced one by one: a table of
# translation takes many times as long on text beyond ASCII.
_JSON_IN_HTML = (("<", "\\u003c"), (">", "\\u003e"), ("&", "\\u0026"))


def inject(page: str, figures: Mapping[str, Figure], drawer: Drawer) -> str:
    """The page with every figure and its table in their places; unknown ids stay empty."""

    def filled(found: re.Match[str]) -> str:
        opening, kind, identifier = found.groups()
        figure = figures.get(html.unescape(identifier))
        if figure is None:
            return found.group()
        inside = _plot(figure, drawer) if kind == "plot" else as_html(figure.table)
        return f"{opening}{inside}</div>"

    return _PLACE.sub(filled, page)


def _plot(figure: Figure, drawer: Drawer) -> str:
    drawing = drawer.draw(figure)
    label = html.escape(f"{figure.title}. {figure.description}")
    picture = f'<div class="ec-static" role="img" aria-label="{label}">{_quiet(drawing)}</div>'
    spec = drawing.spec
    for character, escaped in _JSON_IN_HTML:
        spec = spec.replace(character, escaped)
    return f"{picture}<template>{spec}</template>"


def _quiet(drawing: Drawing) -> str:
    """The SVG as one picture: the label speaks for it, its parts stay silent."""
    return drawing.svg.replace("<svg ", '<svg aria-hidden="true" ', 1)
