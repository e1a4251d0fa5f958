"""The page of data: every row as one file, what its columns mean, and all result files."""

from __future__ import annotations

from collections.abc import Iterator

from epochcost.report.dataset.columns import ENTRIES
from epochcost.report.pages.page import Page, Report


def pages(report: Report) -> Iterator[Page]:
    """The one page."""
    yield Page(
        uri="data.md",
        title="Data",
        template="data.md.jinja",
        description="All figures of the site as Parquet, CSV and JSON, with a data dictionary.",
        context={
            "columns": ENTRIES,
            "lines": report.lines,
            "stored": report.inputs.stored,
        },
    )
