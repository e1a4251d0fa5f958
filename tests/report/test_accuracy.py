"""The page on accuracy: trainings with their spread and their curves."""

from __future__ import annotations

import datetime as dt
import re
from dataclasses import replace
from html import unescape
from pathlib import Path

import pytest

from epochcost.analysis.accuracy import accuracy_trainings
from epochcost.cost.estimate import Estimate
from epochcost.report.pages import accuracy, machines
from epochcost.report.pages.page import Page, Report
from epochcost.report.templates import environment, render
from epochcost.results.store import write_sidecar
from epochcost.results.trainings import Point, Repeat, Trainings
from report_project import REPOSITORY, inputs_of, make_result, write_project

DATASET = """id = "numbers"
name = "Numbers & <b>signs</b>"
example = "a number"
shape = "one number"
training_examples = 100
classes = 10
source = "a test"
"""


def _repeat(seed: int, ending: str, seconds: float, last: float) -> Repeat:
    """A repeat with three evaluations after the first step; ``last`` is the final accuracy."""
    curve = tuple(
        Point(
            step=step,
            seconds=seconds * step / 100,
            learning_rate=0.1,
            training_loss=None,
            loss=1.0,
            accuracy=value,
        )
        for step, value in ((0, 0.1), (50, 0.5 + seed / 10), (75, last - 0.1), (100, last))
    )
    return Repeat.model_validate(
        {
            "seed": seed,
            "ending": ending,
            "steps": 100,
            "step_seconds": seconds,
            "waiting_seconds": 0.0,
            "evaluation_seconds": 0.0,
            "saving_seconds": 0.0,
            "sessions": 1,
            "reached_step": 100 if ending == "reached" else None,
            "curve": curve,
            "weights_sha256": "0" * 64,
        }
    )


def _record(batch_size: int, aim: str, *repeats: Repeat) -> Trainings:
    return Trainings(
        hardware="local",
        trainings_version=1,
        id=f"{batch_size:016x}",
        model="net",
        dataset="numbers",
        data_sha256="0" * 64,
        provider="cpu",
        batch_size=batch_size,
        training_examples=100,
        held_out_examples=50,
        epoch_steps=10,
        aim=aim,
        measured_at=dt.datetime(2026, 11, 23, tzinfo=dt.UTC),
        repeats=repeats,
        environment=make_result().environment,
    )


def _report(folder: Path, *records: Trainings) -> Report:
    project = write_project(folder)
    (project / "specs/datasets").mkdir(exist_ok=True)
    (project / "specs/datasets/numbers.toml").write_text(DATASET)
    inputs = inputs_of(project)
    stored = {project / f"{at}.json": record for at, record in enumerate(records)}
    return Report(replace(inputs, trainings=stored))


@pytest.fixture(scope="module", name="report")
def report_fixture(tmp_path_factory: pytest.TempPathFactory) -> Report:
    """A report with three repeats; two reached an accuracy of 90 %, in 3600 and 7200 s."""
    return _report(
        tmp_path_factory.mktemp("accuracy"),
        _record(
            128,
            "accuracy>=0.9",
            _repeat(0, "reached", 3600, 0.9),
            _repeat(1, "reached", 7200, 0.92),
            _repeat(2, "epochs", 9000, 0.8),
        ),
    )


@pytest.fixture(scope="module", name="page")
def page_fixture(report: Report) -> Page:
    """The page on accuracy."""
    (page,) = accuracy.pages(report)
    return page


def test_time_and_cost_are_of_those_that_got_there(report: Report, page: Page) -> None:
    """Time and cost are means of the two repeats that reached the target; accuracy is of all."""
    (training,) = accuracy_trainings(report.inputs)
    assert training.seconds.mean == 5400
    assert training.cost is not None
    cost = training.cost_of(5400)
    assert isinstance(cost, Estimate)
    assert training.cost.mean == pytest.approx(float(cost.mean))
    assert training.accuracy is not None
    assert training.accuracy.mean == pytest.approx((0.9 + 0.92 + 0.8) / 3)
    text = unescape(render(environment(REPOSITORY / "site_templates"), page))
    assert "Accuracy ≥ 0.9: 90 min ± 420 % and $" in text
    assert ">100</td>" in text  # the steps do not differ
    assert re.search(r">87\.33 ± \d+\.\d\d %</td>", text)
    assert "at an assumed price on This machine" in text
    assert "2 of 3 repeats reached it" in text
    assert "<b>signs" not in render(environment(REPOSITORY / "site_templates"), page)


def test_a_training_on_a_gpu_has_no_cost_at_a_price_per_vcpu(tmp_path: Path) -> None:
    """The page and its chart show the training without a cost."""
    record = _record(128, "accuracy>=0.9", _repeat(0, "reached", 3600, 0.9))
    report = _report(tmp_path, record.model_copy(update={"provider": "cuda"}))
    (page,) = accuracy.pages(report)
    text = unescape(render(environment(REPOSITORY / "site_templates"), page))
    assert "Accuracy ≥ 0.9: 60 min on This machine" in text
    assert "assumed price" not in text


def test_a_machine_with_trainings_is_not_unmeasured(tmp_path: Path) -> None:
    """The page of a machine on which only trainings were measured links to them."""
    record = _record(128, "accuracy>=0.9", _repeat(0, "reached", 3600, 0.9))
    report = _report(tmp_path, record.model_copy(update={"hardware": "box"}))
    (page,) = (each for each in machines.pages(report) if each.uri == "machines/box.md")
    text = render(environment(REPOSITORY / "site_templates"), page)
    assert "We have only measured [whole trainings](" in text
    assert "We have not measured it" not in text


def test_a_training_is_of_the_machine_that_results_of_its_host_declare(tmp_path: Path) -> None:
    """A training on a detected machine moves to the declared machine, as results do."""
    project = write_project(tmp_path, [make_result(hardware="box")])
    record = _record(128, "accuracy>=0.9", _repeat(0, "reached", 3600, 0.9))
    write_sidecar(project / "docs/data/results", record)
    (moved,) = inputs_of(project).trainings.values()
    assert (record.hardware, moved.hardware) == ("local", "box")


def test_trainings_of_one_batch_size_have_curves_of_their_own(tmp_path: Path) -> None:
    """Two aims on one machine are two lines, each with every step once."""
    records = [
        _record(128, f"accuracy>={aim}", _repeat(0, "reached", 3600, aim)) for aim in (0.9, 0.95)
    ]
    (page,) = accuracy.pages(_report(tmp_path, *records))
    figure = page.figures["time-net-numbers"]
    assert figure is not None
    points = [(row.training, row.step) for row in figure.data.rows]
    assert len(points) == len(set(points)) == 6


def test_curves_have_the_band_of_all_repeats(page: Page) -> None:
    """At step 50 the band has accuracies of 50, 60 and 70 %.

    The evaluation at time 0 is omitted.
    """
    figure = page.figures["time-net-numbers"]
    assert figure is not None
    first, *_ = figure.data.table.rows
    assert figure.title.endswith("reaches 87.3 % held-out accuracy in 110 min")
    assert [float(value) for value in first[-3:]] == pytest.approx([0.5, 0.6, 0.7])
    assert float(first[2]) == pytest.approx((3600 + 7200 + 9000) / 3 / 2)
