"""The kinds of job of the first page."""

from __future__ import annotations

from pathlib import Path

import pytest

from epochcost.analysis.kinds import family, job_kinds
from epochcost.analysis.observations import Workload
from epochcost.report.pages.page import Report
from report_project import default_results, inputs_of, make_result, store_results, write_project
from served_results import under_load


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
    assert family(Workload("x", name, task, is_model=True)) == kind


def test_a_kind_is_answered_by_its_most_compared_workload(report: Report) -> None:
    """Figures of two machines come before one of a single machine; the frontier is of it alone."""
    kinds = {
        one.title: one for one in job_kinds(report.workloads, report.rows_of, report.answers_of)
    }
    other = kinds["Train another model"]
    assert other.workload is not None
    assert other.workload.id == "net"
    assert other.answer is not None
    assert other.answer.machines == 2
    assert {row.observed.workload for row in other.frontier} == {other.workload}
    assert kinds["Serve a model"].of == 1


def test_serving_is_one_by_one_and_bulk_is_not(report: Report) -> None:
    """No request waits for another, so only batches of one serve; the others are bulk."""
    kinds = {one.way: one for one in job_kinds(report.workloads, report.rows_of, report.answers_of)}
    assert {row.observed.batch_size for row in kinds["requests"].rows} == {1}
    assert {row.observed.batch_size for row in kinds["bulk"].rows} == {32}
    assert kinds["bulk"].title == "Run a million inferences in bulk"


def test_measured_servers_serve_instead(tmp_path: Path) -> None:
    """A server that kept its bound is a service; one that kept none leaves batches of one."""
    results = [*default_results(), under_load(make_result())]
    for kept in (True, False):
        results[-1] = under_load(make_result(), kept=kept)
        report = Report(inputs_of(write_project(tmp_path / str(kept), results)))
        ways = (report.workloads, report.rows_of, report.answers_of, report.serving)
        (serve,) = (one for one in job_kinds(*ways) if one.way == "requests")
        assert (serve.service is not None) is kept
        assert (serve.answer is None) is kept
        assert serve.workload is not None
        assert serve.workload.id == "net"


def test_of_equals_an_image_model_is_labelled_in_bulk(tmp_path: Path) -> None:
    """One image is a plain unit of work."""
    project = write_project(tmp_path)
    spec = project / "specs/models/silent.toml"
    text = spec.read_text(encoding="utf-8").replace('"classification"', '"image classification"')
    spec.write_text(text, encoding="utf-8")
    store_results(project, [make_result(mode="inference", model="silent", batch_size=8)])
    report = Report(inputs_of(project))
    found = job_kinds(report.workloads, report.rows_of, report.answers_of)
    kind = next(one for one in found if one.way == "bulk")
    assert kind.title == "Label a million images in bulk"
    assert kind.workload is not None
    assert kind.workload.id == "silent"


def test_a_kind_without_a_figure_stays_and_has_no_answer(report: Report) -> None:
    """Readers see that nobody measured it; a kind that nobody declared is not invented."""
    kinds = {
        one.title: one for one in job_kinds(report.workloads, report.rows_of, report.answers_of)
    }
    assert kinds["Train an image model"].answer is None
    assert "Train another model" not in {
        one.title for one in job_kinds((), report.rows_of, report.answers_of)
    }
