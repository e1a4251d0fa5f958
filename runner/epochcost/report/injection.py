"""What Markdown does not read: links in the HTML of templates, and charts with their tables.

A link in HTML names a file of the site as ``href="site:machines/a.md"``, by its source and from the
root; it becomes an address when the page's Markdown has become HTML.

Charts and their tables enter finished pages, so that the search does not read them either.

A page holds ``<div class="ec-plot" data-ec-figure="ID"></div>``; the static SVG and, in a
``<template>``, the spec for the interactive chart take its inside. The table of the chart's data
takes that of ``<div class="ec-table" data-ec-table="ID"></div>``.
"""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Mapping
from functools import partial

from epochcost.report.additions import Shown
from epochcost.report.charts.drawing import Drawer, Drawing
from epochcost.report.charts.figure import Figure
from epochcost.report.keeping.shelf import digest
from epochcost.report.tables import as_html

_PLACE = re.compile(r'(<div class="ec-(plot|table)" data-ec-(?:figure|table)="([^"]+)">)</div>')
_LINK = re.compile(r'\b(href|src)="site:([^"#]*)')
# JSON inside a template element is parsed as HTML first. Replaced one by one: a table of
# translation takes many times as long on text beyond ASCII.
_JSON_IN_HTML = (("<", "\\u003c"), (">", "\\u003e"), ("&", "\\u0026"))


def with_addresses(content: str, address: Callable[[str], str]) -> str:
    """The HTML of a page with the addresses of all files that it links to."""
    return _LINK.sub(lambda found: f'{found[1]}="{address(found[2])}', content)


def shown(figure: Figure, drawer: Drawer) -> Shown:
    """What pages show of a figure, which is drawn when its chart is asked for."""
    label = f"{figure.title}. {figure.description}"
    drawing = drawer.drawing(figure).name
    return Shown(
        stamp=digest(label, drawing, repr(figure.table)),
        label=label,
        drawing=drawing,
        plot=lambda: plot(label, drawer.draw(figure)),
        table=partial(as_html, figure.table),
    )


def inject(page: str, figures: Mapping[str, Shown]) -> str:
    """The page with every figure and its table in their places; unknown ids stay empty."""

    def filled(found: re.Match[str]) -> str:
        opening, kind, identifier = found.groups()
        figure = figures.get(html.unescape(identifier))
        if figure is None:
            return found.group()
        return f"{opening}{figure.plot() if kind == 'plot' else figure.table()}</div>"

    return _PLACE.sub(filled, page)


def stamps(page: str, figures: Mapping[str, Shown]) -> list[str]:
    """The stamps of what `inject` puts into the page; empty for unknown ids."""
    found = (figures.get(html.unescape(place[3])) for place in _PLACE.finditer(page))
    return ["" if figure is None else figure.stamp for figure in found]


def plot(label: str, drawing: Drawing) -> str:
    """A chart as pages show it: a picture that says its label, and the spec beside it."""
    said = html.escape(label)
    picture = f'<div class="ec-static" role="img" aria-label="{said}">{_quiet(drawing)}</div>'
    spec = drawing.spec
    for character, escaped in _JSON_IN_HTML:
        spec = spec.replace(character, escaped)
    return f"{picture}<template>{spec}</template>"


def _quiet(drawing: Drawing) -> str:
    """The SVG as one picture: the label speaks for it, its parts stay silent."""
    return drawing.svg.replace("<svg ", '<svg aria-hidden="true" ', 1)
