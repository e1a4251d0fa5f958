"""Sums of cotangents: over broadcast axes, over the nodes that read a value, and by row of a table.

A cotangent is the gradient of the loss with respect to a value. The graph's opset must be at least
16, because older versions of ScatterND cannot add.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from onnx import TensorProto

from onnxstep.axes import reduced
from onnxstep.builder import Builder, Value

# ONNX Runtime's CPU kernel of ScatterND copies the table. ScatterElements works in place but needs
# an index for each element. ScatterElements is faster if rows are added to at most 1 / 32 of the
# table's rows (benchmarks/rules/scatter.py).
_FEW = 32
# On ONNX Runtime's CPU provider, a product with a row of ones sums columns in 30 to 90 % of the
# time of ReduceSum (benchmarks/rules/column_sums.py). The file of the step stores the row of ones.
_MOST_ONES = 2**16


@dataclass(frozen=True, eq=False)
class ScatteredRows(Value):
    """Gradient of a table: zeros plus ``rows`` [*n, *shape[1:]] at the indices ``places`` [*n, 1].

    ``places`` index the table's first axis. Rows with the same index are summed.
    """

    places: Value
    rows: Value


def unbroadcast(cotangent: Value, shape: tuple[int, ...]) -> Value:
    """Sum a cotangent over broadcast axes, so that it gets the ``shape`` of the operand."""
    if cotangent.shape == shape:
        return cotangent
    op = cotangent.op
    if not cotangent.size:
        return op.zeros(shape, cotangent.elem_type)
    if cotangent.size == math.prod(shape):
        return cotangent.reshape(*shape)
    leading = cotangent.rank - len(shape)
    stretched = [
        axis + leading
        for axis, length in enumerate(shape)
        if length == 1 and cotangent.shape[axis + leading] != 1
    ]
    if leading and not stretched and _is_product_faster_than_reduce_sum(cotangent, leading):
        return _sum_leading_axes_by_product(cotangent, leading).reshape(*shape)
    axes = [*range(leading), *stretched]
    summed = reduced("ReduceSum", cotangent, axes, keepdims=False)
    return summed if summed.shape == shape else summed.reshape(*shape)


def _is_product_faster_than_reduce_sum(value: Value, leading: int) -> bool:
    is_fp32_on_cpu = value.op.provider == "cpu" and value.elem_type == TensorProto.FLOAT
    return is_fp32_on_cpu and math.prod(value.shape[:leading]) <= _MOST_ONES


def _sum_leading_axes_by_product(value: Value, leading: int) -> Value:
    op, rows = value.op, math.prod(value.shape[:leading])
    is_matrix = value.rank == 2 and leading == 1
    matrix = value if is_matrix else value.reshape(rows, -1)
    return op.MatMul(op.constant(np.ones((1, rows), np.float32)), matrix)


def add_cotangents(first: Value, second: Value) -> Value:
    """Add two cotangents of one value; if one is ``ScatteredRows``, add its rows to the other."""
    if isinstance(second, ScatteredRows):
        return _add_scattered_rows(first, second)
    if isinstance(first, ScatteredRows):
        return _add_scattered_rows(second, first)
    return first + second


def scatter_rows(
    op: Builder, shape: tuple[int, ...], elem_type: int, places: Value, rows: Value
) -> ScatteredRows:
    """Zeros of ``shape`` plus ``rows`` [*places.shape, *shape[1:]] at the indices ``places``."""
    at = op.Unsqueeze(places, op.integers(-1))
    table = op.ScatterND(op.zeros(shape, elem_type), at, rows, reduction="add")
    return ScatteredRows(op, table.name, table.shape, table.elem_type, at, rows)


def _add_scattered_rows(table: Value, scattered: ScatteredRows) -> Value:
    op, places, rows = table.op, scattered.places, scattered.rows
    if op.provider != "cpu" or places.size * _FEW > table.shape[0]:
        return op.ScatterND(table, places, rows, reduction="add")
    flat = [places.size, *table.shape[1:]]
    column = places.reshape(-1, *[1] * (table.rank - 1))
    each = op.Expand(column, op.integers(*flat))
    rows = rows.reshape(*flat)
    return op.ScatterElements(table, each, rows, axis=0, reduction="add")
