"""The order of all pages, generated and hand-written, as MkDocs takes it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from itertools import pairwise
from typing import Any

from epochcost.report.escape import page_title
from epochcost.report.site import Section, Site

# The most pages that stand in a list of the navigation.
_MOST = 30
_METHOD = "method.md"
_DECISIONS = "decisions/"


def navigation(site: Site, written: Iterable[str]) -> list[Any]:
    """Sections of the report, then the method with all other hand-written pages, then decisions.

    Pages stand as bare addresses: their own titles, which are escaped, name them. A long section is
    cut into groups by the titles of its pages: every page carries the open parts of the navigation.
    """
    pages = sorted(uri for uri in written if uri not in site.pages)
    decisions = [uri for uri in pages if uri.startswith(_DECISIONS)]
    method = sorted(set(pages) - set(decisions), key=_method_order)
    sections = [_entry(section) for section in site.sections]
    documents: Mapping[str, list[str]] = {"Method": method, "Decisions": decisions}
    return sections + [{title: uris} for title, uris in documents.items() if uris]


def _entry(section: Section) -> Any:
    first, *others = section.pages
    if not others:
        return {section.title: first}
    if len(others) <= _MOST:
        return {section.title: [first, *others]}
    ordered = sorted(others, key=lambda uri: (section.pages[uri].casefold(), uri))
    return {section.title: [first, *map(partial(_group, section), _runs(ordered))]}


def _runs(uris: Sequence[str]) -> list[Sequence[str]]:
    """Neighbours in groups of one size or one less, as few as hold no more than ``_MOST`` each."""
    count = -(-len(uris) // _MOST)
    ends = [len(uris) * part // count for part in range(count + 1)]
    return [uris[begin:end] for begin, end in pairwise(ends)]


def _group(section: Section, uris: Sequence[str]) -> dict[str, list[str]]:
    first, last = (page_title(section.pages[uri]) for uri in (uris[0], uris[-1]))
    return {f"{first} … {last}": list(uris)}


def _method_order(uri: str) -> tuple[bool, bool, str]:
    return uri != _METHOD, not uri.startswith("method/"), uri
