"""Budgets: kept, exceeded and unknown limits, each with its figures and its place."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import get_args

import pytest
from typer.testing import CliRunner

from analysis.difference.test_estimated import LARGE
from epochcost.analysis.answers import Demand, Mode, cheapest_answer
from epochcost.analysis.budgets import Verdict, verdicts
from epochcost.analysis.inputs import Inputs, read_inputs
from epochcost.analysis.times import times_of
from epochcost.cli.app import app
from epochcost.specs.loader import load_catalogue
from epochcost.specs.study import Budget, BudgetGoal, BudgetLimit
from report_project import make_result, store_results
from revisions import STEPS, write_repository, write_spec

_STUDY = """
id = "held"
name = "Held to a budget"
models = ["net"]
hardware = ["local"]

[budget]
limits = [
  {limit},
]
"""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A training of 10 epochs of 2 s on a machine at $0.90 an hour: half a cent."""
    write_repository(tmp_path, [make_result(samples=STEPS)])
    monkeypatch.chdir(tmp_path)
    return tmp_path


def declare(project: Path, limit: str) -> None:
    """Write a study whose budget has one limit."""
    write_spec(project, "studies/held", _STUDY.replace("{limit}", "{ " + limit + " }"))


def verdict(project: Path, limit: str) -> Verdict:
    """The verdict on a budget with one limit."""
    declare(project, limit)
    inputs = read_inputs(load_catalogue(project), [project / "docs/data/results"], project / "docs")
    (outcome,) = verdicts(inputs)
    return outcome


TRAINING = 'model = "net", goal = "full-training", at_most = '


@pytest.mark.parametrize(
    ("limit", "state", "text"),
    [
        (TRAINING + "0.01", "kept", "for at most $0.010, got $0.0050"),
        (TRAINING + "0.001", "exceeded", "for at most $0.0010, got $0.0050"),
        (TRAINING + "0.005001", "kept", "with a range that exceeds the limit"),
        (TRAINING + "0.005001", "kept", "for at most $0.005001, got $0.005000 ("),
        (TRAINING + "0.00499", "exceeded", "for at most $0.00499, got $0.00500 ("),
        ('model = "net", goal = "epoch", at_most = 0.001', "kept", "an epoch of net"),
        (
            'model = "net", goal = "million-inferences", at_most = 1',
            "unknown",
            "neither measured nor predicted: ",
        ),
        (
            TRAINING + '1, hardware = "other"',
            "unknown",
            "other: measure it with `epochcost run --model net --hardware other`",
        ),
        (TRAINING + '1, currency = "EUR"', "unknown", "no price in EUR is known for local"),
        (TRAINING + '1, price = "local-2025"', "kept", "local-2025"),
        (TRAINING + "1, accuracy_percent = 91", "unknown", "no source states 91 %"),
    ],
)
def test_a_limit(project: Path, limit: str, state: str, text: str) -> None:
    """The mean cost decides, conditions apply, and an unknown cost keeps no limit."""
    outcome = verdict(project, limit)
    assert outcome.state == state
    assert text in outcome.place.message
    assert (outcome.place.path.name, outcome.place.line) == ("held.toml", 9)


def test_a_model_that_no_runner_measures(project: Path) -> None:
    """An unknown cost of a model without a graph names no command that cannot measure it."""
    path = project / "specs/models/net.toml"
    path.write_text(LARGE.replace("large", "net"), encoding="utf-8")
    outcome = verdict(project, TRAINING + '1, hardware = "other"')
    assert outcome.place.message.endswith("got unknown: neither measured nor predicted on other")


def test_an_assumed_price_beside_a_listed_one(project: Path) -> None:
    """A lower assumed price keeps no limit while the machine has a listed price."""
    listed = (project / "specs/prices/local-2025.toml").read_text(encoding="utf-8")
    price = listed.replace("local-2025", "guess").replace("amount = 0.90", "amount = 0.09")
    write_spec(project, "prices/guess", price.replace("billing", "assumed = true\nbilling"))
    outcome = verdict(project, TRAINING + "0.001")
    assert outcome.choice is not None
    assert (outcome.state, outcome.choice.cost.price_id) == ("exceeded", "local-2025")
    assert verdict(project, TRAINING + '0.001, price = "guess"').state == "kept"


def test_a_limit_without_conditions_is_that_of_cheapest(own_inputs: Inputs) -> None:
    """Machine, price and cost of a limit without conditions are those that `cheapest` names."""
    goals: dict[BudgetGoal, Mode] = {
        "full-training": "training",
        "epoch": "epoch",
        "million-inferences": "inference",
    }
    assert goals.keys() == set(get_args(BudgetGoal))
    limits = tuple(BudgetLimit(model="mnist-cnn", goal=goal, at_most=1) for goal in goals)
    study = own_inputs.catalogue.studies["two-vcpus"]
    study = study.model_copy(update={"budget": Budget(limits=limits)})
    catalogue = replace(own_inputs.catalogue, studies={study.id: study})
    times = times_of(own_inputs, ["mnist-cnn"])
    outcomes = verdicts(replace(own_inputs, catalogue=catalogue))
    for mode, outcome in zip(goals.values(), outcomes, strict=True):
        choice = cheapest_answer(catalogue, times, Demand("mnist-cnn", mode)).choice
        assert outcome.choice is not None
        assert outcome.choice.cost == choice.cost
        assert outcome.choice.key.row.observed.machine == choice.key.row.observed.machine
        assert choice.key.row.mark in outcome.place.message


def test_an_imprecise_time_beside_a_precise_one(project: Path) -> None:
    """A lower cost whose time is not precise keeps no limit while a precise time is known."""
    few = make_result(batch_size=16, samples=(0.00001, 0.00199))
    store_results(project, [make_result(samples=STEPS), few])
    outcome = verdict(project, TRAINING + "0.004")
    assert outcome.state == "exceeded"
    assert "batch 32," in outcome.place.message


def test_an_accuracy_that_the_source_reaches(project: Path) -> None:
    """A limit with an accuracy is kept only if the model's source states at least this accuracy."""
    path = project / "specs/models/net.toml"
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace("[[inputs]]", "accuracy_percent = 92.5\n[[inputs]]"), "utf-8")
    assert verdict(project, TRAINING + "1, accuracy_percent = 91").state == "kept"
    assert verdict(project, TRAINING + "1, accuracy_percent = 93").state == "unknown"


@pytest.mark.parametrize(
    ("limit", "code"),
    [(TRAINING + "1", 0), (TRAINING + "0.001", 1), (TRAINING + '1, hardware = "other"', 1)],
)
def test_the_exit_code(project: Path, limit: str, code: int) -> None:
    """The command succeeds only if every limit is known to be kept."""
    declare(project, limit)
    result = CliRunner().invoke(app, ["check", "--budgets"])
    assert result.exit_code == code
    (line,) = result.stdout.splitlines()
    assert line.startswith("specs/studies/held.toml:9:")


@pytest.mark.parametrize(
    ("limit", "text"),
    [
        ('model = "nte", goal = "epoch", at_most = 1', 'models of this study, got "nte"'),
        ('model = "net", goal = "full", at_most = 1', "should be one of"),
        ('model = "net", goal = "epoch", at_most = 0', "should be greater than 0"),
        ('model = "net", goal = "epoch"', "budget.limits[0].at_most: required key is missing"),
        (TRAINING + '1, hardware = "lcoal"', 'did you mean "local"?'),
        (TRAINING + '1, price = "local-2052"', 'did you mean "local-2025"?'),
        (TRAINING + "1, currency = 1", "should be"),
        (TRAINING + "1, accuracy_percent = 101", "should be at most 100"),
    ],
)
def test_a_faulty_budget(project: Path, limit: str, text: str) -> None:
    """An invalid budget is a fault of the spec, which `check` reports."""
    declare(project, limit)
    result = CliRunner().invoke(app, ["check"])
    assert result.exit_code == 1
    assert text in result.stdout
