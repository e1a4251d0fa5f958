"""The report built from its sources: what it adds to the site, whole."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

from epochcost.report.additions import ASSETS, Additions, Content
from epochcost.report.charts.drawing import Drawer
from epochcost.report.difference.publication import publication
from epochcost.report.drawn_files import draw, drawn_files
from epochcost.report.injection import shown
from epochcost.report.inputs import read_inputs
from epochcost.report.keeping.origin import program
from epochcost.report.keeping.rendering import KeptRendering
from epochcost.report.site import Site, build
from epochcost.report.sources import Sources
from epochcost.specs.loader import load_catalogue


def additions(sources: Sources, drawer: Drawer, kept: Path) -> Additions:
    """What the report adds; raises EpochcostError where specs or templates are wrong.

    ``kept`` is a folder for rendered pages. A comparison with what was published that failed may
    succeed another time.
    """
    catalogue = load_catalogue(sources.project)
    inputs = read_inputs(catalogue, sources.results, sources.docs, sources.cache)
    since = publication(sources.project, sources.published)
    rendered = KeptRendering.under(kept, sources.templates)
    site = build(inputs, sources.templates, since, rendered, _compiled(kept / "compiled"))
    rendered.shelf.tidy()
    return Additions(
        pages={uri: Content(text.__str__) for uri, text in site.pages.items()},
        files=dict(_files(site, drawer)),
        results=site.results,
        sections=site.sections,
        figures={name: shown(figure, drawer) for name, figure in site.figures.items()},
        problems=inputs.problems,
        draw=lambda: draw(site, drawer),
        lasting=not sources.published or since.changes is not None,
    )


def _compiled(folder: Path) -> Path:
    """A folder for what this very program compiles: what a template prints shapes its code."""
    mine = folder / program()[:32]
    if not mine.is_dir():
        shutil.rmtree(folder, ignore_errors=True)
        mine.mkdir(parents=True)
    return mine


def _files(site: Site, drawer: Drawer) -> Iterator[tuple[str, Content]]:
    for uri, content in site.files.items():
        yield uri, Content(content.__str__ if isinstance(content, str) else content.__bytes__)
    yield from drawn_files(site, drawer)
    yield f"{ASSETS}/vega.js", Content(drawer.library, drawer.bundle.name)
