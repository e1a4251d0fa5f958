"""The report made from its sources: everything is read, joined and rendered."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

from epochcost.report.additions import Draw, Site
from epochcost.report.difference.publication import publication
from epochcost.report.inputs import read_inputs
from epochcost.report.keeping.origin import program
from epochcost.report.keeping.rendering import KeptRendering
from epochcost.report.site import build
from epochcost.report.sources import Sources
from epochcost.specs.loader import load_catalogue


def made(sources: Sources, kept: Path, draw: Draw) -> Site:
    """The report; raises EpochcostError where specs or templates are wrong.

    ``kept`` is a folder for rendered pages; ``draw`` is as `build` takes it. A comparison with what
    was published that failed may succeed another time.
    """
    catalogue = load_catalogue(sources.project)
    inputs = read_inputs(catalogue, sources.results, sources.docs, sources.cache)
    since = publication(sources.project, sources.published)
    rendered = KeptRendering.under(kept, sources.templates)
    compiled = _compiled(kept / "compiled")
    site = build(inputs, sources.templates, since, rendered, compiled, draw)
    rendered.shelf.tidy()
    lasting = not sources.published or since.changes is not None
    return replace(site, problems=inputs.problems, lasting=lasting)


def _compiled(folder: Path) -> Path:
    """A folder for what this very program compiles: what a template prints shapes its code."""
    mine = folder / program()[:32]
    if not mine.is_dir():
        shutil.rmtree(folder, ignore_errors=True)
        mine.mkdir(parents=True)
    return mine
