"""The errors that a person is meant to read, and the exit code each one ends a command with.

Error:
    ├── InputError             exit 1   values of arguments are wrong
    │   └── ModelError         exit 1   an ONNX file that cannot be read, bound or differentiated
    └── CapabilityError        exit 3   this machine or this package lacks what the work needs

A message says where, what was expected, what was got and what to do.

"""

from __future__ import annotations

import copyreg
from typing import Any, ClassVar

__all__ = ["CapabilityError", "Error", "InputError", "ModelError", "ModelWarning"]


class Error(Exception):
    """Base of every error that is raised on purpose."""

    exit_code: ClassVar[int] = 1

    def __reduce__(self) -> tuple[Any, ...]:
        """Rebuild from the parts: an error reaches another process whole, whatever its message."""
        return copyreg.__newobj__, (type(self), *self.args), self.__dict__  # type: ignore[attr-defined]


class InputError(Error):
    """The user's input or data is wrong."""


class ModelError(InputError):
    """An ONNX model cannot be read, bound or differentiated."""


class ModelWarning(UserWarning):
    """A file leaves something in doubt, or was repaired; commands print it and go on."""


class CapabilityError(Error):
    """Something that the work needs is missing: a library, a right, memory, room on the disk."""

    exit_code = 3
