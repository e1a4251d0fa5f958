"""An engine that reaches no other machine: a copy of the project in which real runs measure."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from epochcost.fleet.engine import Engine, JobState
from epochcost.fleet.ledger import Tariff
from epochcost.fleet.shell import EngineError

RESULTS = "docs/data/results"


class LocalEngine(Engine):
    """An engine whose machine is a local folder with the name of the target's host."""

    problem = ""

    def __init__(self, tariff: Tariff, payload: Path, root: Path) -> None:
        super().__init__(tariff, payload, root)
        self._root = root
        self._place = Path(str(self.target.host)).absolute()
        self._jobs: dict[str, subprocess.Popen[bytes]] = {}

    def check(self) -> None:
        """Raise the problem that the test has set, if any."""
        if self.problem:
            raise EngineError(self.problem)

    def start(self) -> None:
        """Copy the specs and models to the machine's folder."""
        for part in ("specs", "models"):
            shutil.copytree(self._root / part, self._place / part, dirs_exist_ok=True)

    def submit(self, job: str, arguments: Sequence[str]) -> None:
        """Start a run in the machine's folder."""
        self._jobs[job] = subprocess.Popen(
            [sys.executable, "-m", "epochcost", *arguments, "--no-ceilings"],
            cwd=self._place,
            env=os.environ | {"TMPDIR": str(self._place)},
            stderr=(self._place / f"{job}.log").open("wb"),
            stdout=subprocess.DEVNULL,
        )

    def poll(self, job: str) -> JobState:
        """The state of a run's process."""
        code = self._jobs[job].poll()
        return JobState("running" if code is None else "failed" if code else "ended")

    def logs(self, job: str) -> str:
        """The messages of a run."""
        return (self._place / f"{job}.log").read_text("utf-8")

    def cancel(self, job: str) -> None:
        """Kill a run."""
        self._jobs[job].kill()

    def collect(self, results: Path) -> None:
        """Copy the results from the machine's folder."""
        if (self._place / RESULTS).exists():
            shutil.copytree(self._place / RESULTS, results, dirs_exist_ok=True)

    def tear_down(self, _job: str) -> None:
        """Wait for the end of all runs."""
        for process in self._jobs.values():
            process.wait()
