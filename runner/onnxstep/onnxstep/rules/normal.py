"""Gradients of normalization and regularization.

A normalization computes y = x̂ · scale + bias with x̂ = (x - mean) · r, where r is the inverse
standard deviation. ONNX's function bodies replace MeanVarianceNormalization and GroupNormalization
(from opset 21 on) before differentiation.
"""

from __future__ import annotations

import math

import numpy as np
from onnx import TensorProto

from onnxstep.axes import reduced
from onnxstep.builder import Builder, Value
from onnxstep.channels import channel_axes, per_channel, wide
from onnxstep.registry import Cotangents, Node, gradient

_DEFAULT_RATIO = 0.5


def mean(value: Value, axes: list[int]) -> Value:
    """Mean of ``value`` over ``axes``, which remain with length 1."""
    return reduced("ReduceMean", value, axes, keepdims=True)


def through(g: Value, unit: Value, r: Value, axes: list[int], *, centred: bool = True) -> Value:
    """Gradient dx = r (g - mean(g) - x̂ mean(g x̂)) of a normalization over ``axes``.

    ``unit`` is x̂, and ``g`` the gradient with respect to x̂. Unless ``centred``, omit mean(g).
    """
    inner = g - mean(g, axes) if centred else g
    return (inner - unit * mean(g * unit, axes)) * r


def add_from_statistics(
    dx: Value, unit: Value, r: Value, d_mean: Value | None, d_inverse: Value | None
) -> Value:
    """Add to dx the term (dμ - x̂ r² dr) / n from the outputs μ (mean) and r (1 / deviation).

    ``unit`` is x̂, with n elements for each element of r. A gradient that is None counts as 0.
    """
    each = r.size / unit.size
    if d_inverse is not None:
        dx = dx - unit * (r * r * d_inverse.cast(dx.elem_type) * each)
    return dx if d_mean is None else dx + d_mean.cast(dx.elem_type) * each


def _normalized(x: Value, axes: list[int], epsilon: float) -> tuple[Value, Value]:
    """The tensors x̂ and r of a normalization of x over ``axes``."""
    deviation = x - mean(x, axes)
    variance = mean(deviation * deviation, axes)
    r = 1.0 / x.op.Sqrt(variance + epsilon)
    return deviation * r, r


@gradient("LayerNormalization", versions=(17,))
def layer_normalization(
    op: Builder,
    node: Node,
    dy: Value | None,
    d_mean: Value | None = None,
    d_inverse: Value | None = None,
) -> Cotangents:
    """Gradient of the normalization over all axes from ``axis`` on."""
    x, scale = wide(node.x), node.input(1)
    axes = list(range(node.attribute("axis") % x.rank, x.rank))
    if x.elem_type == TensorProto.DOUBLE:  # the node's statistics are float32
        unit, r = _normalized(x, axes, node.attribute("epsilon"))
    else:
        r = node.output(2).cast(x.elem_type)
        unit = (x - node.output(1).cast(x.elem_type)) * r
    g = op.zeros(x.shape, x.elem_type) if dy is None else wide(dy)
    dx = through(g * scale.cast(x.elem_type), unit, r, axes)
    dx = add_from_statistics(dx, unit, r, d_mean, d_inverse)
    return dx.cast(node.x.elem_type), (g * unit).cast(scale.elem_type), g.cast(scale.elem_type)


@gradient("RMSNormalization", versions=(23,))
def rms_normalization(op: Builder, node: Node, dy: Value) -> Cotangents:
    """Gradient of x̂ = x r with r = 1 / √(mean(x²) + ε): dx = r (g - x̂ mean(g x̂)).

    Here g is the gradient with respect to x̂. The normalization subtracts no mean.
    """
    x, scale = wide(node.x), node.input(1)
    axes = list(range(node.attribute("axis") % x.rank, x.rank))
    r = 1.0 / op.Sqrt(mean(x * x, axes) + node.attribute("epsilon"))
    unit, received = x * r, wide(dy)
    g = received * scale.cast(x.elem_type)
    dx = through(g, unit, r, axes, centred=False)
    return dx.cast(node.x.elem_type), (received * unit).cast(scale.elem_type)


@gradient("InstanceNormalization", versions=(6, 22))
def instance_normalization(_: Builder, node: Node, dy: Value) -> Cotangents:
    """Gradient of the normalization over the spatial axes, for each example and channel."""
    x, received, axes = wide(node.x), wide(dy), list(range(2, node.x.rank))
    unit, r = _normalized(x, axes, node.attribute("epsilon"))
    scale = node.input(1)
    dx = through(received * per_channel(x, scale), unit, r, axes)
    over = channel_axes(x)
    d_scale = reduced("ReduceSum", received * unit, over, keepdims=False)
    d_bias = reduced("ReduceSum", received, over, keepdims=False)
    return dx.cast(node.x.elem_type), d_scale.cast(scale.elem_type), d_bias.cast(scale.elem_type)


@gradient("LRN", versions=(1, 13))
def lrn(op: Builder, node: Node, dy: Value) -> Cotangents:
    """Gradient of y = x s⁻ᵝ, where s = bias + α · mean of x² over a window of channels.

    The gradient is dx = dy s⁻ᵝ - 2 α β x · mean of (dy x s⁻ᵝ⁻¹) over the mirrored window.
    """
    x = node.x
    alpha: float = node.attribute("alpha")
    beta: float = node.attribute("beta")
    size: int = node.attribute("size")
    before, after = (size - 1) // 2, size - 1 - (size - 1) // 2
    s = _channel_window_mean(op, x * x, before, after) * alpha + node.attribute("bias")
    scaled = dy * op.Pow(s, op.scalar(-beta, x.elem_type))
    along = _channel_window_mean(op, scaled * x / s, after, before)
    return scaled - x * along * (2 * alpha * beta)


def _channel_window_mean(op: Builder, x: Value, channels_before: int, channels_after: int) -> Value:
    """Mean of x over a window of channels around each channel; missing channels count as 0."""
    batch, channels = x.shape[:2]
    pooled = op.AveragePool(
        x.reshape(batch, 1, channels, math.prod(x.shape[2:])),
        kernel_shape=[channels_before + 1 + channels_after, 1],
        pads=[channels_before, 0, channels_after, 0],
        count_include_pad=1,
    )
    return pooled.reshape(*x.shape)


@gradient("Dropout", versions=(12, 13, 22))
def dropout(op: Builder, node: Node, dy: Value) -> Cotangents:
    """Gradient dx = dy m / (1 - r), with the mask m and ratio r; in inference mode, dx = dy."""
    training = node.optional_input(2)
    if training is None:
        return dy
    constant = op.array_of(training)
    if constant is not None and not bool(constant):
        return dy
    mask, scale = node.output(1), _dropout_scale(op, node, dy)
    if constant is None:
        scale = op.Where(training, scale, op.scalar(1.0, dy.elem_type))
    if op.provider == "cuda":  # one pass over the mask instead of two
        return dy * op.Where(mask, scale, op.scalar(0.0, dy.elem_type))
    return dy * (op.Cast(mask, to=dy.elem_type) * scale)


def _dropout_scale(op: Builder, node: Node, dy: Value) -> Value:
    """1 / (1 - r) for the dropout ratio r, or 0 if r is the constant 1."""
    ratio = node.optional_input(1)
    share = np.array(_DEFAULT_RATIO) if ratio is None else op.array_of(ratio)
    if share is not None:
        return op.scalar(1 / (1 - float(share)) if share < 1 else 0.0, dy.elem_type)
    return 1.0 / (1.0 - op.Cast(ratio, to=dy.elem_type))
