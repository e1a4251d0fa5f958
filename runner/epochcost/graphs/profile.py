"""Counts of a forward pass of one example: operations by kind, and memory traffic.

The module ``profiling`` computes these counts. This module does not import onnx.
"""

from __future__ import annotations

from dataclasses import dataclass

# By the usual convention, a training step takes the operations of three forward passes.
PASSES_PER_STEP = 3


@dataclass(frozen=True, slots=True)
class Profile:
    """Operations and memory traffic of the forward pass of an example.

    A multiplication and an addition are two ``flops``. ``products`` is the number of nodes with
    ``flops``, such as convolutions. ``moved`` is how many numbers these nodes read and write,
    without parameters; ``moved_by_grouped`` is its part in grouped convolutions.
    ``moved_by_others`` is that of other nodes, without those that runtimes fuse, such as reshapes.
    """

    flops: float
    matrix_flops: float
    moved: float
    moved_by_grouped: float
    moved_by_others: float
    parameters: int
    products: int
    recurrent_flops: float = 0.0


@dataclass(frozen=True)
class Arithmetic:
    """A model's number of parameters, and the operations of its forward pass for an example.

    The ``looked_up`` parameters are in tables of which a step reads only some rows. ``profile`` is
    None if no node has operations.
    """

    parameters: int
    forward_flops: float
    looked_up: int = 0
    profile: Profile | None = None

    @property
    def read_whole(self) -> int:
        """The number of parameters outside lookup tables; each forward pass reads all of them."""
        return self.parameters - self.looked_up
