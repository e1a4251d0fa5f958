"""The page "What changed": costs, cheapest choices and results since the last publication."""

from __future__ import annotations

from collections.abc import Iterator

from epochcost.analysis.difference.changes import Difference
from epochcost.analysis.difference.words import (
    HEADER,
    by_size,
    cells,
    figure_words,
    shown_costs,
    summary,
    winner_words,
)
from epochcost.report.pages.changelog import changelog
from epochcost.report.pages.page import Page, Report
from epochcost.report.tables import Column, Table

# A page is read; all changes are a command away.
MOST_ROWS = 100


def pages(report: Report) -> Iterator[Page]:
    """The one page."""
    found = report.publication.changes
    yield Page(
        uri="changed.md",
        title="What changed",
        template="changed.md.jinja",
        description="Costs, cheapest choices and results that changed since the last publication.",
        context={
            "changelog": bool(changelog(report)),
            "publication": report.publication,
            "changes": found,
            "summary": summary(found) if found else "",
            "costs": _costs(found) if found else None,
            "left": max(0, len(shown_costs(found)) - MOST_ROWS) if found else 0,
            "winners": [winner_words(one) for one in found.winners] if found else [],
            "figures": [figure_words(one) for one in found.figures[:MOST_ROWS]] if found else [],
            "figures_left": max(0, len(found.figures) - MOST_ROWS) if found else 0,
            "results": found.results.by_kind() if found else {},
        },
    )


def _costs(found: Difference) -> Table:
    """The costs that changed most."""
    columns = tuple(Column(name, name.capitalize()) for name in HEADER)
    return Table(columns, tuple(cells(one) for one in by_size(shown_costs(found))[:MOST_ROWS]))
