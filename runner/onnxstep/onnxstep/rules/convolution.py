"""Gradients of convolution and transposed convolution, each of which is the other's adjoint.

dX, dW and dY are the gradients with respect to the input X [N, C, ...], the kernels W [M, C/group,
...] and the result Y [N, M, ...] of a convolution.
"""

from __future__ import annotations

import itertools
import math

from onnxstep import blocked_convolution as blocked
from onnxstep.axes import pad, reduced
from onnxstep.builder import Builder, Value
from onnxstep.channels import channel_axes, wide
from onnxstep.errors import ModelError
from onnxstep.registry import Cotangents, Node, gradient
from onnxstep.windows import (
    Window,
    convolve,
    convolve_transposed,
    crop_uncovered,
    dense_one_hot_kernels,
    one_hot_kernels,
    transposed_window,
    window,
)

# Number of inputs of a convolution with a bias.
_WITH_BIAS = 3
# Largest number of constant elements for one convolution: one megabyte in float32.
_LARGEST_CONSTANT = 2**18


@gradient("Conv", versions=(1, 11, 22))
def conv(op: Builder, node: Node, dy: Value) -> Cotangents:
    """Gradient of the convolution Y = X * W + b, with b [M]."""
    x, w = node.input(0), node.input(1)
    view = window(node, w.shape[2:])
    group = _group_count(node)
    d_bias = _bias_cotangent(dy) if len(node.inputs) == _WITH_BIAS else None
    # If dY is a gradient times a factor for each channel, this gradient replaces dY, and the factor
    # multiplies W and dW.
    dy, factor = op.factors.get(dy.name, (dy, None))
    if factor is not None:
        factor = factor.reshape(-1, *[1] * (w.rank - 1)).cast(w.elem_type)
    kernels = w if factor is None else w * factor
    dx = input_cotangent(x, kernels, dy, view, group) if node.wants(0) else None
    dw = weight_cotangent(op, x, w, dy, view, group) if node.wants(1) else None
    dw = dw * factor if dw is not None and factor is not None else dw
    return dx, dw, d_bias


@gradient("ConvTranspose", versions=(1, 11, 22))
def conv_transpose(op: Builder, node: Node, dy: Value) -> Cotangents:
    """Gradient of a transposed convolution, with w [C, M/group, ...]; dX is dY convolved with w."""
    x, w = node.input(0), node.input(1)
    view = transposed_window(node, w.shape[2:])
    group = _group_count(node)
    dx = convolve(dy, w, view, x.shape[2:], group) if node.wants(0) else None
    dw = weight_cotangent(op, dy, w, x, view, group) if node.wants(1) else None
    return dx, dw, _bias_cotangent(dy)


def _group_count(node: Node) -> int:
    # ONNX's shape inference does not check this attribute.
    group: int = node.attribute("group", 1)
    if group < 1:
        raise ModelError(f"{node.label}: expected a group of 1 or more, got {group}")
    return group


def _bias_cotangent(dy: Value) -> Value:
    return reduced("ReduceSum", dy, channel_axes(dy), keepdims=False)


def input_cotangent(x: Value, w: Value, dy: Value, view: Window, group: int) -> Value:
    """Gradient dX with respect to a convolution's input, by the first method that applies."""
    dx = blocked.adjoint(dy, w, view, x.shape[2:], group)
    if dx is not None:
        return dx
    if group == 1 and _is_pointwise(view):
        return dy.op.Conv(dy, dy.op.Transpose(w, perm=[1, 0, *range(2, w.rank)]))
    return convolve_transposed(dy, w, view, x.shape[2:], group)


def _is_pointwise(view: Window) -> bool:
    return math.prod(view.kernel) == 1 and view.is_partition


def weight_cotangent(op: Builder, x: Value, w: Value, dy: Value, view: Window, group: int) -> Value:
    """Gradient dW with respect to a convolution's kernels, by the first method that applies."""
    dw = blocked.weight_cotangent(x, dy, view, group)
    if dw is not None:
        return dw
    if group == 1 and _is_pointwise(view):
        return _pointwise_weight_cotangent(op, x, w, dy)
    # benchmarks/rules/convolution.py times the product for each element on CUDA.
    if op.provider == "cuda" and group == 1 and math.prod(view.kernel) <= x.shape[1]:
        return by_elements(op, x, w, dy, view)
    # The one-hot kernels of by_patches can become too large.
    small = x.shape[1] * math.prod(view.kernel) ** 2 <= _LARGEST_CONSTANT
    return (by_patches if small else by_exchange)(op, x, w, dy, view, group)


def _pointwise_weight_cotangent(op: Builder, x: Value, w: Value, dy: Value) -> Value:
    """Gradient dW for kernels of one element: the sum of dY Xᵀ over the batch."""
    batch, channels, *space = x.shape
    wide, positions = dy.shape[1], math.prod(space)
    # Take a product for each example, or one product with channels first if that moves fewer
    # elements.
    if channels * wide < (channels + wide) * positions:
        rows = dy.reshape(batch, wide, positions)
        columns = x.reshape(batch, channels, positions)
        products = op.MatMul(rows, op.Transpose(columns, perm=[0, 2, 1]))
        dw = op.ReduceSum(products, op.integers(0), keepdims=0)
    else:
        first = [1, 0, *range(2, x.rank)]
        rows = op.Transpose(dy, perm=first).reshape(wide, batch * positions)
        columns = op.Transpose(x, perm=first).reshape(channels, batch * positions)
        dw = op.Gemm(rows, columns, transB=1)
    return dw.reshape(*w.shape)


def by_elements(op: Builder, x: Value, w: Value, dy: Value, view: Window) -> Value:
    """Gradient dW as one matrix product for each element of the kernel.

    A kernel element's gradient is dY [M, N · positions] times the elements of X, [N · positions,
    C], that the kernel element meets.
    """
    fitted = view.fitted(x.shape[2:], dy.shape[2:])
    padded = pad(x, [0, 0, *fitted.begins], [0, 0, *fitted.ends])
    space = range(2, x.rank)
    by_channel, maps = (op.Transpose(value, perm=[1, 0, *space]) for value in (padded, dy))
    maps = maps.reshape(dy.shape[1], -1)
    products = []
    for element in itertools.product(*map(range, view.kernel)):
        starts = [place * dilation for place, dilation in zip(element, view.dilations, strict=True)]
        steps = zip(starts, dy.shape[2:], view.strides, strict=True)
        ends = [start + (count - 1) * stride + 1 for start, count, stride in steps]
        bounds = [op.integers(*values) for values in (starts, ends, space, view.strides)]
        met = op.Slice(by_channel, *bounds).reshape(x.shape[1], -1)
        products.append(op.Unsqueeze(op.Gemm(maps, met, transB=1), op.integers(-1)))
    return op.Concat(*products, axis=-1).reshape(*w.shape)


def by_patches(op: Builder, x: Value, w: Value, dy: Value, view: Window, group: int) -> Value:
    """Gradient dW as a product of dY and the patches of X, summed over the batch.

    A convolution with one-hot kernels cuts out a patch of X for each position in Y.
    """
    taps, positions = math.prod(view.kernel), math.prod(dy.shape[2:])
    batch, channels = x.shape[:2]
    if op.provider == "cuda" and group == 1:
        # Here a dense convolution is faster than a depthwise one, but cuDNN has no fast kernels for
        # it in half precision.
        x, dy = wide(x), wide(dy)
        kernels = dense_one_hot_kernels(x, channels, view.kernel)
        patches = convolve(x, kernels, view, dy.shape[2:], 1)
    else:
        kernels = one_hot_kernels(x, channels, view.kernel)
        patches = convolve(x, kernels, view, dy.shape[2:], channels)
    rows = dy.reshape(batch, group, dy.shape[1] // group, positions)
    columns = patches.reshape(batch, group, channels // group * taps, positions)
    products = op.MatMul(rows, op.Transpose(columns, perm=[0, 1, 3, 2]))
    dw = op.ReduceSum(products, op.integers(0), keepdims=0)
    return dw.reshape(*w.shape).cast(w.elem_type)


def by_exchange(op: Builder, x: Value, _: Value, dy: Value, view: Window, group: int) -> Value:
    """Gradient dW as a convolution of X as [C/group, group · N, ...] with kernels dY [M, N, ...].

    Strides become dilations, and dilations become strides.
    """
    fitted = view.fitted(x.shape[2:], dy.shape[2:])
    x = crop_uncovered(x, fitted)
    batch, channels, *into = x.shape
    space = list(range(2, x.rank))
    split = x.reshape(batch, group, channels // group, *into)
    exchanged = op.Transpose(split, perm=[2, 1, 0, *(axis + 1 for axis in space)])
    dw = op.Conv(
        exchanged.reshape(channels // group, group * batch, *into),
        op.Transpose(dy, perm=[1, 0, *space]),
        group=group,
        strides=view.dilations,
        dilations=view.strides,
        pads=[max(pad, 0) for pad in fitted.pads],
    )
    return op.Transpose(dw, perm=[1, 0, *space])
