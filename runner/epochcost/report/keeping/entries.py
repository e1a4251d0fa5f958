"""What the search index says of a page, kept by the page's HTML.

The search plugin reads the HTML of every page once more; it does so here only where the page has
changed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.pages import Page

from epochcost.report.keeping.conversion import contents
from epochcost.report.keeping.origin import program
from epochcost.report.keeping.sections import shown
from epochcost.report.keeping.shelf import Shelf, digest

# What of Material's `SearchIndex` reads a page.
_READ = "add_entry_from_context"
PLUGINS = ("material/search", "search")
# Options that name files by which the search cuts Chinese text; what follows from them is not kept.
_DICTIONARIES = ("jieba_dict", "jieba_dict_user")


@dataclass(frozen=True, slots=True)
class Entries:
    """Stands in for `SearchIndex.add_entry_from_context` of Material's search."""

    index: Any
    read: Callable[[Page], None]
    shelf: Shelf

    def __call__(self, page: Page) -> None:
        """Add what the index says of a page."""
        self.index.entries += self.of(page)

    def of(self, page: Page) -> list[Any]:
        """What the index says of a page."""
        key = _key(page)
        kept = self.shelf.read(page.file.src_uri, key)
        if isinstance(kept, list):
            return kept
        made = self._made(page)
        self.shelf.write(page.file.src_uri, key, made)
        return made

    def _made(self, page: Page) -> list[Any]:
        before, content = len(self.index.entries), page.content
        try:
            page.content = shown(content or "")
            self.read(page)
        finally:
            page.content = content
        made: list[Any] = self.index.entries[before:]
        del self.index.entries[before:]
        return made


def keep_entries(config: MkDocsConfig, shelf: Shelf) -> None:
    """Let the search plugin take kept entries, where it is the one that is known."""
    index = _index(config)
    read = getattr(index, _READ, None)
    if index is not None and callable(read) and not isinstance(read, Entries):
        setattr(index, _READ, Entries(index, read, shelf))


def read_entries(page: Page, config: MkDocsConfig) -> None:
    """Read a page ahead, so that its entries are kept when the index wants them."""
    entries = getattr(_index(config), _READ, None)
    if isinstance(entries, Entries):
        entries.of(page)


def _index(config: MkDocsConfig) -> Any:
    plugin = next((config.plugins[name] for name in PLUGINS if name in config.plugins), None)
    known = type(plugin).__module__ == "material.plugins.search.plugin"
    if plugin is None or not known or any(plugin.config.get(name) for name in _DICTIONARIES):
        return None
    return getattr(plugin, "search_index", None)


def _key(page: Page) -> str:
    said = [str(page.title), page.url, page.content, contents(page)]
    return digest(program(), said, repr(page.meta))
