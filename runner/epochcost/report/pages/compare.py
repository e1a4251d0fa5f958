"""The page "Compare": any two machines, models or dates of prices side by side."""

from __future__ import annotations

from collections.abc import Iterator

from epochcost.report.comparison import URI, pairs
from epochcost.report.pages.page import Page, Report


def pages(report: Report) -> Iterator[Page]:
    """The one page."""
    yield Page(
        uri="compare.md",
        title="Compare",
        template="compare.md.jinja",
        description="Any two machines, models or dates of prices side by side.",
        context={
            "priced": any(row.price for row in report.rows),
            "pairs": pairs(report),
            "data": URI,
        },
    )
