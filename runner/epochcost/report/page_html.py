"""Complete the HTML of pages: resolve links, and insert charts with their tables.

Links name the source of a page: ``href="site:machines/a.md"``. In a ``div`` of class ``ec-plot``,
``data-ec-figure="ID"`` asks for a chart's SVG; `charts.js` loads the spec of the interactive chart.
In the class ``ec-table``, ``data-ec-table`` asks for the table of the chart's data.
"""

from __future__ import annotations

import html
import itertools
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence

from epochcost.report.charts.drawing import Drawer
from epochcost.report.charts.figure import Figure
from epochcost.report.charts.theme import standalone_svg
from epochcost.report.escape import one_line
from epochcost.report.site import ASSETS, Site
from epochcost.report.tables import as_html

_PLACE = re.compile(r'(<div class="ec-(?:plot|table)" data-ec-(figure|table)="([^"]+)">)</div>')
_LINK = re.compile(r'\b(href|src)="site:([^"#]*)')
_TABLE = re.compile(r"<table\b.*?</table>", re.DOTALL)
_CUT = re.compile(r'<div data-ec-cut="(\d+)"></div>')
_PARAGRAPH = re.compile(r"<p\b[^>]*>(.*?)</p>", re.DOTALL)
# A decision record says what was decided in this paragraph, or in the list after it.
_DECISION = re.compile(
    r"<p><strong>Decision\.</strong>(?:</p>\s*<ul>\s*<li>(?:\s*<p>)?)?(.*?)</(?:p|li)>", re.DOTALL
)
_TAG = re.compile("<[^>]*>")
_SENTENCE_END = re.compile(r"(?<=[.!?])\s")
_LIBRARY = f"{ASSETS}/vega.js"
# A script that a page opened from the disk can load.
_SCRIPT = "(window.epochcostSpecs = window.epochcostSpecs || {{}})[{}] = {};\n"


def resolve_links(content: str, address: Callable[[str], str]) -> str:
    """Replace each link ``site:…`` in a page's HTML by an address."""
    return _LINK.sub(lambda link: f'{link[1]}="{address(link[2])}', content)


def cut_tables(text: str) -> tuple[str, list[str]]:
    """Cut out HTML tables, on which a Markdown parser is slow; return the text and the tables."""
    number = itertools.count()
    cut = _TABLE.sub(lambda _: f'<div data-ec-cut="{next(number)}"></div>', text)
    return cut, _TABLE.findall(text)


def insert_tables(page: str, tables: Sequence[str]) -> str:
    """Insert the tables of `cut_tables` into a page's HTML."""
    return _CUT.sub(lambda place: tables[int(place[1])], page)


def first_sentence(content: str) -> str:
    """The first sentence of a page's first paragraph, or of the decision in a decision record."""
    paragraph = _DECISION.search(content) or _PARAGRAPH.search(content)
    text = html.unescape(_TAG.sub("", paragraph[1])) if paragraph else ""
    return _SENTENCE_END.split(one_line(text), maxsplit=1)[0]


def insert_charts(page: str, figures: Mapping[str, Figure], drawer: Drawer) -> str:
    """Insert every figure and its table into a page; placeholders with unknown ids stay empty."""

    def filled(place: re.Match[str]) -> str:
        opening, kind, identifier = place.groups()
        figure = figures.get(html.unescape(identifier))
        if figure is None:
            return place.group()
        if kind == "table":
            return f"{opening}{as_html(figure.data.table)}</div>"
        return f"{opening}{_labelled_chart_html(figure, drawer)}</div>"

    return _PLACE.sub(filled, page)


def _labelled_chart_html(figure: Figure, drawer: Drawer) -> str:
    label = html.escape(f"{figure.title}. {figure.description}")
    # Screen readers read the label instead of the texts in the SVG.
    silent_svg = drawer.draw(figure).svg.replace("<svg ", '<svg aria-hidden="true" ', 1)
    return f'<div class="ec-static" role="img" aria-label="{label}">{silent_svg}</div>'


def drawings(site: Site, drawer: Drawer) -> Iterator[tuple[str, bytes]]:
    """Yield the address and content of each chart file, each embedded page and the library."""
    yield _LIBRARY, drawer.library()
    for figure in site.figures.values():
        drawing, source = drawer.draw(figure), f"epochcost. {figure.source}"
        picture = standalone_svg(drawing.svg, title=figure.title, source=source)
        yield f"data/figures/{figure.id}.svg", picture.encode()
        script = _SCRIPT.format(json.dumps(figure.id), drawing.spec)
        yield f"data/figures/{figure.id}.js", script.encode()
    for uri, page in site.embedded.items():
        yield uri, insert_charts(page, site.figures, drawer).encode()
