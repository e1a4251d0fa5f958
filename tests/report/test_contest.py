"""The first chart of a model's page, and the comparison on a machine's page."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from calculator_data import predicted_rows
from epochcost.analysis.inputs import Inputs
from epochcost.report.charts.contest import cost_ratios
from epochcost.report.pages.machines import JobHere, _jobs_on_machine
from epochcost.report.pages.page import Report
from epochcost.report.ranking import Contest, contest


@pytest.fixture(name="predicted", scope="module")
def predicted_fixture(inputs: Inputs) -> Contest:
    """Thirty machines that are predicted together, and a measured one."""
    machines_of_job = contest(predicted_rows(inputs, 30), "full")
    assert machines_of_job is not None
    return machines_of_job


def test_machines_stand_by_their_cost_over_the_choice(predicted: Contest) -> None:
    """The choice comes first at 1, then machines by median ratio; twenty are drawn in all."""
    figure = cost_ratios(predicted, identifier="x", job="training")
    assert figure is not None
    rows = figure.data.rows
    assert (rows[0].machine, rows[0].times_cost) == (predicted.cheapest.name, (1, 1, 1))
    medians = [row.times_cost[1] for row in rows[1:]]
    assert medians == sorted(medians)
    assert all(low < middle < high for low, middle, high in (row.times_cost for row in rows[1:]))
    assert len(rows) == 20
    assert "11 dearer machines are left out." in figure.description


def test_the_title_is_the_finding(predicted: Contest) -> None:
    """The title names the choice with its odds, and the runner-up with its ratio and range."""
    figure, odds = cost_ratios(predicted, identifier="x", job="training"), predicted.odds
    assert figure is not None
    assert odds is not None
    wins = f"{100 * odds.wins:.0f} of 100"
    assert figure.title.startswith(f"{predicted.cheapest.name} costs least in {wins} scenarios; ")
    ratio = r" is predicted to cost \d\.\d times as much \(likely .*\)$"
    assert re.search(ratio, figure.title)


def test_a_machines_page_says_how_likely_it_is_cheaper(report: Report, predicted: Contest) -> None:
    """A machine has the range of its cost ratio and its odds; the cheapest machine has neither."""
    best, runner_up = predicted.cheapest, predicted.machines[1]
    workload = next(iter(report.workloads))
    here, itself = (
        JobHere(workload, "train", machine, best, quickest=False, machines=31, odds=predicted.odds)
        for machine in (runner_up, best)
    )
    assert re.fullmatch(r"[\d.]+ to [\d.]+, cheaper here in (under )?\d+ of 100", here.likely)
    assert itself.likely == ""


def test_a_machine_with_other_software_is_compared_with_the_models_choice(
    report: Report, predicted: Contest, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The cheapest machine of a job is the same on the pages of all machines."""
    other = replace(predicted.machines[1], hardware="crate")
    contests = {"train": replace(predicted, beside=(Contest("full", (other,)),))}
    listed = dict.fromkeys(report.workloads, contests)
    monkeypatch.setitem(report.__dict__, "contests", listed)
    crate = report.catalogue.hardware["crate"]
    one = next(iter(_jobs_on_machine(report, crate)))
    assert (one.best, one.here) == (predicted.cheapest, other)
    assert (one.factor > 1, one.quickest, one.odds, one.likely) == (True, False, None, "")
