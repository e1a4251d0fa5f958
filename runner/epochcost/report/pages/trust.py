"""Make the page about errors of predictions: their size, and what relying on predictions costs."""

from __future__ import annotations

from collections.abc import Iterator

from epochcost.analysis.prediction_trust import COMMAND, TRUST_FILE
from epochcost.report.charts.withheld import predicted_against_true
from epochcost.report.pages.page import Page, Report

# Generations with this many rows should have this share of intervals with the truth.
_ENOUGH, _AIM = 30, 0.82


def pages(report: Report) -> Iterator[Page]:
    """Yield the page about errors of predictions."""
    trust = report.trust
    tables = report.catalogue.tables_of("examples")
    yield Page(
        uri="predictions.md",
        title="How accurate the predictions are",
        template="trust.md.jinja",
        description="Errors of predicted times, where the truth is known.",
        context={
            "trust": trust,
            "doubtful": [
                group.name
                for group in (trust.groups["generation"] if trust else ())
                if group.errors.rows >= _ENOUGH and group.errors.coverage < _AIM
            ],
            "enough": _ENOUGH,
            "aim": _AIM,
            "tables": [table for table in tables if not table.tuned],
            "notices": sorted({table.notice for table in tables if table.notice}),
            "file": TRUST_FILE,
            "command": COMMAND,
        },
        figures={
            "rows": predicted_against_true(trust.shown, identifier="predicted-true")
            if trust
            else None
        },
    )
