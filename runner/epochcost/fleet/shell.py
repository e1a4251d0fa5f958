"""Run scripts and copy files on a machine: this one, or another through `ssh` and `rsync`.

The user's ssh configuration declares keys, ports and jump hosts. Scripts and secrets travel on
standard input, so no process list shows them.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from epochcost.errors import EpochcostError
from epochcost.specs.wording import printable

_SSH = (
    "ssh -T -o BatchMode=yes -o ConnectTimeout=20"
    " -o ServerAliveInterval=15 -o ServerAliveCountMax=4"
)
# Printed before a script's output, as a login profile may print, too.
_BEGIN = "-- epochcost --"
_CALL_SECONDS = 50
_COPY_SECONDS = 240
# Exit codes of ssh and rsync after a lost connection.
_LOST = {12, 30, 35, 255}
# Files that rsync has not yet renamed: another copy into the same folder may be writing them.
_KEEP_TEMPORARY = "--filter=protect .*.??????"
# Colours, and the summary that rsync prints after the reason of its failure.
_NOISE = re.compile(r"\x1b\[[0-9;]*m|^rsync error: .*", re.MULTILINE)
_INSTALL = {"sky": "install skypilot 0.14.1 for your cloud (see docs/how-to/measure-on-clouds.md)"}
_UNREACHABLE = "it cannot be reached ({reason}): is it on, and does `ssh {host}` work?"
_SLURM_AWAY = "Slurm does not answer ({reason}): does `sinfo` work there?"
# Patterns of messages of known failures, each with a sentence that has the remedy.
_PROBLEMS = {
    "REMOTE HOST IDENTIFICATION HAS CHANGED": "its host key differs from the key in known_hosts: "
    "ask its owner for the reason; if it was reinstalled, remove the old key with `ssh-keygen -R` "
    "and run `ssh {host}` once",
    "Host key verification failed": "its host key is unknown: run `ssh {host}` once and compare "
    "the fingerprint",
    r"Permission denied \([a-z]": "it refuses the key: `ssh {host}` must work without a password "
    "(see ssh-copy-id, ssh-add)",
    "No space left on device|Disk quota exceeded": "its disk is full: free some space there, or "
    "name another `folder` in the target",
    "Could not resolve hostname.*|[Cc]onnect.* (refused|timed out)|No route to host"
    "|Network is unreachable": _UNREACHABLE,
    "rsync: (command )?not found": "expected rsync there: install it",
    "Unable to contact slurm controller.*|Socket timed out.*|DNS SRV lookup failed": _SLURM_AWAY,
    "(?:sbatch: error|allocation failure): .*": "Slurm refuses the job ({reason}): compare the "
    "target with the output of `sinfo --format='%P %l %f %G'` there",
}


class EngineError(EpochcostError):
    """A target could not be used; ``passing`` if the cause is temporary, as a lost connection."""

    exit_code = 3

    def __init__(self, message: str, *, passing: bool = False) -> None:
        super().__init__(message)
        self.passing = passing


@dataclass(frozen=True, slots=True)
class Shell:
    """Runs scripts and copies files on a target's ``host``; None means this machine.

    Scripts get the environment variables ``secrets``; no output or error contains their values.
    """

    target: str
    host: str | None
    secrets: tuple[str, ...] = ()

    def check(self, tools: Sequence[str]) -> None:
        """Raise EngineError if the machine is unreachable, or lacks rsync or one of ``tools``."""
        self.call(("rsync", "--version"))
        names = shlex.join(("rsync", *tools))
        missing = self.run(f"for tool in {names}; do type $tool >&2 || echo $tool; done").split()
        if missing:
            raise self.error(f"expected these programs there: {', '.join(missing)}: install them")

    def run(self, script: str, *, seconds: float = _CALL_SECONDS) -> str:
        """The output of a bash script that a login shell runs in the user's home folder.

        Raises EngineError if the script fails, or takes longer than ``seconds``.
        """
        values = ((name, os.environ.get(name, "")) for name in self.secrets)
        exports = (f"export {name}={shlex.quote(value)}" for name, value in values)
        lines = ("{", "cd || exit", f"echo '{_BEGIN}'", *exports, script, "} </dev/null\nexit")
        remote = (*_SSH.split(), "--", self.host) if self.host else ()
        output = self.call((*remote, "bash", "-l", "-s"), "\n".join(lines), seconds=seconds)
        return output.partition(f"{_BEGIN}\n")[2]

    def send(self, paths: Sequence[Path], folder: str, seconds: float = _COPY_SECONDS) -> None:
        """Copy files and folders into a folder on the target; copied folders lose other files."""
        self.run(f"mkdir -p {shlex.quote(folder)}")
        sources = (str(path.absolute()) for path in paths)
        self._copy(seconds, "-L", "--delete", _KEEP_TEMPORARY, *sources, f"{self._place(folder)}/")

    def fetch(self, folder: str, destination: Path) -> None:
        """Copy JSON files from a folder on the target, if they are missing here or differ."""
        destination.mkdir(parents=True, exist_ok=True)
        only = ("--include=*/", "--include=*.json", "--exclude=*", "--prune-empty-dirs")
        self._copy(_COPY_SECONDS, *only, f"{self._place(folder)}/", f"{destination.absolute()}/")

    def error(self, sentence: str, *, passing: bool = False) -> EngineError:
        """Make an error that names this target."""
        machine = f" ({self.host})" if self.host else ""
        text = self._clean(f"target {self.target}{machine}: {sentence}")
        return EngineError(text, passing=passing)

    def call(self, command: Sequence[str], text: str = "", seconds: float = _CALL_SECONDS) -> str:
        """Run a program here (not on ``host``) with ``text`` as input, and return its output.

        Raises EngineError if the program is missing, fails or takes longer than ``seconds``.
        """
        try:
            process = subprocess.run(
                command, input=text, capture_output=True, encoding="utf-8", errors="replace",
                cwd=Path.home(), timeout=seconds, check=False,
                start_new_session=True,  # so that Ctrl-C does not end a call half done
            )  # fmt: skip
        except FileNotFoundError:
            remedy = _INSTALL.get(command[0], "install it")
            raise self.error(f"expected the program {command[0]} here: {remedy}") from None
        except subprocess.TimeoutExpired:
            raise self.error(f"no answer within {seconds:.0f} s", passing=True) from None
        output, message = self._clean(process.stdout), self._clean(process.stderr)
        if process.returncode:
            raise self._explained(process.returncode, message or output)
        return output

    def _clean(self, text: str) -> str:
        text = _NOISE.sub("", text)
        for name in self.secrets:
            if value := os.environ.get(name):
                text = text.replace(value, f"${name}")
        return text

    def _place(self, folder: str) -> str:
        return f"{self.host}:{folder}" if self.host else str(Path.home() / folder)

    def _copy(self, seconds: float, *arguments: str) -> None:
        # Names with spaces reach the other side unchanged with -s.
        self.call(("rsync", "-rtzs", "-e", _SSH, *arguments), seconds=seconds)

    def _explained(self, status: int, message: str) -> EngineError:
        last_line = message.strip().rpartition("\n")[2]
        reason = printable(last_line.strip()) or f"exit code {status}"
        for pattern, sentence in _PROBLEMS.items():
            if match := re.search(pattern, message):
                passing = sentence in (_UNREACHABLE, _SLURM_AWAY)
                if self.host is None and "{host}" in sentence:  # not of ssh, such as of `sky`
                    return self.error(reason, passing=passing)
                return self.error(sentence.format(host=self.host, reason=match[0]), passing=passing)
        if self.host and status in _LOST:
            return self.error(f"the connection was lost: {reason}", passing=True)
        return self.error(reason)
