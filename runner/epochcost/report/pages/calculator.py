"""The page "Calculator": any size of job, priced in the browser by the cost engine's formulas."""

from __future__ import annotations

from collections.abc import Iterator

from epochcost.report.calculator import URI, calculator
from epochcost.report.pages.page import Page, Report


def pages(report: Report) -> Iterator[Page]:
    """The one page."""
    known = calculator(report.rows)
    yield Page(
        uri="calculator.md",
        title="Calculator",
        template="calculator.md.jinja",
        description="What a training or serving job of your size costs, on every machine and plan.",
        context={"works": known["works"], "start": known["start"], "data": URI},
    )
