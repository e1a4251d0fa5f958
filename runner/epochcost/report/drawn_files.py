"""Files that hold drawings: each chart as SVG and as a page to embed, and the social cards as PNG.

PNG of charts is left to the reader's browser, which has the chart as it is shown.
"""

from __future__ import annotations

from collections.abc import Iterator

from epochcost.report.charts.drawing import Drawer
from epochcost.report.charts.standalone import standalone
from epochcost.report.injection import inject
from epochcost.report.site import Site


def drawn_files(site: Site, drawer: Drawer) -> Iterator[tuple[str, str | bytes]]:
    """Every such file by its address."""
    for figure in site.figures.values():
        yield f"data/figures/{figure.id}.svg", standalone(drawer.draw(figure).svg)
    for uri, page in site.embedded.items():
        yield uri, inject(page, site.figures, drawer)
    for uri, svg in site.cards.items():
        yield uri, drawer.picture(svg)
