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
"""

from __future__ import annotations

import copyreg
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

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


class EpochcostError(Exception):
    """Base of every error that a command reports in its own words."""

    exit_code: ClassVar[int] = 1

    def __reduce__(self) -> tuple[Any, ...]:
        """By its parts, so that another process gets it whole: some make their message of them."""
        return copyreg.__newobj__, (type(self), *self.args), self.__dict__  # type: ignore[attr-defined]


class InputError(EpochcostError):
    """The user's input or data is wrong."""


class ModelError(InputError):
    """An ONNX model cannot be read, bound or differentiated."""


class ModelWarning(UserWarning):
    """A file leaves something in doubt, or was repaired; commands print it and go on."""


class ResultError(InputError):
    """A stored result cannot be read or trusted."""


class UsageError(EpochcostError):
    """Arguments that do not go together."""

    exit_code = 2


class CapabilityError(EpochcostError):
    """The machine lacks what the command needs: a GPU, a library, a right, room on the disk."""

    exit_code = 3


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
