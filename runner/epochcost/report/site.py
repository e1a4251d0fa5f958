"""Compute the site's contents in memory: pages, generated files, charts, and the order of pages.

A page's address is the path of its source below the docs folder. Other modules draw the charts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from jinja2 import Environment

from epochcost.analysis.difference.changes import PUBLICATION_URI, Publication
from epochcost.analysis.inputs import Inputs
from epochcost.errors import InputError
from epochcost.report import feed
from epochcost.report.api import api_files
from epochcost.report.charts.figure import Figure
from epochcost.report.charts.theme import stylesheet
from epochcost.report.dataset import data_files
from epochcost.report.escape import page_title
from epochcost.report.pages import (
    accuracy,
    calculator,
    changes,
    data,
    home,
    machines,
    prices,
    rent_or_buy,
    sources,
    spot,
    trust,
    workload,
)
from epochcost.report.pages.page import Page, Report, html
from epochcost.report.tables import as_csv, as_json
from epochcost.report.templates import environment, render
from epochcost.report.traffic import token_files
from epochcost.specs.catalogue import Catalogue

# Sections of the navigation, in order.
PAGES: Mapping[str, Callable[[Report], Iterator[Page]]] = {
    "Home": home.pages,
    "Models": workload.pages,
    "Machines": machines.pages,
    "Prices": prices.pages,
    "Calculator": calculator.pages,
    "Rent or buy": rent_or_buy.pages,
    "Spot machines": spot.pages,
    "Accuracy": accuracy.pages,
    "Sources": sources.pages,
    "Predictions": trust.pages,
    "Changes": changes.pages,
    "Data": data.pages,
}
ASSETS = "assets"
_UNKNOWN = Publication()


@dataclass(frozen=True)
class Site:
    """All that the report adds to the hand-written pages, by address (``figures`` by id).

    ``pages`` are Markdown. ``results`` are stored files, which are copied. ``embedded`` has a page
    for each chart alone. ``sections`` has the titles of each section's pages, the main page first.
    """

    pages: Mapping[str, str]
    files: Mapping[str, str | bytes]
    results: Mapping[str, Path]
    figures: Mapping[str, Figure]
    sections: Mapping[str, Mapping[str, str]]
    embedded: Mapping[str, str]


def build(inputs: Inputs, templates: Path, published: Publication = _UNKNOWN) -> Site:
    """Compute the site from its inputs; raises InputError if a template is invalid."""
    report = Report(inputs, published)
    jinja = environment(templates, report.currency or "USD")
    groups = {title: tuple(pages(report)) for title, pages in PAGES.items()}
    pages = [page for group in groups.values() for page in group]
    figures = {fig.id: fig for page in pages for fig in page.figures.values() if fig}
    return Site(
        pages={page.uri: render(jinja, page) for page in pages},
        files={
            **dict(_asset_files(templates)),
            **dict(data_files(report.lines)),
            feed.URI: feed.feed(report),
            **dict(api_files(report)),
            **dict(_data(report, figures)),
        },
        results={
            **{stored.uri: stored.path for stored in inputs.stored},
            **{inputs.uri_of(path): path for path in inputs.ceilings},
            **dict(_observation_table_files(inputs.catalogue)),
        },
        figures=figures,
        sections={
            title: {page.uri: page.title for page in group} for title, group in groups.items()
        },
        embedded=dict(_embeddable_figure_pages(jinja, pages)),
    )


def _observation_table_files(catalogue: Catalogue) -> Iterator[tuple[str, Path]]:
    for table_spec in catalogue.observations.values():
        spec_file = catalogue.files[f"observations/{table_spec.id}"]
        for name in (table_spec.table, table_spec.decoders, table_spec.machines):
            if name is not None:
                yield f"data/observations/{name}", spec_file.with_name(name)


def _embeddable_figure_pages(
    templates: Environment, pages: Iterable[Page]
) -> Iterator[tuple[str, str]]:
    template = templates.get_template("pages/embed.html.jinja")
    for page in pages:
        for figure in page.figures.values():
            if figure is not None:
                text = template.render(figure=figure, page=html(page.uri), title=page.title)
                yield f"embed/{figure.id}.html", text


def _asset_files(templates: Path) -> Iterator[tuple[str, bytes]]:
    folder = templates / ASSETS
    for path in sorted(folder.rglob("*")):
        if path.is_symlink():
            raise InputError(f"{path}: expected a file, got a link")
        if path.is_file():
            yield f"{ASSETS}/{path.relative_to(folder).as_posix()}", path.read_bytes()
    yield f"{ASSETS}/palette.css", stylesheet().encode()


def _data(report: Report, figures: Mapping[str, Figure]) -> Iterator[tuple[str, str]]:
    yield from calculator.files(report)
    yield from token_files(report)
    yield home.URI, home.script(report)
    yield PUBLICATION_URI, report.publication.file()
    for figure in figures.values():
        yield f"data/figures/{figure.id}.csv", as_csv(figure.data.table)
        yield f"data/figures/{figure.id}.json", as_json(figure.data.table)


# The most pages in a list of the navigation.
_MOST_LISTED = 30
# Sections that lead the navigation; the others are under "More".
_FIRST = ("Home", "Models", "Machines", "Prices", "Calculator")
# Kinds of hand-written pages by their folder; other pages come before them.
_KINDS = {
    "How-to": "how-to/",
    "Reference": "reference/",
    "Explanation": "explanation/",
    "Decisions": "decisions/",
}


def navigation(site: Site, written: Iterable[str]) -> list[Any]:
    """Make the navigation: sections of the report, and then the hand-written pages (``written``).

    Entries have addresses but no titles, because MkDocs takes the titles from the pages.
    """
    sections = {title: _entry(title, pages) for title, pages in site.sections.items()}
    more = [sections[title] for title in sections if title not in _FIRST]
    groups = {
        "More": more,
        "Docs": _hand_written_page_groups(sorted(uri for uri in written if uri not in site.pages)),
    }
    leading = [sections[title] for title in _FIRST if title in sections]
    return [*leading, *({title: entries} for title, entries in groups.items() if entries)]


def _hand_written_page_groups(uris: Sequence[str]) -> list[Any]:
    kinds = {
        title: sorted(
            (uri for uri in uris if uri.startswith(folder)),
            # The overview comes first.
            key=lambda uri: not uri.endswith("/index.md"),
        )
        for title, folder in _KINDS.items()
    }
    plain = [uri for uri in uris if not uri.startswith(tuple(_KINDS.values()))]
    # The tutorial comes first.
    plain.sort(key=lambda uri: uri != "start.md")
    return [*plain, *({title: pages} for title, pages in kinds.items() if pages)]


def _entry(title: str, pages: Mapping[str, str]) -> Any:
    first, *following = pages
    if not following:
        return {title: first}
    if len(following) <= _MOST_LISTED:
        return {title: [first, *following]}
    ordered = sorted(following, key=lambda uri: (pages[uri].casefold(), uri))
    return {title: [first, *(_group(pages, uris) for uris in _nearly_equal_groups(ordered))]}


def _nearly_equal_groups(uris: Sequence[str]) -> list[Sequence[str]]:
    count = -(-len(uris) // _MOST_LISTED)
    ends = [len(uris) * part // count for part in range(count + 1)]
    return [uris[begin:end] for begin, end in pairwise(ends)]


def _group(pages: Mapping[str, str], uris: Sequence[str]) -> dict[str, list[str]]:
    first, last = (page_title(pages[uri]) for uri in (uris[0], uris[-1]))
    return {f"{first} … {last}": list(uris)}
