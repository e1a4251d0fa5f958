"""The work of a graph for an example: arithmetic by kind, and numbers moved.

Two graphs of the same work take about the same time on a machine; ``predict`` learns which time.
Graphs are counted in ``profiling``; readers of a profile need no onnx.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Profile:
    """The work of an example's forward pass.

    ``flops`` counts two operations for each multiply and add in ``products`` (the nodes that
    compute them), ``matrix_flops`` the part in plain products of matrices. ``moved`` are the
    numbers that products read (parameters aside) and write, ``moved_by_grouped`` the part of
    grouped convolutions, ``moved_by_others`` what other nodes read and write; ``recurrent_flops``
    the part of recurrences, which go step by step.
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
    """How many numbers are trained, and the operations of one example's forward pass.

    ``looked_up`` of the numbers stand in tables of which a step reads some rows only. A
    prediction of time goes by ``profile``; None where the graph computes no product.
    """

    parameters: int
    forward_flops: float
    looked_up: int = 0
    profile: Profile | None = None

    @property
    def read_whole(self) -> int:
        """The numbers that every step reads."""
        return self.parameters - self.looked_up
