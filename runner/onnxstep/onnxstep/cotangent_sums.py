"""How cotangents add up: broadcasting undone, contributions summed, rows added to a table.

All rules leave the first two to their caller. A table of which rows are read receives the sum of
their cotangents, each at its place. Where it receives a gradient from elsewhere too, as an
embedding does that is also the last layer's weight, the rows are added to that one, and no table of
zeros is made. Before opset 16, where scatters do not add up, ``rules.indexing`` has another form.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from onnxstep.builder import Builder, Value

# ONNX Runtime's CPU kernel of ScatterElements works in place, that of ScatterND copies the table
# first; but it takes an index for each element: benchmarks/rules/scatter.py. So few places of a
# table it pays for.
_FEW = 32


@dataclass(frozen=True, eq=False)
class ScatteredRows(Value):
    """Rows [*places.shape[:-1], ...] added at ``places`` [..., 1] to zeros of a table's shape."""

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
    """The sum of two cotangents of one value; scattered rows are added to the other in place."""
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
    """A table that receives a gradient anyway, with the rows added at their places."""
    op, places, rows = table.op, scattered.places, scattered.rows
    if op.provider != "cpu" or places.size * _FEW > table.shape[0]:
        return op.ScatterND(table, places, rows, reduction="add")
    flat = [places.size, *table.shape[1:]]
    column = op.Reshape(places, op.integers(-1, *[1] * (table.rank - 1)))
    each = op.Expand(column, op.integers(*flat))
    rows = op.Reshape(rows, op.integers(*flat))
    return op.ScatterElements(table, each, rows, axis=0, reduction="add")
