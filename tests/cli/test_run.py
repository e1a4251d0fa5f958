"""`epochcost run` in real processes that are killed, interrupted or out of disk."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from called_program import exit_code
from crowding import crowded
from epochcost.results.files import exclusive_lock
from epochcost.results.records import Result
from sound_results import sound_results
from started_runs import RESULTS, TRIALS, WAIT_SECONDS, run, run_script, started_run, worker_of
from tiny_project import write_tiny_project
from usable_providers import usable_providers


@pytest.fixture(name="project")
def project_fixture(tmp_path: Path) -> Path:
    """A tiny project."""
    return write_tiny_project(tmp_path / "project")


@pytest.fixture(name="started")
def started_fixture(project: Path) -> Iterator[subprocess.Popen[str]]:
    """A run that has stored its first result and is measuring the second trial."""
    with started_run(project, until="[2/") as process:
        yield process


def stored_bytes(project: Path) -> dict[str, bytes]:
    """The bytes of every file in the results folder, by name."""
    files = (path for path in (project / RESULTS).rglob("*") if path.is_file())
    return {path.name: path.read_bytes() for path in files}


def test_a_killed_run_resumes_with_what_is_missing(
    project: Path, started: subprocess.Popen[str]
) -> None:
    """After kill -9 no result is lost, no worker remains, and --resume measures the rest."""
    worker = worker_of(started)
    started.kill()
    started.wait()
    assert psutil.wait_procs([worker], timeout=crowded(WAIT_SECONDS))[1] == []
    before = stored_bytes(project)
    resumed = run(project, "--resume")
    assert resumed.returncode == 0, resumed.stderr
    assert "3 of 3 results are in docs/data/results/local" in resumed.stdout
    assert "What it costs:\n  " in resumed.stdout
    assert resumed.stdout.endswith("`epochcost serve` shows it\n")
    assert resumed.stderr.count("stored before") == len(before) == 1
    after = stored_bytes(project)
    assert len(after) == TRIALS
    assert {name: after[name] for name in before} == before
    assert list((project.parent / "tmp").glob("epochcost-*")) == []
    require_learnt(sound_results(project / RESULTS))


def require_learnt(results: tuple[Result, ...]) -> None:
    """Require a result of every trial, with a lower held-out loss after training."""
    assert {result.trial.title for result in results} == {
        "tiny inference cpu batch 1",
        "tiny training cpu batch 2",
        "tiny training cpu batch 4",
    }
    for measured in (item.measurement for item in results if item.trial.mode == "training"):
        assert measured.held_out_loss_before is not None
        assert measured.held_out_loss_after is not None
        assert measured.held_out_loss_after < measured.held_out_loss_before


@pytest.mark.parametrize(
    "number", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.slow)]
)
def test_an_interruption_keeps_what_is_finished(
    project: Path, started: subprocess.Popen[str], number: signal.Signals
) -> None:
    """On SIGINT or SIGTERM the run counts stored trials and says how to continue."""
    worker = worker_of(started)
    started.send_signal(number)
    _, errors = started.communicate(timeout=crowded(WAIT_SECONDS))
    assert started.returncode == 130
    assert "interrupted: 1 of 3 trials are stored; add --resume to continue" in errors
    assert "Traceback" not in errors
    assert psutil.wait_procs([worker], timeout=crowded(WAIT_SECONDS))[1] == []
    assert list((project.parent / "tmp").glob("epochcost-*")) == []
    assert len(sound_results(project / RESULTS)) == 1


def test_a_worker_that_dies_fails_its_trial_and_no_other(
    project: Path, started: subprocess.Popen[str]
) -> None:
    """The trial of a killed worker is listed with the reason; the other trials are stored."""
    worker_of(started).kill()
    output, errors = started.communicate(timeout=crowded(WAIT_SECONDS))
    assert started.returncode == 3
    assert "1 of 3 trials failed:" in errors
    assert "SIGKILL" in errors
    assert "2 of 3 results are in" in output
    assert len(sound_results(project / RESULTS)) == TRIALS - 1


def test_a_second_run_on_the_same_results_is_refused(project: Path) -> None:
    """A second run would mix files and disturb the times of the first."""
    (project / RESULTS / "local").mkdir(parents=True)
    with exclusive_lock(project / RESULTS / "local"):
        second = run(project)
    assert second.returncode == 3
    assert "another run is in progress" in second.stderr
    assert stored_bytes(project) == {}


_FULL_DISK = """
set -u
mkdir -p docs/data/results && mount -t tmpfs -o size=16m tmpfs docs/data/results || exit 77
"$0" run --no-ceilings --provider cpu --study first || exit 78
cat /dev/zero > docs/data/results/filler 2>/dev/null
truncate -s -8k docs/data/results/filler
"$0" run --no-ceilings --provider cpu --study brief --resume
echo "full: $?"
rm docs/data/results/filler
"$0" run --no-ceilings --provider cpu --study brief --resume
echo "freed: $?"
ls -A docs/data/results/local | wc -l
"""


@pytest.mark.slow
def test_a_full_disk_ends_the_run_and_loses_nothing(project: Path) -> None:
    """A disk that fills during a trial gives exit code 3; --resume measures the rest."""
    study = project / "specs/studies/brief.toml"
    study.write_text(study.read_text().replace("[sampling]", 'modes = ["training"]\n[sampling]'))
    first = study.read_text().replace('"brief"', '"first"')
    first = first.replace("[sampling]", "training_batch_sizes = [2]\n[sampling]")
    (project / "specs/studies/first.toml").write_text(first)
    script = run_script(project, _FULL_DISK)
    assert script.returncode == 0, script.stderr
    assert "full: 3" in script.stdout
    assert "free some space" in script.stderr
    assert "freed: 0" in script.stdout
    assert "stored before" in script.stderr
    assert script.stdout.splitlines()[-1].strip() == "2"


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["--study", "breif"], 1, 'did you mean "brief"'),
        (["--model", "tini"], 1, 'did you mean "tiny"'),
        (["--hardware", "gaint"], 1, 'did you mean "giant"'),
        (["--hardware", "giant"], 1, "this machine has"),
        (["--provider", "tpu"], 2, "'tpu'"),
        (["--resum"], 2, "--resume"),
        pytest.param(
            ["--provider", "cuda"],
            3,
            "expected a usable GPU",
            marks=pytest.mark.skipif("cuda" in usable_providers(), reason="CUDA is usable here"),
        ),
        (["--provider", "cpu", "--results", "specs/studies/brief.toml"], 3, "takes a new file"),
    ],
)
def test_wrong_arguments_say_what_is_right(
    project: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    code: int,
    message: str,
) -> None:
    """The exit code gives the kind of error, the message the nearest choice; no file is written."""
    monkeypatch.chdir(project)
    assert exit_code("run", *arguments) == code
    assert message in capsys.readouterr().err
    assert not (project / "docs").exists()
