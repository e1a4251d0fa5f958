"""Files that hold drawings: each chart as SVG and as a page to embed, and the social cards as PNG.

PNG of charts is left to the reader's browser, which has the chart as it is shown.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from epochcost.report.additions import Content, Site
from epochcost.report.charts.drawing import Drawer, load
from epochcost.report.charts.figure import Figure
from epochcost.report.charts.standalone import standalone
from epochcost.report.injection import inject, shown, stamps
from epochcost.report.keeping.processes import Beside, Waiting, begun_beside, begun_waiting
from epochcost.report.keeping.shelf import digest
from epochcost.report.tables import Table

# Starting a second process that draws takes as long as drawing so many.
_MANY_CHARTS = 60
# No drawing shows the table of its data.
_UNSEEN = Table((), ())
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


def begun_drawing(drawer: Drawer) -> Waiting:
    """A process to draw in, which makes at once what every page needs; see `give_drawings`."""
    return begun_waiting(partial(_draw, drawer))


def give_drawings(
    drawing: Waiting, drawer: Drawer, figures: Iterable[Figure], cards: Iterable[str]
) -> None:
    """Have figures and cards drawn that are not kept yet; there may be one such call."""
    bare = [replace(figure, table=_UNSEEN) for figure in figures]
    charts = {drawer.drawing(figure): partial(drawer.draw, figure) for figure in bare}
    pictures = {drawer.painting(svg): partial(drawer.picture, svg) for svg in cards}
    stages = [_missing(pictures), _missing(charts)]
    if any(stages):
        drawing.give(stages)


def _missing(works: Works) -> list[Callable[[], object]]:
    return [work for path, work in works.items() if not path.is_file()]


def _draw(drawer: Drawer, given: Iterator[Sequence[Sequence[Callable[[], object]]]]) -> None:
    """Draw the charts from both ends, in processes that share what they load.

    From the last on they are drawn when nothing more is given: until then the report is being made,
    which leaves one core and less memory.
    """
    library = _begun_library(drawer)
    pictures, charts = next(given, ((), ()))
    library.wait()
    if charts:
        load()
    from_the_first = begun_beside(_done, [charts] if charts else [], 1)
    next(given, None)
    begun_beside(_done, [pictures] if pictures else [], 1).wait()
    if len(charts) >= _MANY_CHARTS and len(os.sched_getaffinity(0)) > 1:
        _done(charts[::-1])
    from_the_first.wait()


def _begun_library(drawer: Drawer) -> Beside:
    """The making of the library, in a process that ends with its memory."""
    if drawer.bundle.is_file():
        return Beside()
    load()
    return begun_beside(_done, [[drawer.library]], 1)


def _done(works: Sequence[Callable[[], object]]) -> None:
    """Do works in their order; what another process has done meanwhile is read from its file."""
    for work in works:
        work()
