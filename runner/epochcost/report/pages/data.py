"""The pages of data: the files of all figures with their columns, and how to cite and embed."""

from __future__ import annotations

from collections.abc import Iterator

from epochcost.analysis.table.columns import ENTRIES
from epochcost.report.pages.page import Page, Report


def pages(report: Report) -> Iterator[Page]:
    """The page of data, and that about citing and embedding."""
    yield Page(
        uri="data.md",
        title="Data",
        template="data.md.jinja",
        description="All results of the site as Parquet, CSV and JSON, with a data dictionary.",
        context={
            "columns": ENTRIES,
            "lines": report.lines,
            "stored": report.inputs.stored,
        },
    )
    yield Page(
        uri="sharing.md",
        title="Cite, embed, link",
        template="sharing.md.jinja",
        description="Charts to embed, and how to cite the results of the site.",
        context={},
    )
