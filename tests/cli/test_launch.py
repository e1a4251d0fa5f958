"""`epochcost launch` with an engine in a folder: plan, real cells, skipped cells, bad targets."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from epochcost.cli.app import main
from epochcost.fleet import engines, station
from epochcost.fleet.ledger import FOLDER
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
    monkeypatch.setattr(engines, "ENGINES", {"ssh": ("local_engine", "LocalEngine")})
    monkeypatch.setattr(station, "POLL_SECONDS", 0.1)
    monkeypatch.chdir(project)
    return project


def write(project: Path, name: str, text: str) -> None:
    """Write a spec."""
    path = project / "specs" / f"{name}.toml"
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)


def launch(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    """Run the command in this process; returns its exit code."""
    monkeypatch.setattr("sys.argv", ["epochcost", "launch", "--study", "brief", *arguments])
    with pytest.raises(SystemExit) as ended:
        main()
    code = ended.value.code
    return code if isinstance(code, int) else int(code is not None)


def test_cells_are_measured_once(
    project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A launch measures all trials there and takes their results in; the next has nothing to do."""
    assert launch(monkeypatch, "--target", "desk", "--format", "json") == 0
    printed = json.loads(capsys.readouterr().out)
    assert [target["done"] for target in printed["targets"]] == [3]
    assert len(sound_results(RESULTS)) == 3
    assert not (project / FOLDER / "ledger.json").exists()
    files = {path: path.stat().st_mtime_ns for path in RESULTS.rglob("*.json")}
    assert launch(monkeypatch, "--target", "desk") == 0
    assert "0 cells to measure, 3 done already; at most $0" in capsys.readouterr().out
    assert {path: path.stat().st_mtime_ns for path in RESULTS.rglob("*.json")} == files


@pytest.mark.usefixtures("project")
def test_dry_run_shows_the_most_that_cells_cost(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A cell takes at most 60 + 15 + 5 minutes, twice, at $3.60 an hour: three cells $28.80."""
    assert launch(monkeypatch, "--target", "rented", "--dry-run") == 0
    assert "3 cells to measure, 0 done already; at most $28.80\n" in capsys.readouterr().out
    assert launch(monkeypatch, "--target", "rented", "--dry-run", "--cap", "20") == 0
    assert "at most $20.00, the cap\n" in capsys.readouterr().out


@pytest.mark.usefixtures("project")
def test_rented_machines_need_a_cap(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without a cap, nothing that costs money is started."""
    assert launch(monkeypatch) == 2
    assert "missing: --cap AMOUNT" in capsys.readouterr().err


@pytest.mark.usefixtures("project")
def test_unusable_target_is_a_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A target that cannot be used stops the launch before anything is started."""
    monkeypatch.setattr(LocalEngine, "problem", "target desk: the host does not answer")
    assert launch(monkeypatch, "--target", "desk") == 3
    assert "target desk: the host does not answer" in capsys.readouterr().err
    assert launch(monkeypatch, "--target", "dusk") == 1
    assert 'unknown target "dusk"; did you mean "desk"?' in capsys.readouterr().err
