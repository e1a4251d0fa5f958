"""An engine that reaches no other machine: a copy of the project in which real runs measure."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path

from epochcost.fleet.engine import Command, EngineError, JobState
from epochcost.specs.target import Target

RESULTS = "docs/data/results"


class LocalEngine:
    """The target whose machine is the folder with the name of its host."""

    problem = ""

    def __init__(self, target: Target, payload: Path, root: Path) -> None:
        del payload
        self._root = root
        self._place = Path(target.engine.host).absolute()  # type: ignore[union-attr]
        self._jobs: dict[str, subprocess.Popen[bytes]] = {}

    def check(self) -> None:
        """Fail if the test says so."""
        if self.problem:
            raise EngineError(self.problem)

    def hourly_price(self) -> Decimal | None:
        """The engine has no price."""
        return None

    def start(self) -> None:
        """Copy the specs and models."""
        for part in ("specs", "models"):
            shutil.copytree(self._root / part, self._place / part, dirs_exist_ok=True)

    def submit(self, command: Command) -> str:
        """Start a run there."""
        if command.name not in self._jobs:
            self._jobs[command.name] = subprocess.Popen(
                [sys.executable, "-m", "epochcost", *command.arguments, "--no-ceilings"],
                cwd=self._place,
                env=os.environ | {"TMPDIR": str(self._place)},
                stderr=(self._place / f"{command.name}.log").open("wb"),
                stdout=subprocess.DEVNULL,
            )
        return command.name

    def poll(self, jobs: Sequence[str]) -> tuple[JobState, ...]:
        """The states of processes."""
        states = {None: "running", 0: "ended"}
        codes = [self._jobs[job].poll() for job in jobs]
        return tuple(JobState(states.get(code, "failed")) for code in codes)  # type: ignore[arg-type]

    def logs(self, job: str) -> str:
        """The messages of a run."""
        return (self._place / f"{job}.log").read_text("utf-8")

    def cancel(self, job: str) -> None:
        """Kill a run."""
        self._jobs[job].kill()

    def collect(self, results: Path) -> None:
        """Copy the results."""
        if (self._place / RESULTS).exists():
            shutil.copytree(self._place / RESULTS, results, dirs_exist_ok=True)

    def tear_down(self) -> None:
        """Wait for the end of all runs."""
        for process in self._jobs.values():
            process.wait()
