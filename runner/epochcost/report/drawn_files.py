"""Files that hold drawings: each chart as SVG and as a page to embed, and the social cards as PNG.

PNG of charts is left to the reader's browser, which has the chart as it is shown.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

from epochcost.report.additions import Content
from epochcost.report.charts.drawing import Drawer
from epochcost.report.charts.figure import Figure
from epochcost.report.charts.standalone import standalone
from epochcost.report.injection import inject, shown, stamps
from epochcost.report.keeping.processes import Beside, begun_beside
from epochcost.report.keeping.shelf import digest
from epochcost.report.site import Site

# How much one process draws before it ends: the memory of what draws grows with every chart.
_MOST_DRAWN = 250
Works = Mapping[Path, Callable[[], object]]


def drawn_files(site: Site, drawer: Drawer) -> Iterator[tuple[str, Content]]:
    """Every such file by its address, made when it is asked for: together they are large."""
    figures = {name: shown(figure, drawer) for name, figure in site.figures.items()}
    for figure in site.figures.values():
        drawing = drawer.drawing(figure).name
        yield f"data/figures/{figure.id}.svg", Content(partial(_picture, figure, drawer), drawing)
    for uri, page in site.embedded.items():
        cause = digest(page, stamps(page, figures))
        yield uri, Content(partial(inject, page, figures), cause)
    for uri, svg in site.cards.items():
        yield uri, Content(partial(drawer.picture, svg), drawer.painting(svg).name)


def _picture(figure: Figure, drawer: Drawer) -> str:
    return standalone(drawer.draw(figure).svg)


def draw_beside(site: Site, drawer: Drawer) -> Beside:
    """Begin to draw what is not kept yet, in processes that end with their memory.

    One after the other, the charts last and longest: the build itself is busy with the text of the
    pages meanwhile, and what makes any of them holds more than all else.
    """
    charts = {drawer.drawing(one): partial(drawer.draw, one) for one in site.figures.values()}
    pictures = {drawer.painting(svg): partial(drawer.picture, svg) for svg in site.cards.values()}
    library: Works = {drawer.bundle: drawer.library}
    stages = [_missing(works) for works in (library, pictures, charts)]
    return begun_beside(_stage_after_stage, [stages] if any(stages) else [], 1)


def _missing(works: Works) -> Sequence[Callable[[], object]]:
    return [work for path, work in works.items() if not path.is_file()]


def _stage_after_stage(stages: Sequence[Sequence[Callable[[], object]]]) -> None:
    for works in stages:
        for begin in range(0, len(works), _MOST_DRAWN):
            begun_beside(_done, works[begin : begin + _MOST_DRAWN], 1).wait()


def _done(work: Callable[[], object]) -> None:
    work()
