"""Make the pages of published sources: their tables, and our recomputation of their figures."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from typing import get_args

from epochcost.analysis.observations import Workload
from epochcost.analysis.table.lines import Value
from epochcost.cost.claims import Agreement, ClaimCheck, RowChecks, method, recompute
from epochcost.report.pages.page import Page, Report
from epochcost.report.tables import Column, Table
from epochcost.report.wording import price_paid
from epochcost.specs.catalogue import Catalogue
from epochcost.specs.hardware import Hardware
from epochcost.specs.published import Claim, Published, Timing
from epochcost.statistics import group_by
from epochcost.units import plain

_AGREEMENTS: tuple[Agreement, ...] = get_args(Agreement)


@dataclass(frozen=True)
class SourceTable:
    """A source's table and our checks; ``measured`` counts our measurements of its model."""

    spec: Published
    rows: tuple[RowChecks, ...]
    inputs: Table
    workload: Workload | None
    measured: int

    @property
    def method(self) -> str:
        """Describe the method by which we recompute the figures."""
        return method(self.spec)

    @property
    def timed(self) -> list[RowChecks]:
        """The checks of each row; figures that belong to no row are left out."""
        return [row for row in self.rows if row.timing]

    @property
    def batched(self) -> bool:
        """Whether any row states a batch size."""
        return any(row.batch_size for row in self.spec.timings)

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
    model = report.catalogue.models.get(spec.model) if spec.model else None
    workload = Workload.of_model(model) if model else Workload.of_source(spec)
    observed = [each for each in report.observations if each.workload.id == workload.id]
    measured = sum(each.kind == "measured" for each in observed)
    rows = recompute(spec, report.catalogue.prices)
    return SourceTable(
        spec=spec,
        rows=rows,
        inputs=inputs_table(spec, report.catalogue),
        workload=workload if observed or model else None,
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
            "hardware": report.catalogue.hardware,
            "prices": report.catalogue.prices,
            "models": {
                name: Workload.of_model(model) for name, model in report.catalogue.models.items()
            },
        },
    )


_COLUMNS: tuple[tuple[Column, Callable[[Timing], Value]], ...] = (
    (Column("batch_size", "Batch size", "number"), lambda row: row.batch_size),
    (Column("steps_per_epoch", "Steps per epoch", "number"), lambda row: row.steps_per_epoch),
    (Column("steps", "Steps", "number"), lambda row: row.steps),
    (Column("epochs", "Epochs", "number"), lambda row: row.epochs),
    (Column("power_watts", "Power, W", "number"), lambda row: row.power_watts),
    (
        Column("accuracy", "Accuracy, %"),
        lambda row: _spread(row.accuracy_percent, row.accuracy_spread),
    ),
    (Column("runs", "Runs", "number"), lambda row: row.runs),
    (Column("framework", "Framework"), lambda row: row.framework),
    (Column("notes", "Notes"), lambda row: row.notes),
)


def inputs_table(source: Published, catalogue: Catalogue) -> Table:
    """Make a table of a source's rows, with a column for each fact that some row states."""
    used = [
        (column, of)
        for column, of in _COLUMNS
        if any(of(timing) is not None for timing in source.timings)
    ]
    columns = (Column("row", "Row"), Column("time", "Time"), *(column for column, _ in used))
    rows = tuple(
        (
            render_row(timing, catalogue.hardware[timing.hardware]),
            _render_time(timing),
            *(of(timing) for _, of in used),
            _prices(timing, catalogue) or None,
        )
        for timing in source.timings
    )
    return Table((*columns, Column("prices", "Price per hour")), rows)


def render_row(timing: Timing, hardware: Hardware) -> str:
    """Describe a row of a published table, such as "NAME: MACHINE × 2" or just "MACHINE"."""
    count = f" \N{MULTIPLICATION SIGN} {timing.count}" if timing.count > 1 else ""
    named = f"{timing.name}: " if timing.name else ""
    return f"{named}{hardware.name}{count}"


def _prices(timing: Timing, catalogue: Catalogue) -> str:
    names = dict.fromkeys((timing.price, *(claim.price for claim in timing.claims)))
    return "; ".join(price_paid(catalogue.prices[name]) for name in names if name)


def _render_time(timing: Timing) -> str:
    if timing.seconds_per_epoch is not None:
        return f"{plain(timing.seconds_per_epoch)} s an epoch"
    if timing.seconds is not None:
        return f"{plain(timing.seconds)} s"
    return f"{_spread(timing.hours, timing.spread_hours)} h"


def _spread(value: Decimal | None, spread: Decimal | None) -> str | None:
    if value is None:
        return None
    return f"{value:,f} ± {spread:f}" if spread else f"{value:,f}"
