"""A short campaign of killed runs checks the result files and continues after each kill."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow
BENCHMARK = Path(__file__).parents[2] / "benchmarks/kills.py"


def test_killed_runs_keep_their_results(tmp_path: Path) -> None:
    """A campaign has two kills, and a second call continues the count by one."""
    for count in (2, 3):
        command = [sys.executable, str(BENCHMARK), "run", "--count", str(count)]
        process = subprocess.run(
            [*command, "--folder", str(tmp_path)], capture_output=True, text=True, check=False
        )
        assert process.returncode == 0, process.stderr
        assert process.stdout.endswith("no half file, nothing lost, nobody left\n")
    lives = (tmp_path / "run/done.txt").read_text("utf-8").splitlines()
    assert sum("killed" in life for life in lives) == 3
