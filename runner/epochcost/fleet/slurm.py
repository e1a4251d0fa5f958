"""Slurm as an engine: each trial or sweep is a batch job that has a node for itself.

Slurm's commands run on the login node or here. The nodes must share the target's folder.
"""

from __future__ import annotations

import math
import shlex

from epochcost.fleet.engine import GRACE_SECONDS, Engine
from epochcost.specs.target import Slurm

# The run needs a disk with locks, which shared file systems may lack: the node's own.
_JOB = """\
#!/bin/bash -l
results=$(mktemp -d) && export results || exit
trap 'cp -au "$results"/. {shared}; rm -rf "$results"' EXIT
[ ! -e {shared}/{hardware} ] || cp -a {shared}/{hardware} "$results" || exit
{watch}"""
_SUBMIT = "sbatch --job-name={job} --output=jobs/{job}/log {options} jobs/{job}/script"
_STATE = """\
state=$(squeue --me --noheader --name={job} --format='%T %r') || exit
if [ "$state" ]; then echo "$state"; else cat jobs/{job}/exit 2>/dev/null || echo lost; fi
"""
_CANCEL = """\
mkdir -p jobs/{job} && scancel --quiet --me --name={job} || exit
for second in {{1..{patience}}}; do
  [ "$(squeue --me --noheader --name={job} --format=%A)" ] || exit 0
  sleep 1
done
"""


class SlurmEngine(Engine):
    """Nodes of a Slurm cluster; a node is paid for only while a job runs on it."""

    held = False
    tools = ("sbatch", "squeue", "scancel", "timeout")
    job_script, submit_script, state_script, cancel_script = _JOB, _SUBMIT, _STATE, _CANCEL
    run_options = '--results "$results"'
    # The end of its job gives a node back.
    tear_down = Engine.cancel

    def check(self) -> None:
        """Raise `EngineError` if Slurm is missing, does not answer, or would refuse a job."""
        super().check()
        self.shell.run(f"sbatch --test-only {self.options} <<<'#!/bin/sh'")

    @property
    def options(self) -> str:
        """Options of sbatch: a node of the target for this job alone, and no restart by Slurm."""
        assert isinstance(self.target.engine, Slurm)
        minutes = math.ceil((self.limit_seconds + GRACE_SECONDS) / 60) + 1
        fixed = ("--nodes=1", "--exclusive", "--mem=0", "--no-requeue", f"--time={minutes}")
        return shlex.join((*fixed, *self.target.engine.options))
