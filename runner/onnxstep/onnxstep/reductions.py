"""Sums, means and other reductions over axes, in the form that is fastest on the provider."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from onnx import TensorProto

from onnxstep.builder import Value

# First opset in which the axes of ReduceMax, ReduceMean and similar operators are inputs. The axes
# of ReduceSum are inputs from opset 13 on, so in all supported opsets.
_AXES_ARE_INPUTS = 18
# Reductions that are products with a column, and the longest such column, of one megabyte.
_SUMS = frozenset({"ReduceMean", "ReduceSum"})
_LONGEST_COLUMN = 2**18


def reduced(op_type: str, x: Value, axes: Sequence[int], *, keepdims: bool) -> Value:
    """Reduce x over ``axes``, given in ascending order; return x if there are no axes."""
    if not axes:
        return x
    last = [axis for place, axis in enumerate(axes, x.rank - len(axes)) if place == axis]
    if x.op.provider == "cuda" and last and len(last) < x.rank:
        # Middle axes take 4 to 7 times as long as first or last axes
        # (benchmarks/rules/channel_sums.py).
        if axes[0] == 0 and axes != last:
            x = reduced(op_type, x, last, keepdims=keepdims)
            return _reduced(op_type, x, axes[: -len(last)], keepdims)
        # A product with a column of ones takes half the time of ReduceSum.
        if [*axes] == last and _fits_column_product(op_type, x, last):
            return _reduce_by_column_product(op_type, x, last, keepdims)
    return _reduced(op_type, x, axes, keepdims)


def _reduced(op_type: str, x: Value, axes: Sequence[int], keepdims: bool) -> Value:
    op = x.op
    if op_type == "ReduceSum" or op.opset >= _AXES_ARE_INPUTS:
        return op.emit(op_type, [x, op.integers(*axes)], {"keepdims": int(keepdims)})[0]
    return op.emit(op_type, [x], {"keepdims": int(keepdims), "axes": list(axes)})[0]


def _fits_column_product(op_type: str, x: Value, last_axes: Sequence[int]) -> bool:
    count = math.prod(x.shape[axis] for axis in last_axes)
    is_sum = op_type in _SUMS and x.elem_type == TensorProto.FLOAT
    return is_sum and 1 < count <= _LONGEST_COLUMN


def _reduce_by_column_product(
    op_type: str, x: Value, last_axes: Sequence[int], keepdims: bool
) -> Value:
    op, rows = x.op, x.shape[: -len(last_axes)]
    count = math.prod(x.shape[len(rows) :])
    weight = 1.0 if op_type == "ReduceSum" else 1 / count
    matrix = x if len(last_axes) == len(rows) == 1 else op.Reshape(x, op.integers(-1, count))
    sums = op.MatMul(matrix, op.constant(np.full((count, 1), weight, np.float32)))
    shape = (*rows, *[1] * len(last_axes)) if keepdims else rows
    return sums if sums.shape == shape else op.Reshape(sums, op.integers(*shape))
