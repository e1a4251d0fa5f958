"""Operations along axes for gradient rules: pad, cut, reduce, multiply by a matrix.

``zero_after`` and ``late`` delay the nodes that read a tensor until another value is computed.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from onnx import TensorProto, helper

from onnxstep.builder import Value

# First opset in which the axes of ReduceMax, ReduceMean and similar operators are inputs. The axes
# of ReduceSum are inputs from opset 13 on, so in all supported opsets.
_AXES_ARE_INPUTS = 18
# Reductions that are products with a column, and the longest such column, of one megabyte.
_SUMS = frozenset({"ReduceMean", "ReduceSum"})
_LONGEST_COLUMN = 2**18


def pad(x: Value, begins: Sequence[int], ends: Sequence[int]) -> Value:
    """Add zeros before and after each axis of x; a negative number removes elements instead."""
    stops = [length + min(end, 0) for length, end in zip(x.shape, ends, strict=True)]
    inner = cut(x, [max(-begin, 0) for begin in begins], stops)
    zeros = [max(pad, 0) for pad in [*begins, *ends]]
    if x.elem_type == TensorProto.BFLOAT16:  # ONNX Runtime cannot Pad it
        return _pad_by_concat(inner, zeros)
    return x.op.Pad(inner, x.op.integers(*zeros)) if any(zeros) else inner


def _pad_by_concat(x: Value, zeros: Sequence[int]) -> Value:
    """Pad x; ``zeros`` has the numbers of zeros before each axis, then those after each axis."""
    for axis in range(x.rank):
        parts = [
            x.op.zeros([*x.shape[:axis], count, *x.shape[axis + 1 :]], x.elem_type)
            if count
            else None
            for count in (zeros[axis], zeros[axis + x.rank])
        ]
        if any(parts):
            x = x.op.Concat(*filter(None, [parts[0], x, parts[1]]), axis=axis)
    return x


def cut(x: Value, starts: Sequence[int], stops: Sequence[int]) -> Value:
    """The block x[starts:stops], with one start and one stop for each axis."""
    op = x.op
    bounds = zip(starts, stops, x.shape, strict=True)
    axes = [axis for axis, bound in enumerate(bounds) if bound != (0, bound[2], bound[2])]
    if not axes:
        return x
    begin = op.integers(*(starts[axis] for axis in axes))
    end = op.integers(*(stops[axis] for axis in axes))
    return op.Slice(x, begin, end, op.integers(*axes))


def cut_along(x: Value, axis: int, start: int, stop: int) -> Value:
    """The elements of x from ``start`` up to ``stop`` along ``axis``; other axes stay complete."""
    starts, stops = [0] * x.rank, list(x.shape)
    starts[axis], stops[axis] = start, stop
    return cut(x, starts, stops)


def split_at(x: Value, lengths: Sequence[int], axis: int) -> tuple[Value, ...]:
    """Split x along ``axis`` into parts of these ``lengths``."""
    inputs = [x, x.op.integers(*lengths)]
    return x.op.emit("Split", inputs, {"axis": axis}, outputs=len(lengths))


def flip(x: Value, axes: Sequence[int]) -> Value:
    """Reverse the order of the elements of x along ``axes``."""
    if not axes:
        return x
    integers, back = x.op.integers, [-1] * len(axes)
    before_first = [np.iinfo(np.int64).min] * len(axes)
    return x.op.Slice(x, integers(*back), integers(*before_first), integers(*axes), integers(*back))


def transposed(x: Value) -> Value:
    """Swap the last two axes of x."""
    return x.op.Transpose(x, perm=[*range(x.rank - 2), x.rank - 1, x.rank - 2])


def materialized_transpose(x: Value) -> Value:
    """Swap the last two axes of x and store the result in memory.

    Reshapes keep ONNX Runtime from fusing the Transpose into a matrix product, which would then
    read memory in large strides.
    """
    op, leading, (rows, columns) = x.op, x.shape[:-2], x.shape[-2:]
    order = [*range(len(leading)), x.rank - 1, x.rank - 2, x.rank]
    wide = x.reshape(*x.shape, 1)
    return op.Transpose(wide, perm=order).reshape(*leading, columns, rows)


def dilate(x: Value, steps: Sequence[int]) -> Value:
    """Insert ``steps[axis] - 1`` zeros after each element of x along each axis."""
    split = [n for length, step in zip(x.shape, steps, strict=True) for n in _pair(length, step, 1)]
    zeros = [n for step in steps for n in _pair(0, step, step - 1)]
    if not any(zeros):
        return x
    wide = pad(x.reshape(*split), [0] * len(split), zeros)
    return wide.reshape(*(n * s for n, s in zip(x.shape, steps, strict=True)))


def matmul_along_axis(matrix: Value, x: Value, axis: int) -> Value:
    """Multiply ``matrix`` [rows, length] with each vector of x [..., length, ...] on ``axis``."""
    op, (rows, length) = x.op, matrix.shape
    outer, inner = math.prod(x.shape[:axis]), math.prod(x.shape[axis + 1 :])
    if inner == 1:
        lines = x.reshape(outer, length)
        product = op.MatMul(lines, op.Transpose(matrix, perm=[1, 0]))
    else:
        product = op.MatMul(matrix, x.reshape(outer, length, inner))
    return product.reshape(*x.shape[:axis], rows, *x.shape[axis + 1 :])


def _pair(first: int, step: int, second: int) -> list[int]:
    return [first, second] if step > 1 else [first]


def zero_after(trigger: Value) -> Value:
    """The int64 number 0 as a tensor [1] that is available only after ``trigger``; see ``late``."""
    op = trigger.op
    first = op.Gather(trigger.reshape(-1), op.integers(0))
    return op.Cast(first, to=TensorProto.INT64) * op.integers(0)


def late(x: Value, zero: Value) -> Value:
    """A copy of x without its own memory; nodes that read the copy run only after ``zero``.

    A Reshape to the shape of x plus ``zero`` (a result of ``zero_after``) makes the copy.
    ``allowzero`` keeps ONNX Runtime from removing the Reshape. ONNX Runtime does not merge a node
    that reads x with a node that reads the copy.
    """
    shape = x.op.integers(*x.shape) + zero
    node = helper.make_node("Reshape", [x.name, shape.name], [], allowzero=1)
    return x.op.emit_shaped(x, x.shape, node)


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
    matrix = x if len(last_axes) == len(rows) == 1 else x.reshape(-1, count)
    sums = op.MatMul(matrix, op.constant(np.full((count, 1), weight, np.float32)))
    shape = (*rows, *[1] * len(last_axes)) if keepdims else rows
    return sums if sums.shape == shape else sums.reshape(*shape)
