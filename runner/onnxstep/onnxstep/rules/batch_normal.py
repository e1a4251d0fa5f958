"""Gradient of BatchNormalization, with given statistics or with the statistics of the batch."""

from __future__ import annotations

from onnxstep.builder import Builder, Value
from onnxstep.channels import (
    channel_sums,
    has_normalization,
    normal_input,
    normalized,
    per_channel,
    scaled,
)
from onnxstep.registry import Cotangents, Node, gradient


@gradient("BatchNormalization", versions=(9, 14, 15))
def batch_normalization(
    op: Builder,
    node: Node,
    dy: Value | None,
    d_mean: Value | None = None,
    d_var: Value | None = None,
) -> Cotangents:
    """Gradient of Y = (X - μ) r · scale + B, with r = 1 / √(σ² + ε).

    d(scale) = r Σ dY (X - μ) and dB = Σ dY. X and Y are [N, C, ...]; all other tensors are [C].
    """
    x = normal_input(node.x)
    received = op.zeros(node.y.shape, x.elem_type) if dy is None else dy.cast(x.elem_type)
    # Only the training form has more than one output.
    if node.attribute("training_mode", 0) or len(node.proto.output) > 1:
        return _cotangents_with_batch_statistics(node, x, received, d_mean, d_var)
    return _cotangents_with_given_statistics(node, x, received)


def _cotangents_with_given_statistics(node: Node, x: Value, dy: Value) -> Cotangents:
    """Gradient of a BatchNormalization whose mean μ and variance σ² are inputs.

    dX = dY scale r, dμ = -scale r Σ dY and d(σ²) = -½ scale r² d(scale).
    """
    scale, mean, variance = node.input(1), node.input(3), node.input(4)
    parts = normalized(x, node.attribute("epsilon"), mean, variance)
    gain = per_channel(x, scale) * parts.inverse
    d_bias = channel_sums(dy)
    d_scale = parts.inverse * parts.product_sums(dy, d_bias)
    d_mean = -(gain * d_bias)
    d_var = gain * parts.inverse * d_scale * -0.5
    return (
        _multiply_channels(dy, gain).cast(node.x.elem_type),
        _reshape_and_cast_like(scale, d_scale),
        _reshape_and_cast_like(node.input(2), d_bias),
        _reshape_and_cast_like(mean, d_mean),
        _reshape_and_cast_like(variance, d_var),
    )


def _cotangents_with_batch_statistics(
    node: Node, x: Value, dy: Value, d_running_mean: Value | None, d_running_var: Value | None
) -> Cotangents:
    """Gradient of a BatchNormalization that normalizes by the statistics of the batch.

    dX = scale r (dY - (Σ dY + (X - μ) r d(scale)) / n), for n values per channel. The running
    statistics become m · old + (1 - m) · batch, with the momentum m. This adds (1 - m) / n ·
    (d(running μ) + 2 (X - μ) d(running σ²)) to dX.
    """
    scale, momentum = node.input(1), node.attribute("momentum")
    statistics = (node.output(1), node.output(2)) if momentum == 0 else (None, None)
    parts = normalized(x, node.attribute("epsilon"), *statistics)
    gain, each = per_channel(x, scale) * parts.inverse, -x.shape[1] / x.size
    d_bias = channel_sums(dy)
    d_scale = parts.inverse * parts.product_sums(dy, d_bias)
    if has_normalization(x):
        # In a step for CUDA nothing depends on the running statistics of the same run.
        slope, shift = parts.inverse * d_scale * each, d_bias * each
        dx = _multiply_channels(dy + parts.scaled(slope, shift), gain)
    else:
        slope, shift = gain * parts.inverse * d_scale * each, gain * d_bias * each
        if d_running_var is not None:
            slope = slope - per_channel(x, d_running_var) * (2 * each * (1 - momentum))
        if d_running_mean is not None:
            shift = shift - per_channel(x, d_running_mean) * (each * (1 - momentum))
        dx = scaled(dy, gain, shift) + scaled(parts.deviation, slope)
    return (
        dx.cast(node.x.elem_type),
        _reshape_and_cast_like(scale, d_scale),
        _reshape_and_cast_like(node.input(2), d_bias),
        None if d_running_mean is None else d_running_mean * momentum,
        None if d_running_var is None else d_running_var * momentum,
    )


def _multiply_channels(gradient: Value, factor: Value) -> Value:
    # The rule of Conv can move the factor from this product to W and dW.
    product = gradient * factor.cast(gradient.elem_type)
    gradient.op.factors[product.name] = (gradient, factor)
    return product


def _reshape_and_cast_like(like: Value, cotangent: Value) -> Value:
    reshaped = cotangent.reshape(*like.shape)
    return reshaped.cast(like.elem_type)
