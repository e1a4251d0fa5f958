"""Slurm as an engine: each command is a batch job that has a node for itself.

The commands of Slurm run on the login node, or on this machine. The target's folder must be on a
file system that the nodes share. Each target has a folder of its own there, so that targets with
other packages do not disturb each other.
"""

from __future__ import annotations

import math
import shlex
from collections.abc import Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from types import MappingProxyType

from epochcost.errors import InputError
from epochcost.fleet.engine import Command, JobState, State
from epochcost.fleet.payload import RESULTS, install, run_script
from epochcost.fleet.shell import Shell
from epochcost.specs.target import Slurm, Target

_TOOLS = ("sbatch", "squeue", "scancel", "timeout")
# `timeout` kills a command that has not ended this long after its limit; Slurm ends it later.
_GRACE_SECONDS = 30
# A file per name survives the launch; squeue knows a job whose file could not be written.
_SUBMIT = """\
cd {folder} || exit
{give_up}
file=jobs/{name}.id
[ -s "$file" ] || squeue --me --noheader --states=all --name={name} --format=%A >"$file" || exit
[ -s "$file" ] || {{
  job=$(sbatch --parsable --chdir="$PWD" --job-name={name} {options} <<<{script}) || exit
  echo "${{job%%;*}}" >"$file" || exit
}}
cat "$file"
"""
# The run needs a disk with locks, which shared file systems may lack: the node's own.
_JOB = """\
#!/bin/bash -l
results=$(mktemp -d) && export results || exit
trap 'cp -au "$results"/. {shared}; rm -rf "$results"' EXIT
[ ! -e {shared}/{hardware} ] || cp -a {shared}/{hardware} "$results" || exit
timeout --kill-after={grace} {limit} bash -l -c {run} &
trap 'kill $!' TERM
wait $!
wait $!
code=$?
[ $code != 124 ] || echo "ended at the limit_minutes of the target"
exit $code
"""
_CANCEL = """\
scancel --quiet {job}
for second in {{1..{seconds}}}; do
  squeue --me --noheader --format=%A | grep -qx {job} || exit 0
  sleep 1
done
"""
_STATES: Mapping[str, State] = MappingProxyType(
    {
        "PENDING": "queued",
        "CONFIGURING": "starting",
        "COMPLETED": "ended",
        "CANCELLED": "cancelled",
        "BOOT_FAIL": "lost",
        "NODE_FAIL": "lost",
        "PREEMPTED": "lost",
        "FAILED": "failed",
        "OUT_OF_MEMORY": "failed",
        "TIMEOUT": "failed",
    }
)
# Reasons of a queued job that no waiting removes.
_HOPELESS = ("BadConstraints", "PartitionNodeLimit", "PartitionTimeLimit", "launch failed")


class SlurmEngine:
    """Nodes of a Slurm cluster; a job pays for its node only while it runs."""

    def __init__(self, target: Target, payload: Path, project: Path) -> None:
        if not isinstance(target.engine, Slurm):
            raise InputError(f"target {target.id}: expected the engine slurm")
        self._target = target.model_copy(update={"folder": f"{target.folder}/{target.id}"})
        self._slurm, self._payload, self._project = target.engine, payload, project
        self._shell = Shell(target.id, target.engine.login, target.secrets)
        # Names of commands whose submission failed: their jobs may exist.
        self._doubtful: set[str] = set()

    def check(self) -> None:
        """Raise `EngineError` if Slurm is missing, does not answer, or would refuse a job."""
        self._shell.check(_TOOLS)
        options = shlex.join(self._options(60 * self._target.limit_minutes))
        self._shell.run(f"sbatch --test-only {options} <<<'#!/bin/sh'")

    def hourly_price(self) -> Decimal | None:
        """None: Slurm knows no prices."""
        return None

    def start(self) -> None:
        """Install this checkout and the project in the shared folder, from the login node."""
        install(self._shell, self._target, self._payload, self._project)

    def submit(self, command: Command) -> str:
        """Submit a command as a job and return its id.

        First the jobs of commands whose submission failed are cancelled, as nobody awaits them.
        """
        job = _JOB.format(
            shared=RESULTS,
            hardware=self._target.hardware,
            grace=_GRACE_SECONDS,
            limit=command.limit_seconds,
            run=shlex.quote(run_script(self._target, command, '--results "$results"')),
        )
        script = _SUBMIT.format(
            folder=shlex.quote(self._target.folder),
            give_up=self._give_up(self._doubtful - {command.name}),
            name=shlex.quote(command.name),
            options=shlex.join(self._options(command.limit_seconds)),
            script=shlex.quote(job),
        )
        self._doubtful.add(command.name)
        identifier = self._shell.run(script, with_secrets=True).strip()
        self._doubtful.clear()
        return identifier

    def poll(self, jobs: Sequence[str]) -> tuple[JobState, ...]:
        """The states of the jobs, in their order; jobs that nobody can start are cancelled."""
        states = self._listed("squeue --me --noheader --states=all --format='%A|%T|%r'")
        forgotten = ",".join(job for job in jobs if job not in states)
        if forgotten:
            account = "sacct --noheader --parsable2 --allocations --format=JobIDRaw,State,Reason"
            # Without accounting, the results tell how such a job has ended.
            states |= self._listed(f"{account} --jobs={shlex.quote(forgotten)} || true")
        failed = [job for job in jobs if job in states and states[job].state == "failed"]
        if failed:
            # Those that Slurm cannot start wait in its queue; it is no fault if there are none.
            self._shell.run(f"scancel --quiet --state=PENDING {shlex.join(failed)} || true")
        return tuple(states.get(job, JobState("ended")) for job in jobs)

    def logs(self, job: str) -> str:
        """The last lines that the job printed."""
        return self._shell.run(f"tail -n 20 {shlex.quote(f'{self._target.folder}/jobs/{job}.log')}")

    def cancel(self, job: str) -> None:
        """End a job and wait until its node is free; finished rounds are stored before."""
        self._shell.run(_CANCEL.format(job=shlex.quote(job), seconds=_GRACE_SECONDS + 5))

    def collect(self, results: Path) -> None:
        """Copy the jobs' result files from the shared folder into a local folder."""
        self._shell.fetch(f"{self._target.folder}/{RESULTS}", results)

    def tear_down(self) -> None:
        """Cancel jobs whose submission failed; other jobs end at their limits, and cost nothing."""
        if self._doubtful:
            self._shell.run(self._give_up(self._doubtful))
            self._doubtful.clear()

    def _give_up(self, names: set[str]) -> str:
        return (
            f"scancel --quiet --me --name={shlex.quote(','.join(sorted(names)))}" if names else ""
        )

    def _options(self, limit_seconds: int) -> tuple[str, ...]:
        """Options of sbatch for a node of the target, alone, and not started again by Slurm."""
        slurm = self._slurm
        chosen = {
            "partition": slurm.partition,
            "constraint": slurm.constraint,
            "gres": slurm.gres,
            "account": slurm.account,
            "time": str(math.ceil((limit_seconds + _GRACE_SECONDS) / 60) + 1),
            "output": "jobs/%j.log",
            "export": "ALL",
        }
        fixed = ("--nodes=1", "--exclusive", "--mem=0", "--no-requeue")
        return (*fixed, *(f"--{name}={value}" for name, value in chosen.items() if value))

    def _listed(self, command: str) -> dict[str, JobState]:
        """Jobs by id, from lines of an id, a state and a reason."""
        lines = (line.split("|", 2) for line in self._shell.run(command).splitlines())
        return {job: _state(word, reason) for job, word, reason in lines}


def _state(word: str, reason: str) -> JobState:
    """Translate Slurm's words; sacct writes who cancelled a job after its state."""
    name = word.partition(" ")[0]
    state = _STATES.get(name, "running")
    if state == "queued" and reason.startswith(_HOPELESS):
        return JobState("failed", f"Slurm cannot start it ({reason}): correct the target's engine")
    # The job's log says more than an exit code.
    quiet = state not in ("failed", "lost") or reason == "NonZeroExitCode"
    return JobState(state, "" if quiet else f"Slurm: {name} {reason}".removesuffix(" None"))
