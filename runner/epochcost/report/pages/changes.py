"""Make the pages "What changed" (since the last published site), "Changelog", "Contributing"."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from markupsafe import Markup

from epochcost.analysis.difference.changes import Difference
from epochcost.analysis.difference.rendering import HEADER, cells, sections, shown_costs, summary
from epochcost.errors import InputError
from epochcost.report.pages.page import Page, Report

_COMMIT = re.compile("[0-9a-f]{40}")
_CHANGELOG = "CHANGELOG.md"
_FILES = {
    _CHANGELOG: ("Changelog", "Changes that users of the program notice."),
    "CONTRIBUTING.md": ("Contributing", "How to get the code, and how to check and send a change."),
}
# Links to files of the project that are not pages.
_NO_PAGE = re.compile(r"\[([^\]]*)\]\((?!docs/|https?:)[^)]*\)")
# `epochcost diff` lists all changes.
MOST_ROWS = 100
_TITLES = {
    "predictions": "Predictions",
    "figures": "Other specs",
    "results_added": "Results added",
    "results_removed": "Results removed",
    "results_measured_again": "Results measured again",
    "results_stale": "Results stale",
    "left_out": "Left out",
}


def pages(report: Report) -> Iterator[Page]:
    """Yield the page of changes, then the changelog and the guide to contributing, if present."""
    yield _changed(report)
    for name, (title, description) in _FILES.items():
        if text := _file_below_heading(report, name):
            yield Page(
                uri=name.lower(),
                title=title,
                template="file.md.jinja",
                description=description,
                context={"text": Markup(text)},  # noqa: S704  hand-written Markdown, as docs/ is
            )


def _changed(report: Report) -> Page:
    changes, since = report.changes, report.publication.since
    context: dict[str, Any] = {
        "changelog": bool(_file_below_heading(report, _CHANGELOG)),
        # The revision of the last publication.
        "since": since[: 8 if _COMMIT.fullmatch(since) else 40],
        "day": report.publication.day,
        "reason": changes if isinstance(changes, str) else "",
    }
    if not isinstance(changes, str):
        context |= _shown_changes(changes)
    return Page(
        uri="changed.md",
        title="What changed",
        template="changed.md.jinja",
        description="Costs, cheapest choices and results that changed since the last publication.",
        context=context,
    )


def _shown_changes(changes: Difference) -> dict[str, Any]:
    costs, listed = shown_costs(changes.costs), sections(changes)
    return {
        "summary": summary(changes),
        "header": [name.capitalize() for name in HEADER],
        "costs": [cells(cost) for cost in costs[:MOST_ROWS]],
        # The number of changed costs that are not shown.
        "left": max(0, len(costs) - MOST_ROWS),
        "winners": (*listed["winners"], *listed["winners_changed"]),
        "sections": {title: listed[name] for name, title in _TITLES.items() if listed.get(name)},
    }


def _file_below_heading(report: Report, file_name: str) -> str:
    """A file's text without its first heading; empty if missing. Raises InputError for a link."""
    path = report.catalogue.models_folder.parent / file_name
    # A link may lead to any file on the machine that builds the site.
    if path.is_symlink():
        raise InputError(f"{path}: expected a file, got a link")
    if not path.is_file():
        return ""
    lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    headed = bool(lines) and lines[0].startswith("# ")
    text = _NO_PAGE.sub(r"\1", "\n".join(lines[headed:]).strip())
    # Links to files in docs/ become links to pages.
    return text.replace("](docs/", "](")
