"""Errors that users see, with exit codes; a message says what is wrong, where, and what to do."""

from __future__ import annotations

import copyreg
from typing import Any, ClassVar

__all__ = ["CapabilityError", "Error", "InputError", "ModelError", "ModelWarning"]


class Error(Exception):
    """Base class of the errors that this package raises for its user."""

    exit_code: ClassVar[int] = 1

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the constructor's arguments, so that an error can be sent to another process."""
        return copyreg.__newobj__, (type(self), *self.args), self.__dict__  # type: ignore[attr-defined]


class InputError(Error):
    """An argument or the user's data is wrong."""


class ModelError(InputError):
    """An ONNX model cannot be read, its dimensions cannot be bound, or it has no gradient."""


class ModelWarning(UserWarning):
    """A model file is ambiguous or was repaired; commands print the warning and continue."""


class CapabilityError(Error):
    """Something required is missing: a library, a permission, memory or disk space."""

    exit_code = 3
