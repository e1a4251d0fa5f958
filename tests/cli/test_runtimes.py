"""`epochcost runtimes` as a user runs it; the making itself is tested below the command."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from epochcost.measure.runtime import runtime_name
from tiny_project import write_tiny_project


@pytest.fixture(name="project")
def project_fixture(tmp_path: Path) -> Path:
    """A project whose study names a runtime that nobody has."""
    project = write_tiny_project(tmp_path / "project")
    study = project / "specs/studies/brief.toml"
    asked = 'runtimes = ["onnxruntime==0.0.1"]\n\n[sampling]'
    study.write_text(study.read_text().replace("[sampling]", asked))
    return project


def run(project: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the program with no index to fetch from and an empty cache."""
    settings = {
        "PIP_CONFIG_FILE": os.devnull,
        "PIP_NO_INDEX": "1",
        "XDG_CACHE_HOME": str(project.parent / "cache"),
    }
    program = [sys.executable, "-c", "from epochcost.cli.app import main; main()"]
    return subprocess.run(
        [*program, *arguments],
        cwd=project,
        env=os.environ | settings,
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_list_shows_what_is_there_and_what_is_not(project: Path) -> None:
    """The installed runtime first, then what a study misses."""
    done = run(project, "runtimes", "list")
    assert (done.returncode, done.stderr) == (0, "")
    rows = [line.split() for line in done.stdout.splitlines()]
    assert [runtime_name(), "installed"] in rows
    assert ["onnxruntime==0.0.1", "missing"] in rows


def test_a_runtime_that_cannot_be_fetched_is_exit_code_3(project: Path) -> None:
    """Without a name those of the studies are fetched; the failure is said without a traceback."""
    done = run(project, "runtimes", "install")
    assert done.returncode == 3
    assert "onnxruntime==0.0.1: expected this package" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_name_that_is_no_runtime_is_refused(project: Path) -> None:
    """Nothing else can be installed with it."""
    done = run(project, "runtimes", "install", "numpy==2.4.6")
    assert done.returncode == 1
    assert "numpy==2.4.6: expected a package and its version as onnxruntime==1.20.1" in done.stderr


def test_a_run_says_how_to_get_what_it_lacks(project: Path) -> None:
    """A run never fetches: with nothing left to do it ends with the command that does."""
    done = run(project, "run", "--provider", "cpu")
    assert done.returncode == 1
    assert "`epochcost runtimes install onnxruntime==0.0.1`" in done.stderr
    assert not (project.parent / "cache/epochcost/runtimes").exists()
