"""The work of a graph for an example: arithmetic by kind, and numbers moved.

``profiling`` counts it, ``predict`` learns its time; readers need no onnx.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Profile:
    """The work of an example's forward pass.

    ``flops`` counts two operations for each multiply and add in ``products``, the number of nodes
    with products; ``matrix_flops`` is the part of matrix products. ``moved`` are the numbers that
    products read (without parameters) and write, ``moved_by_grouped`` the part of grouped
    convolutions, ``moved_by_others`` those of all other nodes. ``recurrent_flops`` is the part of
    recurrences, which run step by step.
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
    """The parameters of a model, and the operations of one example's forward pass.

    ``looked_up`` parameters are in tables of which a step reads only some rows. ``profile`` is for
    predicting times; None if the graph computes no product.
    """

    parameters: int
    forward_flops: float
    looked_up: int = 0
    profile: Profile | None = None

    @property
    def read_whole(self) -> int:
        """The number of parameters that every step reads."""
        return self.parameters - self.looked_up
