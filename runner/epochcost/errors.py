"""Error classes, whose messages are for users, and the exit codes of commands that raise them.

    EpochcostError
    ├── InputError             exit 1   wrong specs, models, results or values of arguments
    │   ├── SpecError          exit 1   faults in TOML specs
    │   ├── ModelError         exit 1   a model that is unreadable or lacks shapes or gradients
    │   └── ResultError        exit 1   a stored result that cannot be read
    ├── UsageError             exit 2   arguments that contradict each other
    └── CapabilityError        exit 3   this machine lacks something that the command needs

A message says where the fault is, what was expected, what was found and what to do.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from onnxstep.errors import CapabilityError, InputError, ModelError, ModelWarning
from onnxstep.errors import Error as EpochcostError

__all__ = [
    "CapabilityError",
    "EpochcostError",
    "Fault",
    "InputError",
    "ModelError",
    "ModelWarning",
    "ResultError",
    "SpecError",
    "UsageError",
]


class ResultError(InputError):
    """A stored result cannot be read or trusted."""


class UsageError(EpochcostError):
    """Arguments contradict each other."""

    exit_code = 2


@dataclass(frozen=True, order=True)
class Fault:
    """A fault and its place in a file; lines and columns count from 1."""

    path: Path
    line: int
    column: int
    message: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}:{self.column}: {self.message}"


class SpecError(InputError):
    """One or more faults in TOML specs; the message has a line for each fault."""

    def __init__(self, faults: Sequence[Fault]) -> None:
        self.faults = tuple(sorted(faults))
        super().__init__("\n".join(map(str, self.faults)))
