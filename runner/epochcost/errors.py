"""The errors that a person is meant to read, and the exit code each one ends a command with.

    EpochcostError
    ├── InputError             exit 1   specs, models, results or values of arguments are wrong
    │   ├── SpecError          exit 1   one or more located faults in TOML specs
    │   ├── ModelError         exit 1   an ONNX file that cannot be read, bound or differentiated
    │   └── ResultError        exit 1   a stored result that cannot be read
    ├── UsageError             exit 2   arguments that do not go together
    └── CapabilityError        exit 3   this machine lacks what the command needs

A message says where, what was expected, what was got and what to do. Modules below the command
line raise these and nothing else on purpose; the command line prints them without a traceback.
EpochcostError and those about models are the classes of ``onnxstep``, which raises them too.
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
    """Arguments that do not go together."""

    exit_code = 2


@dataclass(frozen=True, order=True)
class Fault:
    """One thing wrong in one place of a file; line and column count from 1."""

    path: Path
    line: int
    column: int
    message: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}:{self.column}: {self.message}"


class SpecError(InputError):
    """One or more faults in TOML specs; ``str()`` is one line per fault."""

    def __init__(self, faults: Sequence[Fault]) -> None:
        self.faults = tuple(sorted(faults))
        super().__init__("\n".join(map(str, self.faults)))
