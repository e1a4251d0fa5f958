"""The pages of data: every row as one file with its columns and sources, and what others may show.

That is badges, charts in a frame, and how to cite.
"""

from __future__ import annotations

from collections.abc import Iterator

from epochcost.report.cards import badges_of
from epochcost.report.croissant import json_ld
from epochcost.report.dataset.columns import ENTRIES
from epochcost.report.pages.page import Page, Report


def pages(report: Report) -> Iterator[Page]:
    """The page of data, and that of what others may show."""
    yield Page(
        uri="data.md",
        title="Data",
        template="data.md.jinja",
        description="All results of the site as Parquet, CSV and JSON, with a data dictionary.",
        context={
            "columns": ENTRIES,
            "lines": report.lines,
            "stored": report.inputs.stored,
            "json_ld": json_ld(report),
        },
    )
    yield Page(
        uri="sharing.md",
        title="Cite, embed, link",
        template="sharing.md.jinja",
        description="Badges, charts to embed, and how to cite the results of the site.",
        context={"badges": badges_of(report)},
    )
