"""Gradients of pooling: maxima and means over windows."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from onnx import TensorProto

from onnxstep.axes import matmul_along_axis
from onnxstep.builder import Builder, Value, ascending, require_room
from onnxstep.errors import ModelError
from onnxstep.registry import Cotangents, Node, gradient
from onnxstep.windows import Window, convolve_transposed, window

# Up to this length of an axis, a matrix product repeats the elements faster than Expand.
_SHORT_AXIS = 32


@gradient("MaxPool", versions=(8, 10, 11, 12, 22))
def max_pool(op: Builder, node: Node, dy: Value) -> Cotangents:
    """The gradient goes to each window's maximum; a maximum of several windows gets the sum."""
    if node.attribute("storage_order"):
        raise ModelError(f"{node.label}: only storage_order = 0 is differentiated")
    x, view = node.x, window(node, tuple(node.attribute("kernel_shape")))
    # MaxUnpool is faster than a scatter (benchmarks/rules/max_pool.py).
    whole = tuple(n * k for n, k in zip(node.y.shape[2:], view.kernel, strict=True))
    fits = view.is_partition and whole == x.shape[2:]
    if fits and op.provider == "cpu" and x.elem_type == TensorProto.FLOAT:
        return op.MaxUnpool(dy, node.output(1), kernel_shape=view.kernel, strides=view.strides)
    adding = {} if view.is_partition else {"reduction": "add"}
    flat = op.integers(-1)
    scattered = op.ScatterElements(
        op.zeros([x.size], dy.elem_type),
        op.Reshape(node.output(1), flat),
        op.Reshape(dy, flat),
        axis=0,
        **adding,
    )
    return scattered.reshape(*x.shape)


@gradient("AveragePool", versions=(7, 10, 11, 19, 22))
def average_pool(op: Builder, node: Node, dy: Value) -> Cotangents:
    """Each element gets the sum of dy / n over its windows of n elements; n may include padding."""
    view = window(node, tuple(node.attribute("kernel_shape")))
    shares = dy * _inverse_window_sizes(op, node, view)
    return _sum_containing_windows(op, shares, view, node.x.shape[2:])


def _inverse_window_sizes(op: Builder, node: Node, view: Window) -> Value:
    """Factors 1 / n for windows of n elements; a scalar if n is the same for all windows."""
    total = op.scalar(1.0, node.y.elem_type)
    for axis in range(len(view.kernel)):
        counts = _window_sizes_along(node, view, axis)
        alike = bool(np.all(counts == counts[0]))
        factors = 1.0 / (counts[:1] if alike else counts)
        shape = () if alike else (-1, *[1] * (len(view.kernel) - 1 - axis))
        typed = factors.astype(node.y.dtype).reshape(shape)
        total = op.constant(typed) if total.rank == 0 and axis == 0 else total * op.constant(typed)
    return total


def _window_sizes_along(
    node: Node, view: Window, axis: int
) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    length = node.x.shape[2 + axis]
    padded = bool(node.attribute("count_include_pad"))
    first, last = (-view.begins[axis], length + view.ends[axis]) if padded else (0, length)
    starts = ascending(node.y.shape[2 + axis]) * view.strides[axis] - view.begins[axis]
    require_room(*starts.shape, view.kernel[axis])
    taps = starts[:, None] + np.arange(view.kernel[axis]) * view.dilations[axis]
    return np.asarray(((taps >= first) & (taps < last)).sum(axis=1))


def _sum_containing_windows(
    op: Builder, dy: Value, view: Window, input_lengths: tuple[int, ...]
) -> Value:
    """For each element of the input, sum ``dy`` over the windows that contain the element."""
    batch, channels, *out = dy.shape
    fitted = view.fitted(input_lengths, tuple(out))
    if fitted.is_partition:
        return _repeat_along_spatial_axes(op, dy, view.kernel)
    planes = dy.reshape(-1, 1, *out)
    kernel = op.Expand(op.scalar(1.0, dy.elem_type), op.integers(1, 1, *view.kernel))
    dx = convolve_transposed(planes, kernel, view, input_lengths, 1)
    return dx.reshape(batch, channels, *input_lengths)


def _repeat_along_spatial_axes(op: Builder, dy: Value, copies_per_axis: Sequence[int]) -> Value:
    # On the CPU, ONNX Runtime's Expand copies element by element, and matrix products are faster.
    if op.provider == "cpu" and max(dy.shape[2:]) <= _SHORT_AXIS:
        for axis, count in enumerate(copies_per_axis, 2):
            unit = np.eye(dy.shape[axis], dtype=dy.dtype)
            dy = matmul_along_axis(op.constant(np.repeat(unit, count, axis=0)), dy, axis)
        return dy
    lead, out = dy.shape[:2], dy.shape[2:]
    split = [length for n in out for length in (n, 1)]
    spread = [length for pair in zip(out, copies_per_axis, strict=True) for length in pair]
    copies = op.Expand(dy.reshape(*lead, *split), op.integers(*lead, *spread))
    return copies.reshape(*lead, *(n * t for n, t in zip(out, copies_per_axis, strict=True)))


@gradient("GlobalAveragePool", versions=(1, 22))
def global_average_pool(op: Builder, node: Node, dy: Value) -> Cotangents:
    """The gradient of a channel's mean, divided by n, goes to each of its n elements."""
    return op.Expand(dy * (dy.size / node.x.size), op.integers(*node.x.shape))


@gradient("GlobalMaxPool", versions=(1, 22))
def global_max_pool(op: Builder, node: Node, dy: Value) -> Cotangents:
    """The gradient goes to the first maximum of each channel, as in PyTorch's max pooling."""
    x = node.x
    rows = x.reshape(*x.shape[:2], -1)
    scattered = op.ScatterElements(
        op.zeros(rows.shape, dy.elem_type),
        op.ArgMax(rows, axis=2, keepdims=1),
        dy.reshape(*x.shape[:2], 1),
        axis=2,
    )
    return scattered.reshape(*x.shape)
