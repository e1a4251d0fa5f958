"""The user's own machines as an engine: `ssh` starts detached jobs, and files hold their state.

A job holds the lock on the file ``lock`` in its folder until it has written its exit code, so
neither a lost connection nor a restart of the machine leaves a doubt about its state.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path

from epochcost.fleet.engine import GRACE_SECONDS, Engine
from epochcost.specs.target import Ssh, Target

# `mkdir` fails if the job was cancelled before. Only the watching process inherits the lock.
_SUBMIT = """\
mkdir jobs/{job} || exit
exec 9>jobs/{job}/lock && flock 9 || exit
setsid bash -c {watch} </dev/null >jobs/{job}/log 2>&1 &
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
flock -w {seconds} lock true
"""


class SshEngine(Engine):
    """A machine that `ssh` reaches; it exists already, so it is neither started nor given back."""

    tools = ("flock", "setsid", "timeout")

    def __init__(self, target: Target, payload: Path, project: Path) -> None:
        host = target.engine.host if isinstance(target.engine, Ssh) else None
        super().__init__(target, payload, project, host)

    def submit(self, job: str, arguments: Sequence[str]) -> None:
        """Start a job, which a lost connection does not end."""
        watch = shlex.quote(self._watch(job, arguments))
        self._run(_SUBMIT.format(job=job, watch=watch))

    def _state_text(self, job: str) -> str:
        return self._run(_STATE.format(job=job)).strip()

    def cancel(self, job: str) -> None:
        """End a job and its processes; finished rounds are stored before."""
        self._run(_CANCEL.format(job=job, seconds=GRACE_SECONDS + 10))
