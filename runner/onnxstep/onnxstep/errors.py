"""Errors that users see, and the exit code of a command that ends with one.

A message says where the problem is, what was expected, what was there and what to do.

Error:
    ├── InputError             exit 1   values of arguments are wrong
    │   └── ModelError         exit 1   an ONNX file that cannot be read, bound or differentiated
    └── CapabilityError        exit 3   this machine or this package lacks something the work needs

"""

from __future__ import annotations

import copyreg
from typing import Any, ClassVar

__all__ = ["CapabilityError", "Error", "InputError", "ModelError", "ModelWarning"]


class Error(Exception):
    """Base of every error that is raised on purpose."""

    exit_code: ClassVar[int] = 1

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the constructor's arguments, so that subclasses survive another process."""
        return copyreg.__newobj__, (type(self), *self.args), self.__dict__  # type: ignore[attr-defined]


class InputError(Error):
    """The user's input or data is wrong."""


class ModelError(InputError):
    """An ONNX model cannot be read, bound or differentiated."""


class ModelWarning(UserWarning):
    """A file is ambiguous, or was repaired; commands print the warning and go on."""


class CapabilityError(Error):
    """A requirement is missing: a library, a permission, memory or disk space."""

    exit_code = 3
