"""Slurm as an engine: each cell is a batch job that has a node for itself.

The commands of Slurm run on the login node, or on this machine. The target's folder must be on a
file system that the nodes share. Slurm says whether a job waits or runs; afterwards its exit code
is in its folder, so a cluster needs no accounting.
"""

from __future__ import annotations

import math
import shlex
from collections.abc import Sequence
from pathlib import Path

from epochcost.fleet.engine import GRACE_SECONDS, Engine, JobState
from epochcost.fleet.payload import RESULTS
from epochcost.specs.target import Slurm, Target

# The run needs a disk with locks, which shared file systems may lack: the node's own.
_JOB = """\
#!/bin/bash -l
results=$(mktemp -d) && export results || exit
trap 'cp -au "$results"/. {shared}; rm -rf "$results"' EXIT
[ ! -e {shared}/{hardware} ] || cp -a {shared}/{hardware} "$results" || exit
{watch}"""
# `mkdir` fails if the job was cancelled before.
_SUBMIT = (
    "mkdir jobs/{job} && sbatch --job-name={job} --output=jobs/{job}/log {options} <<<{script}"
)
_STATE = """\
state=$(squeue --me --noheader --name={job} --format='%T %r') || exit
if [ "$state" ]; then echo "$state"; else cat jobs/{job}/exit 2>/dev/null || echo lost; fi
"""
_CANCEL = """\
mkdir -p jobs/{job} || exit
scancel --quiet --me --name={job} || exit
for second in {{1..{seconds}}}; do
  [ "$(squeue --me --noheader --name={job} --format=%A)" ] || exit 0
  sleep 1
done
"""
# Reasons of a queued job that no waiting removes.
_HOPELESS = ("BadConstraints", "PartitionNodeLimit", "PartitionTimeLimit", "launch failed")


class SlurmEngine(Engine):
    """Nodes of a Slurm cluster; a node is paid only while a job runs on it."""

    tools = ("sbatch", "squeue", "scancel", "timeout")

    def __init__(self, target: Target, payload: Path, project: Path) -> None:
        assert isinstance(target.engine, Slurm)
        super().__init__(target, payload, project, target.engine.login)
        self._own_options = target.engine.options

    def check(self) -> None:
        """Raise `EngineError` if Slurm is missing, does not answer, or would refuse a job."""
        super().check()
        self.shell.run(f"sbatch --test-only {self._options} <<<'#!/bin/sh'")

    def submit(self, job: str, arguments: Sequence[str]) -> None:
        """Submit a job."""
        script = _JOB.format(
            shared=RESULTS,
            hardware=self.target.hardware,
            watch=self._watch(job, arguments, '--results "$results"'),
        )
        self._run(_SUBMIT.format(job=job, options=self._options, script=shlex.quote(script)))

    def poll(self, job: str) -> JobState:
        """The state of a job; a job that would wait for ever counts as failed."""
        state = super().poll(job)
        if not state.reason.startswith(_HOPELESS):
            return state
        return JobState("failed", f"Slurm cannot start it ({state.reason}): correct the options")

    def _state_text(self, job: str) -> str:
        return self._run(_STATE.format(job=job)).strip()

    def cancel(self, job: str) -> None:
        """End a job and wait until its node is free; finished rounds are stored before."""
        self._run(_CANCEL.format(job=job, seconds=GRACE_SECONDS + 5))

    @property
    def _options(self) -> str:
        """Options of sbatch: a node of the target for this job alone, and no restart by Slurm."""
        minutes = math.ceil((self.limit_seconds + GRACE_SECONDS) / 60) + 1
        fixed = ("--nodes=1", "--exclusive", "--mem=0", "--no-requeue", f"--time={minutes}")
        return shlex.join((*fixed, *self._own_options))
