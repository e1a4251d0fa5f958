"""Make the page "Data": the files of all figures, their columns, and how to cite them."""

from __future__ import annotations

from collections.abc import Iterator

from epochcost.report.pages.page import Page, Report


def pages(report: Report) -> Iterator[Page]:
    """Yield the page "Data"."""
    yield Page(
        uri="data.md",
        title="Data",
        template="data.md.jinja",
        description="All results of the site as Parquet, CSV and JSON.",
        context={"lines": report.lines, "stored": report.inputs.stored},
    )
