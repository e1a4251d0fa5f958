"""Processes that answer lines on standard input with lines of JSON."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

_BENCHMARKS = Path(__file__).parent


def with_benchmarks() -> dict[str, str]:
    """The environment variables of this process, with the folder benchmarks/ on the import path."""
    path = [str(_BENCHMARKS), *filter(None, [os.environ.get("PYTHONPATH")])]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(path)}


class LineProcess:
    """A process that answers lines; ``options`` are those of ``subprocess.Popen``."""

    def __init__(self, name: str, command: Sequence[str | Path], **options: Any) -> None:
        self.name = name
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            **{"env": with_benchmarks(), **options},
        )

    def send(self, line: str = "") -> None:
        """Write a line to the process."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"{line}\n")
        self._process.stdin.flush()

    def receive(self) -> str:
        """The next line from the process, empty if the process has ended."""
        assert self._process.stdout is not None
        return str(self._process.stdout.readline())

    def answer(self) -> Any:
        """The next answer; exits if the process ends before it."""
        line = self.receive()
        if not line:
            raise SystemExit(f"{self.name}: ended early, exit {self._process.wait()}")
        return json.loads(line)

    def close(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.communicate()
