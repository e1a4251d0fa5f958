"""The order of all pages, generated and hand-written, as MkDocs takes it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from epochcost.report.site import Section, Site

_METHOD = "method.md"
_DECISIONS = "decisions/"


def navigation(site: Site, written: Iterable[str]) -> list[Any]:
    """Sections of the report, then the method with all other hand-written pages, then decisions.

    Pages stand as bare addresses: their own titles, which are escaped, name them.
    """
    pages = sorted(uri for uri in written if uri not in site.pages)
    decisions = [uri for uri in pages if uri.startswith(_DECISIONS)]
    method = sorted(set(pages) - set(decisions), key=_method_order)
    sections = [_entry(section) for section in site.sections]
    documents: Mapping[str, list[str]] = {"Method": method, "Decisions": decisions}
    return sections + [{title: uris} for title, uris in documents.items() if uris]


def _entry(section: Section) -> Any:
    uris = list(section.uris)
    return {section.title: uris[0] if len(uris) == 1 else uris}


def _method_order(uri: str) -> tuple[bool, bool, str]:
    return uri != _METHOD, not uri.startswith("method/"), uri
