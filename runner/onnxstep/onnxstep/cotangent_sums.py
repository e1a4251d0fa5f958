"""Sums of cotangents: undone broadcasting, added contributions, rows added to a table.

A table whose rows are read receives their cotangents at the places of the rows. If it also receives
another gradient, like an embedding that is tied to the last layer, the rows are added to that one
without a table of zeros. Scatters cannot add before opset 16: see ``rules.indexing``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from onnxstep.builder import Builder, Value

# ONNX Runtime's CPU kernel of ScatterND copies the table; ScatterElements works in place but needs
# an index for each element. It is faster if at most 1 / 32 of the rows receive something:
# benchmarks/rules/scatter.py.
_FEW = 32


@dataclass(frozen=True, eq=False)
class ScatteredRows(Value):
    """Zeros of a table's shape with rows [*places.shape[:-1], ...] added at ``places`` [..., 1]."""

    places: Value
    rows: Value


def unbroadcast(cotangent: Value, shape: tuple[int, ...]) -> Value:
    """Sum a cotangent of a broadcast result back to the ``shape`` of the operand.

    Broadcasting copies an operand along new leading axes and along axes of length one; the
    derivative of copying is summing. Shapes that differ by axes of length one only are reshaped.
    """
    if cotangent.shape == shape:
        return cotangent
    op = cotangent.op
    if cotangent.size == math.prod(shape):
        return op.Reshape(cotangent, op.integers(*shape))
    leading = cotangent.rank - len(shape)
    stretched = [
        axis + leading
        for axis, length in enumerate(shape)
        if length == 1 and cotangent.shape[axis + leading] != 1
    ]
    axes = [*range(leading), *stretched]
    summed = op.ReduceSum(cotangent, op.integers(*axes), keepdims=0) if axes else cotangent
    return summed if summed.shape == shape else op.Reshape(summed, op.integers(*shape))


def add_cotangents(first: Value, second: Value) -> Value:
    """The sum of two cotangents of one value; scattered rows are added in place."""
    if isinstance(first, ScatteredRows) and not isinstance(second, ScatteredRows):
        first, second = second, first
    return _add_rows(first, second) if isinstance(second, ScatteredRows) else first + second


def scatter_rows(
    op: Builder, shape: tuple[int, ...], elem_type: int, places: Value, rows: Value
) -> ScatteredRows:
    """Zeros of ``shape`` with rows [*places.shape, *shape[1:]] added at their places."""
    at = op.Unsqueeze(places, op.integers(-1))
    table = op.ScatterND(op.zeros(shape, elem_type), at, rows, reduction="add")
    return ScatteredRows(op, table.name, table.shape, table.elem_type, at, rows)


def _add_rows(table: Value, scattered: ScatteredRows) -> Value:
    """Add scattered rows to a table that receives another gradient too."""
    op, places, rows = table.op, scattered.places, scattered.rows
    if op.provider != "cpu" or places.size * _FEW > table.shape[0]:
        return op.ScatterND(table, places, rows, reduction="add")
    flat = [places.size, *table.shape[1:]]
    column = op.Reshape(places, op.integers(-1, *[1] * (table.rank - 1)))
    each = op.Expand(column, op.integers(*flat))
    rows = op.Reshape(rows, op.integers(*flat))
    return op.ScatterElements(table, each, rows, axis=0, reduction="add")
