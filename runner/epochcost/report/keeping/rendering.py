"""The Markdown of a page, kept by all that its template is given.

That is said by the bytes of a pickle, which is never loaded. Equal bytes are equal values; of equal
values the bytes may differ, which costs time, nothing else.
"""

from __future__ import annotations

import hashlib
import pickle
from dataclasses import dataclass
from pathlib import Path

from jinja2 import Environment

from epochcost.report.keeping.origin import program, tree
from epochcost.report.keeping.shelf import Shelf, digest
from epochcost.report.pages.page import Page
from epochcost.report.templates import render


@dataclass(frozen=True, slots=True)
class KeptRendering:
    """Stands in for `render`; ``shape`` says the program and the templates."""

    shelf: Shelf
    shape: str

    @classmethod
    def under(cls, folder: Path, templates: Path) -> KeptRendering:
        """What is kept in a folder of pages that a folder's templates made."""
        return cls(Shelf(folder / "rendered"), digest(program(), tree(templates)))

    def __call__(self, templates: Environment, page: Page) -> str:
        """The page's Markdown; raises as `render` does."""
        try:
            given = hashlib.sha256(pickle.dumps(page, 5)).hexdigest()
        except (AttributeError, TypeError, pickle.PicklingError):
            return render(templates, page)  # it is given what cannot be said
        key = digest(self.shape, given)
        kept = self.shelf.read(page.uri, key)
        if isinstance(kept, str):
            return kept
        made = render(templates, page)
        self.shelf.write(page.uri, key, made)
        return made
