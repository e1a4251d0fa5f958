"""A damaged file leads to a training step or a one-line error, never to a crash or a hang."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).parent


def fuzz(first: int, count: int) -> dict[str, int]:
    """Test ``count`` mutated files in a new process; return how often each outcome occurs."""
    command = [sys.executable, "-W", "ignore", "-m", "fuzzing", str(first), str(count)]
    process = subprocess.run(command, capture_output=True, text=True, check=False, cwd=TESTS)
    assert process.returncode == 0, process.stderr[-2000:]
    lines = (line.split(maxsplit=1) for line in process.stdout.splitlines())
    return {outcome: int(times) for times, outcome in lines}


def test_damaged_files() -> None:
    """Some of 160 damaged files can be trained, some fail to load, and some have no gradient."""
    outcomes = fuzz(0, 160)
    assert sum(outcomes.values()) == 160
    assert outcomes["a training step"] > 5
    assert outcomes["refused at load"] > 5
    assert outcomes["refused at gradient"] > 5


@pytest.mark.slow
@pytest.mark.parametrize("first", range(160, 20_160, 2_000))
def test_many_damaged_files(first: int) -> None:
    """Twenty thousand damaged files are refused with an error of onnxstep, or still work."""
    assert sum(fuzz(first, 2_000).values()) == 2_000
