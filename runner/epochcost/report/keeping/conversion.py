"""The HTML of a page's Markdown, kept by its text and by the links that it asked for.

MkDocs checks links while it converts. So what a page's links led to is kept with its HTML, and the
HTML is taken again only where each of them leads to the same; a page whose conversion logged
anything is converted every time, so that it says so every time.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, cast

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page
from mkdocs.structure.toc import AnchorLink, get_toc

from epochcost.report.keeping.origin import program
from epochcost.report.keeping.shelf import Shelf, digest

# Extensions that read nothing but the text and their options. Any other, and nothing is kept.
_PURE = frozenset(
    [
        *("abbr", "admonition", "attr_list", "def_list", "fenced_code", "footnotes"),
        *("md_in_html", "tables", "toc"),
        *(f"pymdownx.{name}" for name in ("details", "highlight", "inlinehilite")),
        *("pymdownx.superfences", "pymdownx.tabbed"),
    ]
)
_LOGGER = logging.getLogger("mkdocs")

# What a link led to: an address and whether the file is left out of the site; None: no file.
Lead = tuple[str, bool] | None


def conversion(config: MkDocsConfig) -> str | None:
    """All that shapes every page's HTML; None where a part of it cannot be said."""
    if not _PURE.issuperset(config.markdown_extensions):
        return None
    try:
        return digest(
            program(),
            config.markdown_extensions,
            config.mdx_configs,
            config.use_directory_urls,
            repr(config.validation),
            _LOGGER.getEffectiveLevel(),
        )
    except TypeError:  # a function or an object as an option
        return None


@dataclass(frozen=True, slots=True)
class Converter:
    """Stands in for `Page.render` of one page."""

    page: Page
    shelf: Shelf
    shape: str

    def __call__(self, config: MkDocsConfig, files: Files) -> None:
        """Give the page its HTML, table of contents, anchors and links."""
        page, key = self.page, self._key()
        if _restored(page, files, self.shelf.read(page.file.src_uri, key)):
            return
        asked = Asked(files)
        with _logged() as messages:
            Page.render(page, config, cast(Files, asked))
        if not messages:
            self.shelf.write(page.file.src_uri, key, _record(page, asked))

    def kept(self) -> bool:
        """Whether HTML is kept for the page's text, wherever its links now lead."""
        return self.shelf.has(self.page.file.src_uri, self._key())

    def _key(self) -> str:
        file = self.page.file
        return digest(self.shape, file.src_uri, file.url, file.inclusion.name, self.page.markdown)


@dataclass(frozen=True, slots=True)
class Asked:
    """The site's files, as far as a conversion asks; remembers each answer."""

    files: Files
    leads: dict[str, Lead] = field(default_factory=dict)

    def get_file_from_path(self, path: str) -> File | None:
        """As `Files` does."""
        file = self.files.get_file_from_path(path)
        self.leads[path] = _lead(file)
        return file


def _lead(file: File | None) -> Lead:
    return None if file is None else (file.url, bool(file.inclusion.is_excluded()))  # type: ignore[no-untyped-call]


class _Remembering(logging.Handler):
    def __init__(self) -> None:
        super().__init__()
        self.records: list[logging.LogRecord] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.records.append(record)


@contextmanager
def _logged() -> Iterator[list[logging.LogRecord]]:
    """What is logged meanwhile, by MkDocs or by a library."""
    handler = _Remembering()
    loggers = (_LOGGER, logging.getLogger())
    for logger in loggers:
        logger.addHandler(handler)
    try:
        yield handler.records
    finally:
        for logger in loggers:
            logger.removeHandler(handler)


def _record(page: Page, asked: Asked) -> dict[str, Any]:
    links = page.links_to_anchors
    return {
        "content": page.content,
        "contents": contents(page),
        "title": page._title_from_render,
        "anchors": sorted(page.present_anchor_ids or ()),
        "links": links and {file.src_uri: anchors for file, anchors in links.items()},
        "leads": asked.leads,
    }


def contents(page: Page) -> list[Any]:
    """The table of contents as JSON values."""
    return [_token(link) for link in page.toc]


def _token(link: AnchorLink) -> dict[str, Any]:
    children = [_token(child) for child in link.children]
    return {"name": link.title, "id": link.id, "level": link.level, "children": children}


def _restored(page: Page, files: Files, record: Any) -> bool:
    """Whether the page now is as its conversion would leave it."""
    if record is None or not _leads_alike(files, record["leads"]):
        return False
    links: dict[File, dict[str, str]] = {}
    for uri, anchors in (record["links"] or {}).items():
        file = files.get_file_from_path(uri)
        if file is None:
            return False
        links[file] = anchors
    page.content = record["content"]
    page.toc = get_toc(record["contents"])
    page._title_from_render = record["title"]
    page.present_anchor_ids = set(record["anchors"])
    page.links_to_anchors = None if record["links"] is None else links
    return True


def _leads_alike(files: Files, leads: dict[str, Sequence[Any] | None]) -> bool:
    return all(
        _lead(files.get_file_from_path(path)) == (None if lead is None else tuple(lead))
        for path, lead in leads.items()
    )
