"""Sum, scale and normalize each channel of a batch x [N, C, ...], in few passes over x.

Depthwise convolutions replace elementwise operators for large images on the CPU. On CUDA,
BatchNormalization and LayerNormalization do (benchmarks/rules/batch_normalization.py).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from onnx import TensorProto, helper

from onnxstep.axes import reduced
from onnxstep.blocked_convolution import has_kernels
from onnxstep.builder import Value
from onnxstep.graphs.tensors import HALF_TYPES

# From this number of elements per image on, depthwise convolutions are faster than elementwise
# operators (benchmarks/rules/batch_normalization.py).
LARGE_IMAGE = 512
_FLOAT, _HALF = TensorProto.FLOAT, TensorProto.FLOAT16
# cuDNN normalizes tensors of these ranks; ONNX has LayerNormalization since this opset.
_NORMALIZED_RANKS, _LAYER_NORMALIZATION = (3, 4, 5), 17
# In half precision, factors are multiplied by 2⁷ and divided by the root of a variance of 2¹⁴, so
# that small factors do not become subnormal.
_ENLARGED = 2.0**7


@dataclass(frozen=True)
class Normalized:
    """A batch x [N, C, ...] with ``mean`` and ``variance`` [C], which never have half precision.

    ``inverse`` is 1 / √(variance + epsilon), in a shape that broadcasts to x.
    """

    x: Value
    mean: Value
    variance: Value
    inverse: Value

    @property
    def deviation(self) -> Value:
        """The tensor x - mean [N, C, ...]; each access emits equal nodes, which runtimes merge."""
        return self.x - per_channel(self.x, self.mean)

    def scaled(self, gain: Value, shift: Value) -> Value:
        """The tensor (x - mean) · gain + shift, with one gain and one shift per channel."""
        if has_normalization(self.x):
            return _scale_and_shift(self.x, self.mean, gain, shift)
        return scaled(self.deviation, gain, shift)

    def product_sums(self, y: Value, y_sums: Value) -> Value:
        """Σ y (x - mean) per channel, [1, C, 1, ...]; ``y_sums`` is Σ y per channel."""
        if not has_normalization(self.x):
            return product_sums(y, self.deviation)
        return channel_sums(y * self.x) - y_sums * per_channel(self.x, self.mean)


def channel_axes(x: Value) -> list[int]:
    """All axes of x except the axis of the channels."""
    return [0, *range(2, x.rank)]


def per_channel(x: Value, channels: Value) -> Value:
    """Reshape ``channels`` [C] to broadcast to x [N, C, ...], with the element type of wide(x)."""
    shaped = channels.reshape(-1, *[1] * (x.rank - 2))
    return shaped.cast(_FLOAT if x.elem_type in HALF_TYPES else x.elem_type)


def wide(x: Value) -> Value:
    """Cast x to float32 if it has half precision, for means and variances."""
    return x.op.Cast(x, to=_FLOAT) if x.elem_type in HALF_TYPES else x


def has_normalization(x: Value) -> bool:
    """Whether the provider is CUDA and can run BatchNormalization and LayerNormalization on x."""
    has_type = x.elem_type in (_FLOAT, _HALF) and x.op.opset >= _LAYER_NORMALIZATION
    return x.op.provider == "cuda" and has_type and x.rank in _NORMALIZED_RANKS


def normal_input(x: Value) -> Value:
    """Cast x to float32 if it has half precision, unless CUDA can normalize it without a cast."""
    return x if has_normalization(x) else wide(x)


def _is_depthwise_convolution_faster(x: Value) -> bool:
    return has_kernels(x.op, x) and math.prod(x.shape[2:]) >= LARGE_IMAGE


def scaled(x: Value, gain: Value, shift: Value | None = None) -> Value:
    """The result of x · gain + shift, with one gain and one shift (None: 0) for each channel."""
    if not _is_depthwise_convolution_faster(x):
        return x * gain if shift is None else x * gain + shift
    weights = gain.reshape(-1, 1, 1, 1)
    return x.op.Conv(x, weights, shift and shift.reshape(-1), group=x.shape[1])


def _scale_and_shift(x: Value, mean: Value, gain: Value, shift: Value) -> Value:
    """(x - mean) · gain + shift by BatchNormalization; ``shift`` absorbs the rounding to fp16."""
    op, channels = x.op, x.shape[1]
    gain, shift = (value.reshape(-1) for value in (gain, shift))
    one = np.ones(channels, np.float32)
    if x.elem_type == _FLOAT:
        return op.BatchNormalization(x, gain, shift, mean, op.constant(one), epsilon=0.0)
    rounded = mean.cast(_HALF)
    shift = shift + (rounded.cast(_FLOAT) - mean) * gain
    variance = op.constant((_ENLARGED**2 * one).astype(np.float16))
    halves = ((gain * _ENLARGED).cast(_HALF), shift.cast(_HALF), rounded, variance)
    return op.BatchNormalization(x, *halves, epsilon=0.0)


def product_sums(x: Value, y: Value) -> Value:
    """Σ x y per channel, [1, C, 1, ...], for x and y [N, C, ...]."""
    op, (batch, channels, *space) = x.op, x.shape
    if not _is_depthwise_convolution_faster(x):
        return reduced("ReduceSum", x * y, channel_axes(x), keepdims=True)
    images = x.reshape(1, -1, *space)
    kernels = y.reshape(-1, 1, *space)
    sums = op.Conv(images, kernels, group=batch * channels)
    return op.ReduceSum(sums.reshape(batch, channels, 1, 1), op.integers(0))


def channel_sums(x: Value) -> Value:
    """Σ x per channel, [1, C, 1, ...], in the element type of x.

    For fp16 on CUDA, the sums are float32: a matrix product sums each plane (one channel of one
    image). A power of two scales the numbers, so that no sum exceeds 65504, the fp16 maximum.
    """
    op, (batch, channels, *space) = x.op, x.shape
    if x.elem_type != _HALF or not has_normalization(x):
        return reduced("ReduceSum", x, channel_axes(x), keepdims=True)
    count = math.prod(space)
    share = 2.0 ** -min(round(math.log2(count)), 24)
    planes = x.reshape(batch * channels, count)
    sums = op.MatMul(planes, op.constant(np.full((count, 1), share, np.float16)))
    by_plane = sums.cast(_FLOAT).reshape(batch, channels, *[1] * len(space))
    return op.ReduceSum(by_plane, op.integers(0)) * (1 / share)


def normalized(
    x: Value, epsilon: float, mean: Value | None = None, variance: Value | None = None
) -> Normalized:
    """Normalize x [N, C, ...] by ``mean`` and ``variance`` [C]; None means the statistic of x.

    The variance of x is biased. Equal calls emit equal nodes, which runtimes compute once.
    """
    op, axes = x.op, channel_axes(x)
    if mean is None and variance is None and has_normalization(x):
        mean, variance = _mean_and_variance(x)
    if mean is None:
        mean = reduced("ReduceMean", x, axes, keepdims=False)
    if variance is None:
        deviation = x - per_channel(x, mean)
        squares = product_sums(deviation, deviation).reshape(-1)
        variance = squares * (x.shape[1] / x.size)
    inverse = 1.0 / op.Sqrt(per_channel(x, variance) + epsilon)
    return Normalized(x, mean, variance, inverse)


# Far below the variances of activations, so it does not change them.
_TINY = 1e-12


def _mean_and_variance(x: Value) -> tuple[Value, Value]:
    """Mean and biased variance [C] of x, from LayerNormalization's statistics of each plane.

    A plane is one channel of one image. A channel's variance is the average, over its planes, of
    the plane's variance plus the squared distance of the plane's mean from the channel's mean.
    """
    op, (batch, channels, *space) = x.op, x.shape
    rows, count = batch * channels, math.prod(space)
    planes = x.reshape(rows, count)
    scale = op.constant(np.ones(count, x.dtype))
    node = helper.make_node(
        "LayerNormalization",
        [planes.name, scale.name],
        [op.fresh(hint) for hint in ("planes", "means", "inverses")],
        epsilon=_TINY,
    )
    for name in node.output[1:]:  # float32 in every precision; onnx infers the type of x
        op.declare(name, helper.make_tensor_type_proto(_FLOAT, [rows, 1]))
    by_channel = op.integers(batch, channels)
    means, inverses = (op.Reshape(value, by_channel) for value in op.append(node)[1:])
    mean = reduced("ReduceMean", means, [0], keepdims=False)
    distances = means - mean
    squares = 1.0 / (inverses * inverses) + distances * distances
    return mean, reduced("ReduceMean", squares, [0], keepdims=False)
