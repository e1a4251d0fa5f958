"""The program around its commands: output that cannot be written, terminals of any kind."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tiny_project import write_tiny_project

PROGRAM = str(Path(sys.executable).with_name("epochcost"))
QUOTE = (PROGRAM, "quote", "--rate", "0.9", "--billing", "whole-hour", "--duration", "428s")


def test_a_full_disk_takes_no_output() -> None:
    """Where the output cannot be written, a line says so and the exit code is the machine's."""
    if not Path("/dev/full").exists():
        pytest.skip("no /dev/full here")
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(QUOTE, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert (done.returncode, done.stderr) == (3, "output: No space left on device\n")


def test_a_reader_that_leaves_is_no_error_of_ours() -> None:
    """Output cut by ``head`` leaves no traceback."""
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(QUOTE, stdout=writing, stderr=subprocess.PIPE, text=True, check=False)
    os.close(writing)
    assert "Traceback" not in done.stderr


def test_an_encoding_without_our_signs(tmp_path: Path) -> None:
    """A terminal that knows only ASCII shows question marks, not a traceback."""
    project = write_tiny_project(tmp_path / "project")
    command = [PROGRAM, "run", "--quick", "--provider", "cpu", "--study", "brief"]
    ascii_only = os.environ | {"PYTHONIOENCODING": "ascii"}
    done = subprocess.run(
        command, cwd=project, env=ascii_only, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert " ?" in done.stderr


def test_a_narrow_terminal_loses_no_cell() -> None:
    """Long lines are broken by the terminal; no column is cut or left out."""
    narrow = os.environ | {"COLUMNS": "20", "FORCE_COLOR": "1"}
    done = subprocess.run(QUOTE, env=narrow, capture_output=True, text=True, check=False)
    assert "compute, billed but unused" in done.stdout
    assert "$0.90 per hour" in done.stdout
