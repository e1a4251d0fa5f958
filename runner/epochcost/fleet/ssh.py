"""The user's own machines as an engine: `ssh` starts detached jobs, and files hold their state.

A job has a folder ``jobs/NAME`` in the target's folder. The job holds a lock on the file ``lock``
until it has written its exit code to ``exit``, so neither a lost connection nor a restart of the
machine leaves a doubt about its state.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path

from epochcost.fleet.engine import Command, JobState
from epochcost.fleet.payload import RESULTS, install, run_script
from epochcost.fleet.shell import Shell
from epochcost.specs.target import Ssh, Target
from epochcost.specs.wording import printable

_TOOLS = ("flock", "setsid", "timeout")
# `timeout` ends its process group, and kills it if it has not ended after this time.
_GRACE_SECONDS = 30
_SUBMIT = """\
mkdir -p {job} && cd {job} || exit
[ -e pid ] && exit 0
exec 9>lock && flock -n 9 || exit
setsid bash -c {watch} </dev/null >log 2>&1 &
exec 9>&-
until [ -e pid ]; do
  flock -n lock test ! -e pid && {{ tail -n 1 log >&2; exit 1; }}
  sleep 0.1
done
"""
# Only this watching process holds the lock: a job's orphans do not look like the job.
_WATCH = """\
timeout --kill-after={grace} {limit} bash -l -c {run} 9>&- &
{{ echo $! >pid.new && mv pid.new pid; }} || {{ kill $!; exit; }}
wait $!
echo $? >exit.new && mv exit.new exit
"""
_POLL = """\
for job in {jobs}; do
  if ! {{ cd && cd {folder}/"$job"; }} 2>/dev/null; then echo lost
  elif ! flock -n lock true; then echo running
  elif read code 2>/dev/null <exit; then
    [ -e cancelled ] && [ $code != 0 ] && code=cancelled
    echo $code "$(tail -n 1 log)"
  else echo lost; fi
done
"""
_CANCEL = """\
cd {job} 2>/dev/null || exit 0
flock -n lock true && exit 0
touch cancelled
kill $(cat pid)
flock -w {seconds} lock true
"""
# By the first word of the poll's line: a state or an exit code; other codes are failures.
_STATES = {
    "running": JobState("running"),
    "lost": JobState("lost", "its process or its folder is gone: was the machine restarted?"),
    "cancelled": JobState("cancelled"),
    "0": JobState("ended"),
    "124": JobState("failed", "ended at the target's limit_minutes"),
}


class SshEngine:
    """A machine that `ssh` reaches; it exists already, so it is neither started nor given back."""

    def __init__(self, target: Target, payload: Path, project: Path) -> None:
        assert isinstance(target.engine, Ssh)
        self._target, self._payload, self._project = target, payload, project
        self._shell = Shell(target.id, target.engine.host, target.secrets)

    def check(self) -> None:
        """Raise `EngineError` if the machine is unreachable or lacks a program."""
        self._shell.check(_TOOLS)

    def hourly_price(self) -> Decimal | None:
        """Return None, as ssh knows no prices."""
        return None

    def start(self) -> None:
        """Install this checkout and the project there."""
        install(self._shell, self._target, self._payload, self._project)

    def submit(self, command: Command) -> str:
        """Start a command, which a lost connection does not end, and return its name."""
        run = shlex.quote(run_script(self._target, command))
        watch = _WATCH.format(grace=_GRACE_SECONDS, limit=command.limit_seconds, run=run)
        script = _SUBMIT.format(job=self._job(command.name), watch=shlex.quote(watch))
        self._shell.run(script, with_secrets=True)
        return command.name

    def poll(self, jobs: Sequence[str]) -> tuple[JobState, ...]:
        """The states of the jobs, in their order, by one connection."""
        folder = shlex.quote(f"{self._target.folder}/jobs")
        output = self._shell.run(_POLL.format(jobs=shlex.join(jobs), folder=folder))
        return tuple(map(_state, output.split("\n")[:-1]))

    def logs(self, job: str) -> str:
        """The last lines that the job printed."""
        return self._shell.run(f"cd {self._job(job)} && tail -n 20 log")

    def cancel(self, job: str) -> None:
        """End a job and its processes; finished rounds are stored before."""
        self._shell.run(_CANCEL.format(job=self._job(job), seconds=_GRACE_SECONDS + 10))

    def collect(self, results: Path) -> None:
        """Copy the machine's result files into a local folder."""
        self._shell.fetch(f"{self._target.folder}/{RESULTS}", results)

    def tear_down(self) -> None:
        """Do nothing: the machine and its files are the user's."""

    def _job(self, name: str) -> str:
        return shlex.quote(f"{self._target.folder}/jobs/{name}")


def _state(line: str) -> JobState:
    """Parse a line of the poll: a state or an exit code, and the last line of the log."""
    code, _, last = line.partition(" ")
    return _STATES.get(code) or JobState("failed", f"exit code {code}: {printable(last)}")
