"""The scripts of the Slurm engine with stand-ins for Slurm's programs."""

from __future__ import annotations

from pathlib import Path

import pytest

from epochcost.fleet.engine import GRACE_SECONDS, JobState
from epochcost.fleet.slurm import SlurmEngine
from target_tariffs import tariff_of

# A job that never leaves the queue, and a clock that does not wait.
_PROGRAMS = {"scancel": "exit 0", "squeue": "echo 7", "sleep": 'echo "$1" >>~/slept'}


@pytest.fixture(name="nodes")
def nodes_fixture(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SlurmEngine:
    """A cluster whose programs are the stand-ins."""
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
    return nodes


def test_a_cancelled_job_has_its_grace_time_and_five_seconds(
    nodes: SlurmEngine, tmp_path: Path
) -> None:
    """Then the call returns, so that the time of a call covers slow answers of squeue."""
    nodes.cancel("job")
    assert (tmp_path / "slept").read_text().split() == ["1"] * (GRACE_SECONDS + 5)


@pytest.mark.parametrize(
    ("answer", "state"),
    [
        ("PENDING Resources", JobState("queued", "Resources")),
        ("PENDING None", JobState("queued")),
        ("CONFIGURING None", JobState("starting")),
        ("RUNNING None", JobState("running")),
        (
            "PENDING BadConstraints",
            JobState("failed", "Slurm cannot start it (BadConstraints): correct the options"),
        ),
    ],
)
def test_states_of_jobs_in_the_queue(
    nodes: SlurmEngine, tmp_path: Path, answer: str, state: JobState
) -> None:
    """A job that no waiting starts has failed."""
    (tmp_path / "bin/squeue").write_text(f"#!/bin/sh\necho '{answer}'\n")
    assert nodes.poll("job") == state
