"""The first page: for each workload what is cheapest, what is fastest, and how sure that is."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from epochcost.report.answers import Answer
from epochcost.report.charts.figure import Figure
from epochcost.report.figures.dots import machines_compared
from epochcost.report.pages.page import Page, Report
from epochcost.report.rows import Goal, Row
from epochcost.report.subjects import Subject


@dataclass(frozen=True)
class Overview:
    """One workload on the first page."""

    subject: Subject
    answers: tuple[Answer, ...]
    rows: tuple[Row, ...]
    figure: Figure | None

    @property
    def measured(self) -> bool:
        """Whether any of its figures is our own."""
        return any(row.observed.kind == "measured" for row in self.rows)


def overview(report: Report, subject: Subject) -> Overview:
    """What the first page says about a workload."""
    rows = report.rows_of(subject)
    goal: Goal = "epoch" if any(row.training for row in rows) else "million"
    figure = machines_compared(
        rows,
        goal,
        identifier=f"home-{subject.id}",
        job="epoch of training" if goal == "epoch" else "million inferences",
        colours=report.colours,
    )
    return Overview(subject, tuple(report.answers_of(subject).values()), rows, figure)


def pages(report: Report) -> Iterator[Page]:
    """The first page."""
    subjects = [overview(report, subject) for subject in report.subjects]
    # What was measured here comes before what others printed.
    overviews = sorted((one for one in subjects if one.answers), key=lambda one: not one.measured)
    timed = {one.machine.hardware for one in report.observations}
    yield Page(
        uri="index.md",
        title="Which machine is cheapest, and how sure is that?",
        template="home.md.jinja",
        description="What models cost to train and to serve, by machine and price plan.",
        context={
            "overviews": overviews,
            "untimed": [
                one.subject
                for one in subjects
                if not one.answers and one.subject.id not in report.estimated
            ],
            "estimated": [
                (one.subject, rows[0])
                for one in subjects
                if one.subject.is_model and (rows := report.estimated.get(one.subject.id))
            ],
            "machines": len(timed),
            "report": report,
        },
        figures={one.subject.id: one.figure for one in overviews},
    )
