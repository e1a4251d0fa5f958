"""Costs that a run prints at its end."""

from __future__ import annotations

from pathlib import Path

import pytest

from epochcost.cli.outcomes import show_costs, show_refusals
from epochcost.execute.assignment import Skipped
from epochcost.results.checks import Claim
from epochcost.results.environment import Conditions
from epochcost.specs.loader import load_catalogue
from report_project import make_result, store_results
from tiny_project import OWNED_PRICE, price_text, write_tiny_project

ROOT = Path(__file__).parents[2]
RESULTS = Path("docs/data/results")


@pytest.fixture(autouse=True, name="project")
def project_fixture(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A tiny project as the working folder."""
    monkeypatch.chdir(write_tiny_project(tmp_path))
    return tmp_path


def printed(capsys: pytest.CaptureFixture[str], samples: tuple[float, ...] = (0.5, 0.51)) -> str:
    """What is printed for a training and an inference of this machine."""
    mine = [
        make_result(model="tiny", mode="training", batch_size=4, samples=samples),
        make_result(model="tiny", mode="inference", batch_size=1, samples=samples),
    ]
    store_results(Path(), mine)
    show_costs(load_catalogue(Path()), RESULTS, [Skipped(result.trial, result) for result in mine])
    return capsys.readouterr().out


def test_without_prices(capsys: pytest.CaptureFixture[str]) -> None:
    """Times are printed, with a line that no machine with a list price has a time."""
    text = printed(capsys)
    assert "full training, here: " in text
    assert "a million inferences, here: " in text
    assert "disturbed" not in text
    assert text.count(", without a price\n    no time on a machine with a list price is known") == 2
    assert text.endswith("`epochcost serve` shows it\n")


def test_beside_the_cheapest_list_price(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """An assumed price is marked; the cheapest listed machine has its cost and plan."""
    (project / "specs/prices").mkdir(exist_ok=True)
    (project / "specs/prices/own.toml").write_text(OWNED_PRICE)
    (project / "specs/prices/giant.toml").write_text(price_text("giant", "3600"))
    fast = make_result(
        model="tiny", mode="inference", batch_size=1, hardware="giant", fingerprint="beef" * 4
    )
    store_results(project, [fast])
    text = printed(capsys)
    assert text.count(", assumed price) in ") == 2
    assert "    no time on a machine with a list price is known\n" in text
    assert "    cheapest at a list price: $" in text
    assert ", on-demand (measured)\n" in text


def test_costs_without_a_range_say_why(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Two scattered samples give no lower bound, and equal samples no range."""
    (project / "specs/prices").mkdir(exist_ok=True)
    (project / "specs/prices/own.toml").write_text(OWNED_PRICE)
    scattered = printed(capsys, (0.001, 1.0))
    assert scattered.count(", too few samples for a lower bound, assumed price) in ") == 2
    assert printed(capsys, (0.5, 0.5)).count(" (its time has no interval, assumed price) in ") == 2


def test_a_host_that_is_declared_under_another_name(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A result of "local" is found under the name that this host has in stored results."""
    mine = make_result(model="tiny", mode="inference", batch_size=1, hardware="local")
    store_results(project, [mine, mine.model_copy(update={"hardware": "giant"})])
    show_costs(load_catalogue(project), RESULTS, [Skipped(mine.trial, mine)])
    assert "  Tiny, a million inferences, here: " in capsys.readouterr().out


def test_results_of_the_host_as_another_machine_are_not_here(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A faster result that this host stored under another machine's name is not the cost here."""
    box = (project / "specs/hardware/giant.toml").read_text().replace("giant", "box")
    (project / "specs/hardware/box.toml").write_text(box)
    slow, fast = (
        make_result(model="tiny", mode="inference", batch_size=1, samples=times, hardware=name)
        for name, times in (("giant", (0.5, 0.51)), ("box", (0.1, 0.11)))
    )
    store_results(project, [slow, fast])
    show_costs(load_catalogue(project), RESULTS, [Skipped(slow.trial, slow)])
    assert "  Tiny, a million inferences, here: 5.84 days, " in capsys.readouterr().out


def test_language_models_cost_by_the_token(capsys: pytest.CaptureFixture[str]) -> None:
    """For a decoder the output names `epochcost tokens`."""
    decoder = make_result(model="smollm2-135m", mode="inference", batch_size=1)
    show_costs(load_catalogue(ROOT), RESULTS, [Skipped(decoder.trial, decoder)])
    assert "What it costs:\n  by the token: `epochcost tokens --model smollm2-135m" in (
        capsys.readouterr().out
    )


def test_disturbed_results_can_be_replaced(capsys: pytest.CaptureFixture[str]) -> None:
    """If other programs disturbed all rounds, the remedy is a run on an idle machine."""
    result = make_result(model="tiny", mode="training", batch_size=4, samples=(0.5, 0.51))
    busy = {"conditions": Conditions(seconds=1, others_cpus=1.0)}
    measurement = result.measurement.model_copy(update=busy)
    disturbed = result.model_copy(update={"measurement": measurement})
    store_results(Path(), [disturbed])
    show_costs(load_catalogue(Path()), RESULTS, [Skipped(disturbed.trial, disturbed)])
    assert "\n1 of 1 results are disturbed, as listed above: measure" in capsys.readouterr().out


def test_results_that_the_check_refuses_are_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A result that the check refuses is named with the fault while the machine is at hand."""
    faults = {1: None, 2: "rounds: expected no overlap"}

    def fault(claim: Claim) -> str | None:
        return faults[claim.result.trial.batch_size]

    monkeypatch.setattr("epochcost.cli.outcomes.first_fault", fault)
    results = [make_result(model="tiny", mode="inference", batch_size=size) for size in faults]
    outcomes = [Skipped(result.trial, result) for result in results]
    show_refusals(load_catalogue(Path()), outcomes[:1])
    assert capsys.readouterr().err == ""
    show_refusals(load_catalogue(Path()), outcomes)
    assert capsys.readouterr().err.splitlines() == [
        "`epochcost check --results` refuses:",
        "  tiny inference cpu batch 2: rounds: expected no overlap",
        "    remedy: the same command with `--resume` measures these trials again",
    ]
