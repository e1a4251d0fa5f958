"""The pages of published sources: their tables, and our recomputation beside what they print."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from epochcost.cost import ClaimCheck, recompute
from epochcost.report.pages.page import Page, Report, subject_uri
from epochcost.report.subjects import Subject
from epochcost.specs.price import Price
from epochcost.specs.published import Published, Timing


@dataclass(frozen=True)
class Recomputed:
    """One row of a source's table with its price and its claims checked."""

    timing: Timing
    price: Price
    checks: tuple[ClaimCheck, ...]


def pages(report: Report) -> Iterator[Page]:
    """The list, then every source's page."""
    sources = [(one, _recomputed(report, one)) for one in report.catalogue.published.values()]
    yield Page(
        uri="sources/index.md",
        title="Published sources",
        template="sources.md.jinja",
        context={"listed": [(one, _tally(rows)) for one, rows in sources]},
        description="Published cost tables, and whether their figures come out again.",
    )
    for source, rows in sources:
        yield _page(report, source, rows)


def _recomputed(report: Report, source: Published) -> list[Recomputed]:
    found = []
    for timing in source.timings:
        price = report.catalogue.prices[timing.price]
        checks = recompute(timing, price) if price.currency == "USD" else ()
        found.append(Recomputed(timing, price, checks))
    return found


def _tally(rows: list[Recomputed]) -> tuple[int, int]:
    """How many costs that the source itself prints come out again, of how many."""
    checks = [check for row in rows for check in row.checks if not check.claim.derived]
    return sum(check.equal for check in checks), len(checks)


def _page(report: Report, source: Published, rows: list[Recomputed]) -> Page:
    model = report.catalogue.models.get(source.model) if source.model else None
    subject = Subject.of_model(model) if model else Subject.of_source(source)
    return Page(
        uri=f"sources/{source.id}.md",
        title=source.title,
        template="source.md.jinja",
        description=f"{source.workload}: the published figures of {source.authors}, recomputed.",
        context={
            "source": source,
            "subject": subject,
            "subject_uri": subject_uri(subject),
            "rows": rows,
            "tally": _tally(rows),
            "hardware": report.catalogue.hardware,
        },
    )
