"""The first page: for each kind of job what is cheapest, what is fastest, and what lies between."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from epochcost.analysis.kinds import JobKind, job_kinds
from epochcost.report.charts.cost_time import cost_against_time
from epochcost.report.charts.figure import Figure
from epochcost.report.pages.page import Page, Report
from epochcost.report.wording import full_training_words, way_words


def pages(report: Report) -> Iterator[Page]:
    """The first page."""
    kinds = job_kinds(report.workloads, report.rows_of, report.answers_of, report.serving)
    timed = {one.machine.hardware for one in report.observations}
    untimed = [
        one
        for one in report.workloads
        if not report.answers_of(one) and one.id not in report.estimated
    ]
    yield Page(
        uri="index.md",
        title="Which machine is cheapest, and how sure is that?",
        template="home.md.jinja",
        description="What models cost to train and to serve, by machine and price plan.",
        context={
            "kinds": kinds,
            "measured": [one.date for one in report.observations if one.kind == "measured"],
            "machines": len(timed),
            "workloads": sum(bool(report.answers_of(one)) for one in report.workloads),
            "estimated": [
                (one, rows[0])
                for one in report.workloads
                if one.is_model and (rows := report.estimated.get(one.id))
            ],
            "untimed": untimed,
            "report": report,
        },
        figures={"answer": _figure(report, kinds)},
    )


def _figure(report: Report, kinds: Sequence[JobKind]) -> Figure | None:
    """The one chart: of the kind that most machines are compared for, the first of equals."""
    answered = [one for one in kinds if one.answer and one.answer.cheapest and one.workload]
    if not answered:
        return None
    kind = max(answered, key=lambda one: one.answer.machines if one.answer else 0)
    epochs = (row.observed.epochs for row in kind.rows if row.mode == "training")
    words = full_training_words(epochs) if kind.way == "training" else way_words(kind.way)
    return cost_against_time(
        kind.rows,
        kind.goal,
        identifier="home-cost-time",
        job=words,
        colours=report.colours,
    )
