"""What the report adds to the site, whole, from a process that ends with all that making it held.

What makes the report is imported there alone: this process goes on to draw and to convert pages.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from epochcost.errors import EpochcostError
from epochcost.report.additions import ASSETS, Additions, Content, Draw, Site
from epochcost.report.charts.drawing import Drawer
from epochcost.report.drawn_files import begun_drawing, drawn_files, give_drawings
from epochcost.report.injection import shown
from epochcost.report.keeping.processes import begun_beside
from epochcost.report.sources import Sources


def additions(sources: Sources, drawer: Drawer, kept: Path) -> Additions:
    """What the report adds; raises EpochcostError where specs or templates are wrong.

    ``kept`` is a folder for rendered pages. The process that will draw begins first, while this one
    is small.
    """
    drawing = begun_drawing(drawer)
    draw = partial(give_drawings, drawing, drawer)
    try:
        site = _made_apart(sources, kept, draw)
    except BaseException:
        drawing.abandon()
        raise
    return Additions(
        pages={uri: Content(text.__str__) for uri, text in site.pages.items()},
        files=dict(_files(site, drawer)),
        results=site.results,
        sections=site.sections,
        figures={name: shown(figure, drawer) for name, figure in site.figures.items()},
        problems=site.problems,
        draw=drawing.finish,
        lasting=site.lasting,
    )


def _made_apart(sources: Sources, kept: Path, draw: Draw) -> Site:
    """The report from another process; where that failed it is made here."""
    kept.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(dir=kept) as folder:
        path = Path(folder) / "site"

        def make(path: Path) -> None:
            path.write_bytes(pickle.dumps(_made_or_wrong(sources, kept, draw)))

        begun_beside(make, [path], 1).wait()
        try:
            with path.open("rb") as file:
                made: Site | EpochcostError = pickle.load(file)  # noqa: S301  our own word
        except (OSError, EOFError, pickle.UnpicklingError):
            return _made(sources, kept, draw)
    if isinstance(made, EpochcostError):
        raise made
    return made


def _made_or_wrong(sources: Sources, kept: Path, draw: Draw) -> Site | EpochcostError:
    """The report, or what is wrong with its sources."""
    try:
        return _made(sources, kept, draw)
    except EpochcostError as error:
        return error


def _made(sources: Sources, kept: Path, draw: Draw) -> Site:
    from epochcost.report.making import made  # noqa: PLC0415  see above

    return made(sources, kept, draw)


def _files(site: Site, drawer: Drawer) -> Iterator[tuple[str, Content]]:
    for uri, content in site.files.items():
        yield uri, Content(content.__str__ if isinstance(content, str) else content.__bytes__)
    yield from drawn_files(site, drawer)
    yield f"{ASSETS}/vega.js", Content(drawer.library, drawer.bundle.name)
