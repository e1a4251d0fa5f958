"""The seam between a launch and an engine: the states of a job and the calls of an engine.

An engine object reaches one target. Each call returns within a minute or raises `EngineError`;
`start` has the target's ``setup_minutes``, and `collect` and `tear_down` together have the engine's
``idle_minutes``. `ssh`, `slurm` and `sky` implement it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Literal, Protocol

from epochcost.errors import EpochcostError

# "lost": the machine went away, and the job with it; "ended" says nothing about the result.
State = Literal["queued", "starting", "running", "ended", "failed", "cancelled", "lost"]


class EngineError(EpochcostError):
    """A call of an engine failed; the message says on which target, why and what to do.

    ``passing``: the same call may succeed later, such as after a lost connection.
    """

    exit_code = 3

    def __init__(self, message: str, *, passing: bool = False) -> None:
        super().__init__(message)
        self.passing = passing


@dataclass(frozen=True, slots=True)
class Command:
    """A command for a target, which ends it after ``limit_seconds``.

    ``name`` is short and unique among all launches. ``arguments`` follow the word `epochcost`; they
    never contain secrets.
    """

    name: str
    arguments: tuple[str, ...]
    limit_seconds: int


@dataclass(frozen=True, slots=True)
class JobState:
    """The state of a job; ``reason`` is the engine's own sentence about a failure."""

    state: State
    reason: str = ""


class Engine(Protocol):
    """One target, as an engine reaches it. Every call may be repeated without harm."""

    def check(self) -> None:
        """Raise `EngineError` if the target cannot be used: such as a wrong host key.

        Starts nothing and costs nothing.
        """

    def hourly_price(self) -> Decimal | None:
        """The engine's own price of an hour of the machine, in dollars; None if it has none."""

    def start(self) -> None:
        """Bring the machine up and install this checkout there; sets and verifies its autostop."""

    def submit(self, command: Command) -> str:
        """Start a command and return its job id, which is valid in a later launch, too.

        A command with the name of an earlier command is not started again; it returns the earlier
        job's id, so that a launch finds the jobs of a killed launch.
        """

    def poll(self, jobs: Sequence[str]) -> tuple[JobState, ...]:
        """The states of the jobs, in their order, by one call of the engine."""

    def logs(self, job: str) -> str:
        """The last lines that the job printed, for a message."""

    def cancel(self, job: str) -> None:
        """End a job; no error if it has ended."""

    def collect(self, results: Path) -> None:
        """Copy the target's result files into a local folder of this target."""

    def tear_down(self) -> None:
        """Give the machine back, so that it costs nothing; no error if it is gone."""
