"""What an example consists of: the arrays that go in, and those that a loss compares with.

Pure descriptions; how their values are drawn is left to ``teacher``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

Arrays = Mapping[str, NDArray[Any]]
Kind = Literal["numbers", "tokens", "constant"]


@dataclass(frozen=True)
class InputField:
    """A graph input: the shape of one example, and its half-open range ``[low, high)``.

    ``tokens`` are indices of a vocabulary, whose neighbours have nothing in common; a ``constant``
    is ``low`` everywhere.
    """

    name: str
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    low: float
    high: float
    kind: Kind = "numbers"

    @property
    def example_bytes(self) -> int:
        """How much one example takes."""
        return math.prod(self.shape) * self.dtype.itemsize


@dataclass(frozen=True)
class TargetField:
    """A graph input that a loss compares an output with; ``shape`` is that of one example.

    ``classes`` are indices in an integer array, 0 or 1 in an array of floats; without them the
    values are numbers in ``[low, high)``. ``ignored_share`` of the positions hold ``IGNORED``.
    Where it is ``merged``, the graph takes the batch and the first axis of an example as one.
    """

    name: str
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    classes: int | None = None
    low: float = 0.0
    high: float = 1.0
    ignored_share: float = 0.0
    merged: bool = False

    @property
    def positions(self) -> int:
        """How many values one example has."""
        return math.prod(self.shape)

    @property
    def example_bytes(self) -> int:
        """How much one example takes."""
        return self.positions * self.dtype.itemsize


@dataclass(frozen=True)
class Batch:
    """Examples along axis 0: an array for each field, and one for each target."""

    inputs: Arrays
    targets: Arrays
