"""`epochcost engine` without a package index; other tests build the environment."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from called_program import ended_program
from tiny_project import write_tiny_project


@pytest.fixture(name="project")
def project_fixture(tmp_path: Path) -> Path:
    """A small project."""
    return write_tiny_project(tmp_path / "project")


def run(project: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the program without a package index and with an empty cache."""
    return ended_program(
        project,
        *arguments,
        PIP_CONFIG_FILE=os.devnull,
        PIP_NO_INDEX="1",
        XDG_CACHE_HOME=str(project.parent / "cache"),
    )


@pytest.mark.slow
def test_an_engine_that_cannot_be_fetched_is_exit_code_3(project: Path) -> None:
    """The error of a missing package has no traceback."""
    result = run(project, "engine", "onnxruntime-genai==0.0.1")
    assert result.returncode == 3
    assert "onnxruntime-genai==0.0.1: expected this package" in result.stderr
    assert "Traceback" not in result.stderr


def test_a_name_that_is_no_engine_is_refused(project: Path) -> None:
    """A package that is not an engine is refused."""
    result = run(project, "engine", "numpy==2.4.6")
    assert result.returncode == 1
    assert "numpy==2.4.6: expected an engine and its version as onnxruntime-genai" in result.stderr
