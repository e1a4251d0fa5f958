"""Gradients of normalization and regularization.

Every normalization computes y = x̂ · scale + bias, with x̂ = (x - mean) · r over some axes and the
inverse deviation r. The gradient of the loss with respect to x is dx = r (g - mean(g) - x̂ · mean(g
x̂)), with g = dy · scale. GroupNormalization and MeanVarianceNormalization are differentiated
through their function bodies in ONNX, because onnx infers no shapes for them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from onnx import TensorProto

from onnxstep.blocked_convolution import has_kernels
from onnxstep.builder import Builder, Value
from onnxstep.graphs.tensors import HALF_TYPES
from onnxstep.registry import Cotangents, Node, gradient, refused

_DEFAULT_RATIO = 0.5
# From this number of elements per image on, depthwise convolutions are faster than elementwise
# operators (benchmarks/rules/batch_normalization.py).
LARGE_IMAGE = 512


@dataclass(frozen=True)
class Normalized:
    """A batch x [N, C, ...] normalized per channel.

    ``mean`` and ``variance`` are [C]; ``deviation`` is x - mean [N, C, ...]. ``inverse`` is 1 /
    √(variance + epsilon), in a shape that broadcasts to the deviation.
    """

    mean: Value
    variance: Value
    deviation: Value
    inverse: Value


def channel_axes(x: Value) -> list[int]:
    """All axes of x except the axis of the channels."""
    return [0, *range(2, x.rank)]


def per_channel(x: Value, channels: Value) -> Value:
    """Reshape values [C], one per channel, to broadcast to x [N, C, ...]; cast them to x's type."""
    op = x.op
    shaped = op.Reshape(channels, op.integers(-1, *[1] * (x.rank - 2)))
    return shaped.cast(x.elem_type)


def wide(x: Value) -> Value:
    """Cast x to float32 if it is half, for means and variances."""
    return x.op.Cast(x, to=TensorProto.FLOAT) if x.elem_type in HALF_TYPES else x


def _is_convolved(x: Value) -> bool:
    """Whether to scale and sum x by depthwise convolutions; on the CPU they take fewer passes."""
    return has_kernels(x.op, x) and math.prod(x.shape[2:]) >= LARGE_IMAGE


def scaled(x: Value, gain: Value, shift: Value | None = None) -> Value:
    """The product x · gain + shift, for one gain and shift per channel.

    A convolution takes one pass, in which ONNX Runtime also adds a tensor or applies a ReLU.
    """
    if not _is_convolved(x):
        return x * gain if shift is None else x * gain + shift
    weights = x.op.Reshape(gain, x.op.integers(-1, 1, 1, 1))
    return x.op.Conv(x, weights, shift and x.op.Reshape(shift, x.op.integers(-1)), group=x.shape[1])


def product_sums(x: Value, y: Value) -> Value:
    """Σ x y per channel, [1, C, 1, ...], for x and y [N, C, ...].

    A convolution of each image with a kernel of the image's size stores no products.
    """
    op, (batch, channels, *space) = x.op, x.shape
    if not _is_convolved(x):
        return op.reduce("ReduceSum", x * y, channel_axes(x), keepdims=True)
    images = op.Reshape(x, op.integers(1, -1, *space))
    kernels = op.Reshape(y, op.integers(-1, 1, *space))
    sums = op.Conv(images, kernels, group=batch * channels)
    return op.ReduceSum(op.Reshape(sums, op.integers(batch, channels, 1, 1)), op.integers(0))


def normalized(
    x: Value, epsilon: float, mean: Value | None = None, variance: Value | None = None
) -> Normalized:
    """Normalize x [N, C, ...] by ``mean`` and ``variance`` [C], or else by those of x.

    The variance of x is the biased variance. The forward and the backward pass both call this
    function; they emit equal nodes, which runtimes compute once.
    """
    op, axes = x.op, channel_axes(x)
    if mean is None:
        mean = op.reduce("ReduceMean", x, axes, keepdims=False)
    deviation = x - per_channel(x, mean)
    if variance is None:
        squares = op.Reshape(product_sums(deviation, deviation), op.integers(-1))
        variance = squares * (x.shape[1] / x.size)
    inverse = 1.0 / op.Sqrt(per_channel(x, variance) + epsilon)
    return Normalized(mean, variance, deviation, inverse)


def is_training(node: Node) -> bool:
    """Whether a BatchNormalization is in training form; only this form has more than one output."""
    return bool(node.attribute("training_mode", 0)) or len(node.proto.output) > 1


@gradient("BatchNormalization", versions=(9, 14, 15))
def batch_normalization(
    op: Builder,
    node: Node,
    dy: Value | None,
    d_mean: Value | None = None,
    d_var: Value | None = None,
) -> Cotangents:
    """Gradient of Y = (X - μ) r · scale + B, r = 1 / √(σ² + ε).

    The mean μ and the variance σ² are inputs of the node or statistics of the batch. The gradients
    with respect to scale and B are d(scale) = r Σ dY (X - μ) and dB = Σ dY; ``_by_given`` and
    ``_by_batch`` have the others. Shapes: X [N, C, ...], all others [C].
    """
    received = op.zeros(node.y.shape, node.y.elem_type) if dy is None else dy
    rule = _by_batch if is_training(node) else _by_given
    return rule(op, node, wide(received), d_mean, d_var)


def _by_given(op: Builder, node: Node, dy: Value, *_: Value | None) -> Cotangents:
    """Gradients if the mean μ and the variance σ² are inputs of the node.

    They are dX = dY scale r, dμ = -scale r Σ dY and d(σ²) = -½ scale r² d(scale), with r = 1 / √(σ²
    + ε).
    """
    x, scale = wide(node.x), node.input(1)
    mean, variance = node.input(3), node.input(4)
    parts = normalized(x, node.attribute("epsilon"), mean, variance)
    gain = per_channel(x, scale) * parts.inverse
    d_bias = op.reduce("ReduceSum", dy, channel_axes(x), keepdims=True)
    d_scale = parts.inverse * product_sums(dy, parts.deviation)
    d_mean = -(gain * d_bias)
    d_var = gain * parts.inverse * d_scale * -0.5
    return (
        _as(node.x, dy * gain),
        *(_flat(like, d) for like, d in ((scale, d_scale), (node.input(2), d_bias))),
        *(_flat(like, d) for like, d in ((mean, d_mean), (variance, d_var))),
    )


def _by_batch(
    op: Builder, node: Node, dy: Value, d_running_mean: Value | None, d_running_var: Value | None
) -> Cotangents:
    """Gradients if the node computes μ and σ² from its batch of n values per channel.

    With r = 1 / √(σ² + ε): dX = scale r (dY - (Σ dY + (X - μ) r d(scale)) / n). The running
    statistics m · old + (1 - m) · batch, with momentum m, add (1 - m) / n · (d(running μ) + 2 (X -
    μ) d(running σ²)) to dX.
    """
    x, scale, momentum = wide(node.x), node.input(1), node.attribute("momentum")
    statistics = (node.output(1), node.output(2)) if momentum == 0 else (None, None)
    parts = normalized(x, node.attribute("epsilon"), *statistics)
    gain, axes = per_channel(x, scale) * parts.inverse, channel_axes(x)
    each = -x.shape[1] / x.size
    d_bias = op.reduce("ReduceSum", dy, axes, keepdims=True)
    d_scale = parts.inverse * product_sums(dy, parts.deviation)
    slope, shift = gain * parts.inverse * d_scale * each, gain * d_bias * each
    if d_running_var is not None:
        slope = slope - per_channel(x, d_running_var) * (2 * each * (1 - momentum))
    if d_running_mean is not None:
        shift = shift - per_channel(x, d_running_mean) * (each * (1 - momentum))
    return (
        _as(node.x, scaled(dy, gain, shift) + scaled(parts.deviation, slope)),
        _flat(scale, d_scale),
        _flat(node.input(2), d_bias),
        None if d_running_mean is None else d_running_mean * momentum,
        None if d_running_var is None else d_running_var * momentum,
    )


def _flat(like: Value, cotangent: Value) -> Value:
    """Reshape and cast a gradient, one number per channel, to the shape and type of ``like``."""
    return _as(like, cotangent.op.Reshape(cotangent, cotangent.op.integers(*like.shape)))


def _as(like: Value, cotangent: Value) -> Value:
    return cotangent.cast(like.elem_type)


def mean(op: Builder, value: Value, axes: list[int]) -> Value:
    """Mean of ``value`` over ``axes``, which remain with length 1."""
    return op.reduce("ReduceMean", value, axes, keepdims=True)


def through(
    op: Builder, g: Value, unit: Value, r: Value, axes: list[int], *, centred: bool = True
) -> Value:
    """Gradient dx = r (g - mean(g) - x̂ mean(g x̂)) of a normalization over ``axes``.

    ``unit`` is x̂, and ``g`` is the gradient with respect to x̂. Unless ``centred``, the
    normalization subtracts no mean, and the term mean(g) is omitted.
    """
    inner = g - mean(op, g, axes) if centred else g
    return (inner - unit * mean(op, g * unit, axes)) * r


@gradient("LayerNormalization", versions=(17,))
def layer_normalization(
    op: Builder,
    node: Node,
    dy: Value | None,
    d_mean: Value | None = None,
    d_inverse: Value | None = None,
) -> Cotangents:
    """Gradient of the normalization over all axes from ``axis`` on.

    The outputs μ (mean) and r (inverse deviation) add (dμ - x̂ r² dr) / n to dx, for n elements in
    a row.
    """
    x, scale = wide(node.x), node.input(1)
    axes = list(range(node.attribute("axis") % x.rank, x.rank))
    each = 1 / math.prod(x.shape[axis] for axis in axes)
    r = _as(x, node.output(2))
    unit = (x - _as(x, node.output(1))) * r
    g = op.zeros(x.shape, x.elem_type) if dy is None else wide(dy)
    dx = through(op, g * _as(x, scale), unit, r, axes)
    if d_inverse is not None:
        dx = dx - unit * (r * r * _as(x, d_inverse) * each)
    if d_mean is not None:
        dx = dx + _as(x, d_mean) * each
    return (_as(node.x, dx), _as(scale, g * unit), _as(scale, g))[: len(node.inputs)]


@gradient("RMSNormalization", versions=(23,))
def rms_normalization(op: Builder, node: Node, dy: Value) -> Cotangents:
    """Gradient of x̂ = x r with r = 1 / √(mean(x²) + ε): dx = r (g - x̂ mean(g x̂)).

    Here g is the gradient with respect to x̂. The normalization subtracts no mean.
    """
    x, scale = wide(node.x), node.input(1)
    axes = list(range(node.attribute("axis") % x.rank, x.rank))
    r = 1.0 / op.Sqrt(mean(op, x * x, axes) + node.attribute("epsilon"))
    unit, received = x * r, wide(dy)
    g = received * _as(x, scale)
    dx = through(op, g, unit, r, axes, centred=False)
    return _as(node.x, dx), _as(scale, received * unit)


@gradient("InstanceNormalization", versions=(6, 22))
def instance_normalization(op: Builder, node: Node, dy: Value) -> Cotangents:
    """Gradient of the normalization over the spatial axes, for each example and channel."""
    x, received, axes = wide(node.x), wide(dy), list(range(2, node.x.rank))
    deviation = x - mean(op, x, axes)
    variance = mean(op, deviation * deviation, axes)
    r = 1.0 / op.Sqrt(variance + node.attribute("epsilon"))
    unit, scale = deviation * r, node.input(1)
    dx = through(op, received * per_channel(x, scale), unit, r, axes)
    over = channel_axes(x)
    d_scale = op.reduce("ReduceSum", received * unit, over, keepdims=False)
    d_bias = op.reduce("ReduceSum", received, over, keepdims=False)
    return _as(node.x, dx), _as(scale, d_scale), _as(scale, d_bias)


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
    s = _over_channels(op, x * x, before, after) * alpha + node.attribute("bias")
    scaled = dy * op.Pow(s, op.scalar(-beta, x.elem_type))
    along = _over_channels(op, scaled * x / s, after, before)
    return scaled - x * along * (2 * alpha * beta)


def _over_channels(op: Builder, x: Value, before: int, after: int) -> Value:
    """Mean of x over a window of neighbouring channels; missing channels at the ends count as 0."""
    batch, channels = x.shape[:2]
    pooled = op.AveragePool(
        op.Reshape(x, op.integers(batch, 1, channels, math.prod(x.shape[2:]))),
        kernel_shape=[before + 1 + after, 1],
        pads=[before, 0, after, 0],
        count_include_pad=1,
    )
    return op.Reshape(pooled, op.integers(*x.shape))


@gradient("Dropout", versions=(12, 13, 22))
def dropout(op: Builder, node: Node, dy: Value) -> Cotangents:
    """Gradient from d(x m / (1 - r)) = m / (1 - r) dx, for the dropout ratio r.

    The mask m is the mask of the forward pass. In inference mode the node returns x, so dx is dy.
    """
    training = node.optional_input(2)
    if training is None:
        return dy
    constant = op.array_of(training)
    if constant is not None and not bool(constant):
        return dy
    mask = op.Cast(node.output(1), to=dy.elem_type)
    scale = _scale(op, node, dy)
    if constant is None:
        scale = op.Where(training, scale, op.scalar(1.0, dy.elem_type))
    return dy * (mask * scale)


def _scale(op: Builder, node: Node, dy: Value) -> Value:
    """1 / (1 - r) for the ratio r; at r = 1 the mask is zero, so every finite number is correct."""
    ratio = node.optional_input(1)
    share = np.array(_DEFAULT_RATIO) if ratio is None else op.array_of(ratio)
    if share is not None:
        return op.scalar(1 / (1 - float(share)) if share < 1 else 0.0, dy.elem_type)
    return 1.0 / (1.0 - op.Cast(ratio, to=dy.elem_type))


refused(
    "GroupNormalization",
    versions=(18,),
    reason="ONNX withdrew this version, whose scale is for groups; export at opset 21 or newer",
)
