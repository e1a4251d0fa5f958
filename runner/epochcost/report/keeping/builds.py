"""What the plugin keeps from one build to the next, and the order in which it is taken.

A page passes three stages: its Markdown becomes HTML, the search index reads that, and the theme
puts its frame around it. Each has a shelf of its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from jinja2 import Environment
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import Files
from mkdocs.structure.nav import Navigation
from mkdocs.structure.pages import Page

from epochcost.report.additions import Shown
from epochcost.report.keeping.conversion import Converter, conversion
from epochcost.report.keeping.entries import keep_entries, read_entries
from epochcost.report.keeping.frame import KNOWN, KeptEnvironment, frame, shown_by_all
from epochcost.report.keeping.processes import begun_beside
from epochcost.report.keeping.shelf import Shelf, digest

_MOST = 2
# Starting a process takes as long as converting a few pages.
_FEW_PAGES = 16


@dataclass(frozen=True, slots=True)
class Kept:
    """The shelves of a build."""

    converted: Shelf
    entries: Shelf
    framed: Shelf

    @classmethod
    def under(cls, folder: Path) -> Kept:
        """The shelves in a folder."""
        return cls(*(Shelf(folder / name) for name in ("converted", "entries", "framed")))

    def convert(self, config: MkDocsConfig, files: Files) -> None:
        """Have the pages and the search take what is kept; many that are missing are made first.

        They are made in processes, for which the build waits.
        """
        shape = conversion(config)
        if shape is None:
            return
        pages = [file.page for file in files.documentation_pages() if file.page is not None]
        for page in pages:
            page.render = Converter(page, self.converted, shape)  # type: ignore[method-assign]
        keep_entries(config, self.entries)
        if not KNOWN.issuperset(config.plugins):
            return

        def beside(page: Page) -> None:
            page.render(config, files)
            read_entries(page, config)

        missing = [page for page in pages if not _has(page, config)]
        if len(missing) >= _FEW_PAGES:
            begun_beside(beside, missing, _MOST).wait()

    def frame(
        self,
        env: Environment,
        config: MkDocsConfig,
        pages: tuple[Navigation, Files],
        policy: str,
        figures: Mapping[str, Shown],
    ) -> Environment:
        """The environment, taking finished pages that are kept."""
        shape = frame(config, policy)
        if shape is None:
            return env
        whole = digest(shape, shown_by_all(*pages, config))
        return cast(Environment, KeptEnvironment(env, self.framed, whole, figures))

    def tidy(self) -> None:
        """Drop what this build did not use."""
        for shelf in (self.converted, self.entries, self.framed):
            shelf.tidy()


def _has(page: Page, config: MkDocsConfig) -> bool:
    """Whether a conversion of the page is kept; reads the page, as MkDocs will once more."""
    page.read_source(config)
    return isinstance(page.render, Converter) and page.render.kept()
