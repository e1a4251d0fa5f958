"""The interface between `epochcost launch` and an engine, and the engine that uses `ssh`.

A job has a folder ``jobs/NAME`` on the target, with ``script``, ``log`` and finally ``exit``. Calls
that take too long raise `EngineError`: `start` after ``setup_minutes``, `collect` and `tear_down`
together after ``IDLE_MINUTES``, others by `ssh` after a minute.
"""

from __future__ import annotations

import shlex
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar, Literal, NamedTuple

from epochcost.fleet.ledger import Tariff
from epochcost.fleet.payload import RESULTS, install, run_script
from epochcost.fleet.shell import Shell

# "lost": the machine went away, and the job with it; "ended" says nothing about the result.
State = Literal["queued", "starting", "running", "ended", "failed", "lost"]
# `timeout` ends the processes of a run, and kills them if they have not ended after this time.
GRACE_SECONDS = 30
# Bash ends `wait` at a signal, so the second `wait` gets the exit code of a run that is cancelled.
_WATCH = """\
trap 'kill $!' TERM
timeout --kill-after={grace} {limit} bash -l -c {run} 9>&- &
wait $!
wait $!
echo $? >jobs/{job}/exit
"""
# `mkdir` fails if the job was cancelled before.
_WRITE = "mkdir jobs/{job} && printf %s {script} >jobs/{job}/script || exit\n"
# The watching process alone inherits the lock, and holds it until it has written the exit code. So
# neither a lost connection nor a restart of the machine leaves a doubt about the job's state.
_SUBMIT = """\
exec 9>jobs/{job}/lock && flock 9 || exit
setsid bash jobs/{job}/script </dev/null >jobs/{job}/log 2>&1 &
echo $! >jobs/{job}/pid
"""
_STATE = """\
flock -n -E 9 jobs/{job}/lock cat jobs/{job}/exit 2>/dev/null ||
  if [ $? = 9 ]; then echo running; else echo lost; fi
"""
_CANCEL = """\
mkdir -p jobs/{job} && cd jobs/{job} || exit
flock -n lock true && exit
kill $(cat pid)
flock -w {patience} lock true
"""


class JobState(NamedTuple):
    """The state of a job; ``reason`` explains a failure or a wait."""

    state: State
    reason: str = ""


_STATES = {
    "0": JobState("ended"),
    "124": JobState("failed", "ended at the target's limit_minutes"),
    "lost": JobState("lost", "it left no exit code: was its machine restarted or taken away?"),
    "CONFIGURING": JobState("starting"),
}
# Slurm's reasons of a queued job that no waiting removes.
_HOPELESS = ("BadConstraints", "PartitionNodeLimit", "PartitionTimeLimit", "launch failed")


class Engine:
    """Access to one target by `ssh`; several threads of a launch may use it.

    The machine is up already; this class neither starts it nor gives it back. If ``held``, a
    machine is also paid for between jobs. A job's name has only letters, digits and hyphens.
    """

    held: ClassVar[bool] = True
    # Stations set this under the lock ``starting``, so that only one starts the target.
    is_up = False
    tools: ClassVar[tuple[str, ...]] = ("flock", "setsid", "timeout")
    # Templates in bash: the script of a job, and the scripts that act on a job.
    job_script: ClassVar[str] = "{watch}"
    submit_script: ClassVar[str] = _SUBMIT
    state_script: ClassVar[str] = _STATE
    cancel_script: ClassVar[str] = _CANCEL
    run_options: ClassVar[str] = ""

    def __init__(self, tariff: Tariff, payload: Path, project: Path) -> None:
        self.tariff, self.target = tariff, tariff.target
        self.limit_seconds = 60 * self.target.limit_minutes
        self.shell = Shell(self.target.id, self.target.host, self.target.secrets)
        self._payload, self._project = payload, project
        self.starting = threading.Lock()

    def check(self) -> None:
        """Raise `EngineError` if the target cannot be used; this starts nothing and costs nothing.

        If a subclass's service quotes a price of the machine, ``self.tariff`` then has this price.
        """
        self.shell.check(self.tools)

    def start(self) -> None:
        """Install epochcost on the target; subclasses may first start the target's machine."""
        install(self.shell, self.target, self._payload, self._project)

    def submit(self, job: str, arguments: Sequence[str]) -> None:
        """Start `epochcost` with ``arguments`` as a job, unless the job is cancelled already."""
        run = shlex.quote(run_script(self.target, arguments, self.run_options))
        watch = _WATCH.format(job=job, grace=GRACE_SECONDS, limit=self.limit_seconds, run=run)
        script = self.job_script.format(watch=watch, shared=RESULTS, hardware=self.target.hardware)
        self._run_job_script(_WRITE + self.submit_script, job, script=shlex.quote(script))

    def poll(self, job: str) -> JobState:
        """Ask the target for a job's state; a job that Slurm can never start counts as failed."""
        word, _, reason = self._run_job_script(self.state_script, job).strip().partition(" ")
        if word == "PENDING" and reason.startswith(_HOPELESS):
            return JobState("failed", f"Slurm cannot start it ({reason}): correct the options")
        if word == "PENDING":
            return JobState("queued", reason.removeprefix("None"))
        other = JobState("failed", f"exit code {word}") if word.isdigit() else JobState("running")
        return _STATES.get(word, other)

    def logs(self, job: str) -> str:
        """The last lines that the job printed, for a message."""
        return self._run_job_script("tail -n 20 jobs/{job}/log", job)

    def cancel(self, job: str) -> None:
        """Send ``job`` the signal to end, and wait until it has ended.

        A running job first stores its finished rounds. A job that has not started yet will never
        start.
        """
        self._run_job_script(self.cancel_script, job)

    def collect(self, results: Path) -> None:
        """Copy the target's result files into the local folder ``results``."""
        self.shell.fetch(f"{self.target.place}/{RESULTS}", results)

    def tear_down(self, job: str) -> None:
        """Give the machine back after its latest ``job``; with `ssh`, there is nothing to do."""

    def _run_job_script(self, template: str, job: str, **values: str) -> str:
        values |= {"job": job, "options": self.options, "patience": str(GRACE_SECONDS + 5)}
        folder = shlex.quote(self.target.place)
        return self.shell.run(f"cd {folder} || exit\n{template.format(**values)}")

    @property
    def options(self) -> str:
        """Options of `sbatch`, which submits jobs to Slurm; empty for other kinds of targets."""
        return ""
