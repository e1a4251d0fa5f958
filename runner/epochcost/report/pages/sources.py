"""Make the pages of published sources: their tables, and our recomputation of their figures."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import get_args

from epochcost.analysis.observations import Workload
from epochcost.cost.claims import Agreement, ClaimCheck, RowChecks, method, recompute
from epochcost.report.pages.page import Page, Report
from epochcost.specs.published import Claim, Published, Timing
from epochcost.statistics import group_by

_AGREEMENTS: tuple[Agreement, ...] = get_args(Agreement)
# Facts of a source's row, by field, with their titles.
_FACTS = {
    "batch_size": "Batch size",
    "steps_per_epoch": "Steps per epoch",
    "steps": "Steps",
    "epochs": "Epochs",
    "power_watts": "Power, W",
    "accuracy_percent": "Accuracy, %",
    "runs": "Runs",
    "framework": "Framework",
    "notes": "Notes",
}


@dataclass(frozen=True)
class SourceTable:
    """A source's table and our checks; ``measured`` counts our measurements of its model."""

    spec: Published
    rows: tuple[RowChecks, ...]
    workload: Workload | None
    measured: int

    @property
    def facts(self) -> Mapping[str, str]:
        """The titles of the facts that some row states, by field."""
        rows = self.spec.timings
        return {
            name: title
            for name, title in _FACTS.items()
            if any(getattr(row, name) is not None for row in rows)
        }

    @property
    def timed(self) -> list[RowChecks]:
        """The checks of each row; figures that belong to no row are left out."""
        return [row for row in self.rows if row.timing]

    @cached_property
    def columns(self) -> list[Claim]:
        """A claim for each column of the page's table; its label is the column's heading.

        A label gets a column if at least half of the source's rows have a claim (a number) with it.
        """
        claims = [check.claim for row in self.timed for check in row.checks]
        counts = Counter(claim.label for claim in claims)
        first = {claim.label: claim for claim in reversed(claims)}
        return [first[label] for label in counts if 2 * counts[label] >= len(self.timed)]

    @property
    def grid(self) -> Iterator[tuple[Timing, list[ClaimCheck | None]]]:
        """Yield each row with claims, and its check (None if it lacks one) for each column."""
        for row in self.timed:
            if row.timing and row.checks:
                by_label = {check.claim.label: check for check in row.checks}
                yield row.timing, [by_label.get(column.label) for column in self.columns]

    @property
    def unlisted(self) -> list[tuple[Timing | None, ClaimCheck]]:
        """The checks that the page's table does not show, each with the row that it checks."""
        labels = {column.label for column in self.columns}
        checks = [(row.timing, check) for row in self.rows for check in row.checks]
        return [
            (row, check) for row, check in checks if row is None or check.claim.label not in labels
        ]

    @property
    def differences(self) -> list[tuple[Timing | None, ClaimCheck]]:
        """Checks of figures that we cannot reproduce exactly, each with its row or None."""
        return [(row.timing, check) for row in self.rows for check in row.checks if not check.equal]


def pages(report: Report) -> Iterator[Page]:
    """Yield the list of sources, and then every source's page."""
    tables = (_table(report, spec) for _, spec in sorted(report.catalogue.published.items()))
    sources = group_by(tables, lambda table: table.spec.page).values()
    yield Page(
        uri="sources/index.md",
        title="Published sources",
        template="sources.md.jinja",
        context={
            "listed": [
                (listed[0].spec, listed, _agreement_counts_by_origin(listed)) for listed in sources
            ],
            "agreements": _AGREEMENTS,
            "observations": report.catalogue.observations.values(),
        },
        description="Published cost tables, and whether we can reproduce them.",
    )
    for listed in sources:
        yield _page(report, listed)


def _agreement_counts_by_origin(tables: Iterable[SourceTable]) -> dict[str, Counter[Agreement]]:
    checks = [check for table in tables for row in table.rows for check in row.checks]
    return {
        origin: Counter(check.agreement for check in checks if check.claim.shown == origin)
        for origin in ("printed", "drawn", "derived")
    }


def _table(report: Report, spec: Published) -> SourceTable:
    workload = Workload.of_source(report.catalogue, spec)
    observed = [each for each in report.observations if each.workload.id == workload.id]
    measured = sum(each.kind == "measured" for each in observed)
    rows = recompute(spec, report.catalogue.prices)
    return SourceTable(
        spec=spec,
        rows=rows,
        workload=workload if observed or workload.is_model else None,
        measured=measured,
    )


def _page(report: Report, tables: Sequence[SourceTable]) -> Page:
    first = tables[0].spec
    return Page(
        uri=f"sources/{first.page}.md",
        title=first.title,
        template="source.md.jinja",
        description=f"The published costs of {first.authors}, {first.year}, recomputed.",
        context={
            "source": first,
            "tables": tables,
            "tallies": _agreement_counts_by_origin(tables),
            "agreements": _AGREEMENTS,
            "method": method,
            "hardware": report.catalogue.hardware,
            "prices": report.catalogue.prices,
            "models": {
                name: Workload.of_model(model) for name, model in report.catalogue.models.items()
            },
        },
    )
