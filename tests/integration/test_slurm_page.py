"""The batch script of the page on Slurm, run by bash as a node would; no cluster is needed."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from walkthrough import File, steps

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs/how-to/measure-on-slurm.md"


@pytest.fixture(name="project")
def project_fixture(tmp_path: Path) -> Path:
    """A project with specs and models, the program in its environment, and the page's script."""
    for folder in ("specs", "models"):
        shutil.copytree(ROOT / folder, tmp_path / folder)
    program = tmp_path / ".venv/bin/epochcost"
    program.parent.mkdir(parents=True)
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m epochcost "$@"\n', "utf-8")
    program.chmod(0o755)
    (script,) = (step for step in steps(PAGE, "Steps") if isinstance(step, File))
    assert script.path.endswith(".sbatch")
    quick = "--study starter --model mnist-mlp --quick"
    text = script.text.replace("--study starter", quick).replace("node-a", "local")
    (tmp_path / "job").write_text(text, "utf-8")
    return tmp_path


def _begin(project: Path) -> subprocess.Popen[str]:
    (project / "tmp").mkdir()
    places = {"SLURM_SUBMIT_DIR": str(project), "TMPDIR": str(project / "tmp")}
    return subprocess.Popen(
        ["bash", "job"], cwd=project, env=os.environ | places, stderr=subprocess.PIPE, text=True
    )


def _left_on_the_node(project: Path) -> list[Path]:
    return [path for path in (project / "tmp").rglob("*.json") if path.is_file()]


@pytest.mark.slow
def test_results_are_copied_back(project: Path) -> None:
    """A finished job leaves its results in the project and nothing on the node's disk."""
    job = _begin(project)
    _, log = job.communicate()
    assert job.returncode == 0, log
    assert list((project / "docs/data/results/local").glob("mnist-mlp-*.json"))
    assert not _left_on_the_node(project)


@pytest.mark.slow
def test_a_time_limit_keeps_finished_trials(project: Path) -> None:
    """Slurm's signal before the limit ends the run in order; its results are copied back."""
    job = _begin(project)
    assert job.stderr is not None
    results = project / "tmp"
    for _ in job.stderr:
        if any(results.glob("*/local/mnist-mlp-*.json")):
            break
    job.send_signal(signal.SIGTERM)
    job.communicate()
    assert job.returncode == 130
    assert list((project / "docs/data/results/local").glob("mnist-mlp-*.json"))
    assert not _left_on_the_node(project)
