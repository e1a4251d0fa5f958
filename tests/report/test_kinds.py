"""The kinds of job of the first page."""

from __future__ import annotations

import pytest

from epochcost.report.kinds import family, job_kinds
from epochcost.report.pages.page import Report
from epochcost.report.subjects import Subject


@pytest.mark.parametrize(
    ("task", "name", "kind"),
    [
        ("image classification", "x", "image"),
        ("language modelling", "x", "language"),
        ("translation", "x", "language"),
        ("text classification", "x", "other"),
        ("published table", "CIFAR-10 ResNet", "image"),
    ],
)
def test_a_task_tells_the_kind(task: str, name: str, kind: str) -> None:
    """By its words; a published table, which has no task, by its name."""
    assert family(Subject("x", name, task, is_model=True)) == kind


def test_a_kind_is_answered_by_its_most_compared_workload(report: Report) -> None:
    """Figures of two machines come before one of a single machine; the frontier is of it alone."""
    kinds = {
        one.title: one for one in job_kinds(report.subjects, report.rows_of, report.answers_of)
    }
    other = kinds["Train another model"]
    assert other.subject is not None
    assert other.subject.id == "net"
    assert other.answer is not None
    assert other.answer.machines == 2
    assert {row.observed.subject for row in other.frontier} == {other.subject}
    assert kinds["Serve a model"].of == 1


def test_a_kind_without_a_figure_stays_and_has_no_answer(report: Report) -> None:
    """Readers see that nobody measured it; a kind that nobody declared is not invented."""
    kinds = {
        one.title: one for one in job_kinds(report.subjects, report.rows_of, report.answers_of)
    }
    assert kinds["Train an image model"].answer is None
    assert "Train another model" not in {
        one.title for one in job_kinds((), report.rows_of, report.answers_of)
    }
