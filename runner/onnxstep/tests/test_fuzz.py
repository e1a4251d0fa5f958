"""Damaged files end in a step or in one line: nothing crashes, hangs or reads elsewhere."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).parent


def fuzz(first: int, count: int) -> dict[str, int]:
    """The outcomes of so many mutations, in a process of their own."""
    command = [sys.executable, "-W", "ignore", "-m", "fuzzing", str(first), str(count)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=TESTS)
    assert done.returncode == 0, done.stderr[-2000:]
    lines = (line.split(maxsplit=1) for line in done.stdout.splitlines())
    return {outcome: int(times) for times, outcome in lines}


def test_damaged_files() -> None:
    """Some become a step, some are refused at each stage, and there is no third way."""
    found = fuzz(0, 160)
    assert sum(found.values()) == 160
    assert found["a training step"] > 5
    assert found["refused at load"] > 5
    assert found["refused at gradient"] > 5


@pytest.mark.slow
@pytest.mark.parametrize("first", range(160, 20_160, 2_000))
def test_many_damaged_files(first: int) -> None:
    """The same for twenty thousand others, in tens of seconds each."""
    assert sum(fuzz(first, 2_000).values()) == 2_000
