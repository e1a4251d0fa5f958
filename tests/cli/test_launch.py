"""`epochcost launch` with an engine in a folder: plan, real cells, skipped cells, bad targets."""

from __future__ import annotations

import re
import shutil
from decimal import Decimal
from pathlib import Path

import pytest

from called_program import exit_code
from epochcost.cli.interruption import INTERRUPTED
from epochcost.fleet import launch as fleet
from epochcost.fleet import station
from epochcost.fleet.engine import Engine
from epochcost.fleet.ledger import FOLDER, Lease
from epochcost.fleet.station import Launch
from epochcost.specs.target import PINNED_RUNTIME
from local_engine import LocalEngine
from sound_results import sound_results
from tiny_project import OWNED_PRICE, price_text, write_tiny_project

RESULTS = Path("docs/data/results")
TARGET = """
id = "{name}"
hardware = "local"
price = "{price}"
[engine]
name = "ssh"
host = "{name}"
"""


@pytest.fixture(name="project")
def project_fixture(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A tiny project with a target whose machine is owned, and one whose machine is rented."""
    project = write_tiny_project(tmp_path / "project")
    write(project, "prices/own", OWNED_PRICE)
    write(project, "prices/local-11-01", price_text("local", "3.60"))
    write(project, "targets/desk", TARGET.format(name="desk", price="own"))
    write(project, "targets/rented", TARGET.format(name="rented", price="local-11-01"))
    monkeypatch.setitem(fleet.ENGINES, "ssh", LocalEngine)
    monkeypatch.setattr(station, "POLL_SECONDS", 0.1)
    monkeypatch.chdir(project)
    return project


def write(project: Path, name: str, text: str) -> None:
    """Write a spec."""
    path = project / "specs" / f"{name}.toml"
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)


def launch(*arguments: str) -> int:
    """Run the command in this process; returns its exit code."""
    return exit_code("launch", "--study", "brief", *arguments)


def test_cells_are_measured_once(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A launch measures all trials there and takes their results in; the next has nothing to do."""
    assert launch("--target", "desk") == 0
    text = capsys.readouterr().out
    assert re.search(r"^desk +3 +0 ", text, re.MULTILINE)
    assert f"results are in {RESULTS}" in text
    assert len(sound_results(RESULTS)) == 3
    assert not (project / FOLDER / "ledger.json").exists()
    files = {path: path.stat().st_mtime_ns for path in RESULTS.rglob("*.json")}
    assert launch("--target", "desk") == 0
    assert "0 trials to measure, 3 done already\n" in capsys.readouterr().out
    assert {path: path.stat().st_mtime_ns for path in RESULTS.rglob("*.json")} == files


@pytest.mark.usefixtures("project")
def test_a_second_signal_names_the_machines_that_may_be_up(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """If a launch ends before it has given a machine back, it says so and what to do."""

    def interrupted(parts: Launch, engines: list[Engine], *_: object) -> None:
        nothing = Decimal(0)
        target = engines[0].target
        parts.ledger.reserve(
            "desk", Lease(target=target, job="job", since=0, until=1, reserved=nothing)
        )
        raise KeyboardInterrupt

    monkeypatch.setattr("epochcost.cli.launch.measure_all", interrupted)
    assert launch("--target", "desk") == INTERRUPTED
    message = capsys.readouterr().err
    assert message.startswith("desk: the trial may still be running")
    assert "the same command ends them" in message


@pytest.mark.usefixtures("project")
def test_dry_run_shows_the_most_that_cells_cost(capsys: pytest.CaptureFixture[str]) -> None:
    """A cell takes at most 60 + 15 + 10 minutes, twice, at $3.60 an hour: three cells $30.60."""
    assert launch("--target", "rented", "--dry-run") == 0
    assert (
        "3 trials to measure, 0 done already: 1.5 s of timing, at most $30.60\n"
        in capsys.readouterr().out
    )
    assert launch("--target", "rented", "--dry-run", "--cap", "20") == 0
    assert "at most $20.00, the cap\n" in capsys.readouterr().out


def test_a_price_per_vcpu_needs_the_vcpus_of_the_machine(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The command has no option for them, so the error names the key of the spec."""
    price = OWNED_PRICE.replace('"own"', '"vcpus"')
    write(project, "prices/vcpus", f"{price}per_vcpu = true\n")
    write(project, "targets/vcpus", TARGET.format(name="vcpus", price="vcpus"))
    assert launch("--target", "vcpus", "--dry-run") == 1
    assert "or `vcpus` in the machine's spec" in capsys.readouterr().err


@pytest.mark.usefixtures("project")
def test_a_target_that_is_named_twice_counts_once(capsys: pytest.CaptureFixture[str]) -> None:
    """The plan has a single row for the target."""
    assert launch("--target", "desk", "--target", "desk", "--dry-run") == 0
    assert re.findall("^desk ", capsys.readouterr().out, re.MULTILINE) == ["desk "]


@pytest.mark.usefixtures("project")
def test_only_named_models_are_planned(capsys: pytest.CaptureFixture[str]) -> None:
    """A launch measures only the models that it names; an unknown name is an error."""
    assert launch("--target", "desk", "--dry-run", "--model", "tiny") == 0
    assert "3 trials to measure" in capsys.readouterr().out
    assert launch("--target", "desk", "--dry-run", "--model", "tinny") == 1
    assert 'unknown model "tinny"; did you mean "tiny"?' in capsys.readouterr().err


def test_targets_with_different_runtimes_measure_different_trials(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each target gets the trials of the ONNX Runtime that it installs."""
    desk = TARGET.format(name="old", price="own")
    write(project, "targets/old", f'runtime = "onnxruntime==1.30.0"\n{desk}')
    assert launch("--target", "desk", "--target", "old", "--dry-run") == 0
    text = capsys.readouterr().out
    assert [re.split(" +", line)[2] for line in text.splitlines()[1:3]] == ["3", "3"]
    assert "6 trials to measure" in text


def test_targets_with_the_same_runtime_share_their_trials(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A target that names the default runtime measures no trial a second time."""
    desk = TARGET.format(name="plain", price="own")
    write(project, "targets/plain", f'runtime = "{PINNED_RUNTIME}"\n{desk}')
    assert launch("--target", "desk", "--target", "plain", "--dry-run") == 0
    assert "3 trials to measure" in capsys.readouterr().out


@pytest.mark.usefixtures("project")
def test_nothing_is_planned_by_value_without_predictions(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The project has no published rates, so no measurement is known to help."""
    assert launch("--target", "desk", "--dry-run", "--plan-by-value", "2") == 0
    printed = capsys.readouterr()
    assert "no measurement of these trials is expected to change an answer" in printed.err
    assert "0 trials to measure" in printed.out


@pytest.mark.usefixtures("project")
def test_rented_machines_need_a_cap(capsys: pytest.CaptureFixture[str]) -> None:
    """Without a cap, nothing that costs money is started."""
    assert launch() == 2
    assert "missing: --cap AMOUNT" in capsys.readouterr().err


def test_unusable_target_is_a_line(
    project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A target that cannot be used stops the launch after its plan, before anything is started."""
    monkeypatch.setattr(LocalEngine, "problem", "target desk: the host does not answer")
    for options in ((), ("--dry-run",)):
        assert launch("--target", "desk", *options) == 3
        printed = capsys.readouterr()
        assert "3 trials to measure" in printed.out
        assert "target desk: the host does not answer" in printed.err
    monkeypatch.setattr(LocalEngine, "problem", "")
    desk = TARGET.format(name="desk", price="own")
    write(project, "targets/desk", f'secrets = ["NO_SUCH_VARIABLE"]\n{desk}')
    assert launch("--target", "desk") == 3
    demand = "target desk: secrets: expected the variable NO_SUCH_VARIABLE in this shell, got none"
    assert demand in capsys.readouterr().err
    assert launch("--target", "dusk") == 1
    assert 'unknown target "dusk"; did you mean "desk"?' in capsys.readouterr().err
    shutil.rmtree(project / "specs/targets")
    assert launch("--target", "desk") == 1
    message = 'unknown target "desk"; this project\'s specs have no target\n'
    assert message in capsys.readouterr().err


def test_failure_of_a_run_is_its_last_line(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A cell that fails there is reported with the last line of the run, and is left for later."""
    hardware = (project / "specs/hardware/giant.toml").read_text("utf-8")
    write(project, "hardware/giant", hardware)
    write(project, "prices/giant", price_text("giant", "1"))
    target = TARGET.format(name="giant", price="giant-11-01").replace('"local"', '"giant"')
    write(project, "targets/giant", target)
    study = (project / "specs/studies/brief.toml").read_text("utf-8")
    write(project, "studies/brief", f'hardware = ["giant"]\nmodes = ["inference"]\n{study}')
    assert launch("--target", "giant", "--cap", "9") == 1
    printed = capsys.readouterr()
    assert "giant: tiny inference cpu batch 1: " in printed.err
    assert "4099" in printed.err


@pytest.mark.slow
def test_ten_thousand_cells_are_planned(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A hundred targets with a hundred trials each are one plan."""
    machines = [f"m{number}" for number in range(100)]
    for name in machines:
        text = f'id = "{name}"\nname = "M"\nprovider = "C"\nvcpus = 4\nsource = "a test"\n'
        write(project, f"hardware/{name}", text)
        write(project, f"prices/{name}", price_text(name, "1"))
        target = TARGET.format(name=name, price=f"{name}-11-01").replace('"local"', f'"{name}"')
        write(project, f"targets/{name}", target)
    sizes = list(range(1, 51))
    study = (project / "specs/studies/brief.toml").read_text("utf-8").split("[sampling]")[0]
    sized = f"training_batch_sizes = {sizes}\ninference_batch_sizes = {sizes}\n"
    write(project, "studies/brief", f"{study}hardware = {machines}\n{sized}")
    targets = [f"--target={name}" for name in machines]
    assert launch("--dry-run", *targets) == 0
    assert "10,000 trials to measure, 0 done already" in capsys.readouterr().out


@pytest.mark.usefixtures("project")
def test_a_cap_may_have_a_currency(capsys: pytest.CaptureFixture[str]) -> None:
    """The cap is in the currency of the targets' prices; another currency is refused."""
    assert launch("--target", "rented", "--dry-run", "--cap", "20USD") == 0
    assert "at most $20.00, the cap\n" in capsys.readouterr().out
    assert launch("--target", "rented", "--dry-run", "--cap", "20EUR") == 1
    refusal = "--cap: expected an amount in USD, the currency of local-11-01, got '20EUR'\n"
    assert refusal in capsys.readouterr().err
    assert launch("--target", "rented", "--dry-run", "--cap", "free") == 1
    assert "--cap: expected an amount above 0, such as 5USD" in capsys.readouterr().err
