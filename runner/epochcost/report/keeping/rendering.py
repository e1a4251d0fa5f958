"""The Markdown of a page, kept by all that its template is given.

That is said by the bytes of a pickle, which is never loaded. Equal bytes are equal values; of equal
values the bytes may differ, which costs time, nothing else.
"""

from __future__ import annotations

import hashlib
import io
import pickle
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jinja2 import Environment
from pydantic import BaseModel

from epochcost.report.keeping.origin import program, tree
from epochcost.report.keeping.shelf import Shelf, digest
from epochcost.report.pages.page import Page
from epochcost.report.templates import render


@dataclass(frozen=True, slots=True)
class KeptRendering:
    """Stands in for `render`; ``shape`` says the program and the templates."""

    shelf: Shelf
    shape: str
    records: Mapping[type, Callable[[Any], Any]]

    @classmethod
    def under(cls, folder: Path, templates: Path) -> KeptRendering:
        """What is kept in a folder of pages that a folder's templates made."""
        records = dict.fromkeys(_below(BaseModel), _fields)
        return cls(Shelf(folder / "rendered"), digest(program(), tree(templates)), records)

    def __call__(self, templates: Environment, page: Page) -> str:
        """The page's Markdown; raises as `render` does."""
        try:
            given = hashlib.sha256(self._said(page)).hexdigest()
        except (AttributeError, TypeError, pickle.PicklingError):
            return render(templates, page)  # it is given what cannot be said
        key = digest(self.shape, given)
        kept = self.shelf.read(page.uri, key)
        if isinstance(kept, str):
            return kept
        made = render(templates, page)
        self.shelf.write(page.uri, key, made)
        return made

    def _said(self, page: Page) -> bytes:
        said = io.BytesIO()
        pickler = pickle.Pickler(said, 5)
        pickler.dispatch_table = self.records
        pickler.dump(page)
        return said.getvalue()


def _below(kind: type[BaseModel]) -> Iterator[type[BaseModel]]:
    for one in kind.__subclasses__():
        yield one
        yield from _below(one)


def _fields(record: BaseModel) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    """All of a record, the names that were given in order: a set has another in each process."""
    given = sorted(record.model_fields_set)
    apart = (record.__pydantic_extra__, record.__pydantic_private__)
    return _fields, (type(record), record.__dict__, given, *apart)
