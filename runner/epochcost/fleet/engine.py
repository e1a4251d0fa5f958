"""The interface between a launch and an engine, and the work that all engines share.

An engine reaches one target. It needs a folder there, where each job has a folder ``jobs/NAME``
with its ``log`` and, after its end, its ``exit`` code. So a job's state outlives a connection.

Each call returns within a minute or raises `EngineError`; `start` has the target's
``setup_minutes``, and `collect` and `tear_down` together have ``IDLE_MINUTES``.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from typing import ClassVar, Literal, NamedTuple

from epochcost.fleet.payload import RESULTS, install, run_script
from epochcost.fleet.shell import Shell
from epochcost.specs.target import Target

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


class JobState(NamedTuple):
    """The state of a job; ``reason`` explains a failure or a wait."""

    state: State
    reason: str = ""


_STATES = {
    "0": JobState("ended"),
    "124": JobState("failed", "ended at the target's limit_minutes"),
    "lost": JobState("lost", "it left no exit code: was its machine restarted or taken away?"),
}


class Engine:
    """Access to one target. A job's name has letters, digits and hyphens only."""

    tools: ClassVar[tuple[str, ...]]

    def __init__(self, target: Target, payload: Path, project: Path, host: str | None) -> None:
        folder = f"{target.folder}/{target.id}"
        self.target = target.model_copy(update={"folder": folder})
        self.limit_seconds = 60 * target.limit_minutes
        self.shell = Shell(target.id, host, target.secrets)
        self._payload, self._project = payload, project

    def check(self) -> None:
        """Raise `EngineError` if the target cannot be used; starts nothing and costs nothing."""
        self.shell.check(self.tools)

    def hourly_price(self) -> Decimal | None:
        """The engine's own price of an hour of the machine, in dollars; None if it has none."""
        return None

    def start(self) -> None:
        """Start the machine, install this code on it, and set the time at which it ends itself."""
        install(self.shell, self.target, self._payload, self._project)

    def submit(self, job: str, arguments: Sequence[str]) -> None:
        """Start `epochcost` with arguments under a new name, unless that name was cancelled."""
        raise NotImplementedError

    def poll(self, job: str) -> JobState:
        """The state of a job."""
        word, _, reason = self._state_text(job).partition(" ")
        if word.isdigit() or word in _STATES:
            return _STATES.get(word) or JobState("failed", f"exit code {word}")
        if word == "PENDING":
            return JobState("queued", reason.removeprefix("None"))
        return JobState("starting" if word == "CONFIGURING" else "running")

    def _state_text(self, job: str) -> str:
        """A job's exit code, "lost", or the engine's state and reason while it waits or runs."""
        raise NotImplementedError

    def logs(self, job: str) -> str:
        """The last lines that the job printed, for a message."""
        return self._run(f"tail -n 20 jobs/{job}/log")

    def cancel(self, job: str) -> None:
        """End a job; no error if it has ended or does not exist."""
        raise NotImplementedError

    def collect(self, results: Path) -> None:
        """Copy the target's result files into a local folder of this target."""
        self.shell.fetch(f"{self.target.folder}/{RESULTS}", results)

    def tear_down(self) -> None:
        """Give the machine back, so that it costs nothing; no error if it is gone."""

    def _run(self, script: str) -> str:
        """Run a script in the target's folder."""
        return self.shell.run(f"cd {shlex.quote(self.target.folder)} || exit\n{script}")

    def _watch(self, job: str, arguments: Sequence[str], options: str = "") -> str:
        """A bash script that runs a job in the target's folder up to its limit."""
        run = shlex.quote(run_script(self.target, arguments, options))
        return _WATCH.format(job=job, grace=GRACE_SECONDS, limit=self.limit_seconds, run=run)
