"""The scripts of the Slurm engine with stand-ins for Slurm's programs."""

from __future__ import annotations

from pathlib import Path

import pytest

from epochcost.fleet.engine import GRACE_SECONDS
from epochcost.fleet.slurm import SlurmEngine
from target_tariffs import tariff_of

# A job that never leaves the queue, and a clock that does not wait.
_PROGRAMS = {"scancel": "exit 0", "squeue": "echo 7", "sleep": 'echo "$1" >>~/slept'}


def test_a_cancelled_job_has_its_grace_time_and_five_seconds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Then the call returns, so that the time of a call covers slow answers of squeue."""
    (tmp_path / "bin").mkdir()
    for name, line in _PROGRAMS.items():
        program = tmp_path / "bin" / name
        program.write_text(f"#!/bin/sh\n{line}\n")
        program.chmod(0o755)
    (tmp_path / ".profile").write_text('PATH="$HOME/bin:$PATH"\n')
    monkeypatch.setenv("HOME", str(tmp_path))
    nodes = SlurmEngine(
        tariff_of(id="cluster", folder="cells", engine={"name": "slurm"}), tmp_path, tmp_path
    )
    (tmp_path / nodes.target.place).mkdir(parents=True)
    nodes.cancel("job")
    assert (tmp_path / "slept").read_text().split() == ["1"] * (GRACE_SECONDS + 5)
