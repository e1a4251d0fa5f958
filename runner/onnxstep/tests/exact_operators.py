"""Operators that onnx 1.23.2's reference evaluator computes wrongly, rewritten to be exact.

A wrong forward pass cannot check a gradient. Each class says what onnx does wrong.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from onnx.reference.op_run import OpRun

Array = NDArray[Any]


class BatchNormalization(OpRun):
    """Uses running statistics except in training; onnx mixes in the batch's before opset 14."""

    op_domain = ""

    def _run(  # noqa: PLR0917 - the operator's inputs and attributes
        self,
        x: Array,
        scale: Array,
        bias: Array,
        mean: Array,
        var: Array,
        epsilon: float = 1e-5,
        momentum: float = 0.9,
        training_mode: int = 0,
        is_test: int = 1,  # noqa: ARG002 - of opset 6, as is the next
        spatial: int = 1,  # noqa: ARG002
    ) -> tuple[Array, ...]:
        moving: tuple[Array, ...] = ()
        if training_mode:
            axes = (0, *range(2, x.ndim))
            batch = (x.mean(axes), x.var(axes))
            moving = tuple(
                old * momentum + new * (1 - momentum)
                for old, new in zip((mean, var), batch, strict=True)
            )
            mean, var = batch
        shape = (-1, *[1] * (x.ndim - 2))
        unit = (x - mean.reshape(shape)) / np.sqrt(var.reshape(shape) + epsilon)
        return (scale.reshape(shape) * unit + bias.reshape(shape), *moving)


class Erf(OpRun):
    """The error function in double precision; onnx computes it in single precision."""

    op_domain = ""

    def _run(self, x: Array) -> tuple[Array]:
        return (np.vectorize(math.erf, otypes=[x.dtype])(x),)


class LpNormalization(OpRun):
    """Divides by the norm, a sum of absolute values; onnx adds up signed elements."""

    op_domain = ""

    def _run(self, x: Array, axis: int, p: int) -> tuple[Array]:
        return (x / np.linalg.norm(x, p, axis, keepdims=True),)


class LRN(OpRun):
    """Sums the squares of all channels of the window; onnx omits the last channel."""

    op_domain = ""

    def _run(self, x: Array, alpha: float, beta: float, bias: float, size: int) -> tuple[Array]:
        before, after = (size - 1) // 2, size // 2
        padding = [(0, 0), (before, after), *[(0, 0)] * (x.ndim - 2)]
        squares = np.pad(x**2, padding)
        total = sum(squares[:, place : place + x.shape[1]] for place in range(size))
        return (x / (bias + alpha / size * total) ** beta,)


class GlobalLpPool(OpRun):
    """The norm over all positions; onnx's evaluator lacks this operator."""

    op_domain = ""

    def _run(self, x: Array, p: int) -> tuple[Array]:
        axes = tuple(range(2, x.ndim))
        return ((np.abs(x) ** p).sum(axes, keepdims=True) ** (1 / p),)


class GlobalMaxPool(OpRun):
    """The maximum over all positions; onnx adds axes unless there are two spatial axes."""

    op_domain = ""

    def _run(self, x: Array) -> tuple[Array]:
        return (x.max(tuple(range(2, x.ndim)), keepdims=True),)


class ConvTranspose(OpRun):
    """Multiplies each element with the kernel and adds the products where they overlap.

    onnx fails for many groups, and for pads that follow from an output shape.
    """

    op_domain = ""

    def _run(  # noqa: PLR0917 - the operator's inputs and attributes
        self,
        x: Array,
        w: Array,
        b: Array | None = None,
        auto_pad: str = "NOTSET",
        dilations: Sequence[int] | None = None,
        group: int = 1,
        kernel_shape: Sequence[int] | None = None,  # noqa: ARG002 - the weights have it
        output_padding: Sequence[int] | None = None,
        output_shape: Sequence[int] | None = None,
        pads: Sequence[int] | None = None,
        strides: Sequence[int] | None = None,
    ) -> tuple[Array]:
        rank = w.ndim - 2
        steps, gaps = strides or [1] * rank, dilations or [1] * rank
        full = _scattered(x, w, steps, gaps, output_padding or [0] * rank, group)
        sizes, cut = full.shape[2:], pads or [0] * 2 * rank
        if auto_pad.startswith("SAME") and not output_shape:
            output_shape = [n * step for n, step in zip(x.shape[2:], steps, strict=True)]
        if output_shape:
            missing = [max(n - out, 0) for n, out in zip(sizes, output_shape, strict=True)]
            halves = [(m // 2, m - m // 2) for m in missing]
            order = 1 if auto_pad == "SAME_UPPER" else -1
            cut = [pair[::order][end] for end in (0, 1) for pair in halves]
        inside = (slice(cut[i], n - cut[rank + i]) for i, n in enumerate(sizes))
        y = full[(slice(None), slice(None), *inside)]
        return (y if b is None else y + b.reshape(-1, *[1] * rank),)


def _scattered(
    x: Array,
    w: Array,
    strides: Sequence[int],
    dilations: Sequence[int],
    more: Sequence[int],
    group: int,
) -> Array:
    """The output [N, M, ...] before the padding is cut off."""
    batch, channels, *into = x.shape
    reach = [s * (n - 1) + 1 for s, n in zip(strides, into, strict=True)]
    spans = [d * (k - 1) for d, k in zip(dilations, w.shape[2:], strict=True)]
    size = [r + s + m for r, s, m in zip(reach, spans, more, strict=True)]
    y = np.zeros((batch, group, w.shape[1], *size), x.dtype)
    xs = x.reshape(batch, group, channels // group, *into)
    ws = w.reshape(group, channels // group, *w.shape[1:])
    for tap in np.ndindex(*w.shape[2:]):
        starts = [t * d for t, d in zip(tap, dilations, strict=True)]
        at = tuple(slice(a, a + r, s) for a, r, s in zip(starts, reach, strides, strict=True))
        y[(..., *at)] += np.einsum("ngc...,gcm->ngm...", xs, ws[(..., *tap)])
    return y.reshape(batch, -1, *size)


class AffineGrid(OpRun):
    """Computes the grid in the precision of theta; onnx computes it in single precision."""

    op_domain = ""

    def _run(self, theta: Array, size: Array, align_corners: int = 0) -> tuple[Array]:
        lengths = [int(length) for length in size[2:]]
        lines = [_centres(length, bool(align_corners), theta.dtype) for length in lengths]
        grid = np.stack([*np.meshgrid(*lines, indexing="ij")][::-1], axis=-1)
        units = np.ones((*lengths, 1), theta.dtype)
        homogeneous = np.concatenate([grid, units], axis=-1).reshape(-1, len(lengths) + 1)
        mapped = homogeneous @ theta.transpose(0, 2, 1)
        return (mapped.reshape(len(theta), *lengths, len(lengths)),)


def _centres(length: int, align_corners: bool, dtype: Any) -> Array:
    """Positions from -1 to 1 along an axis: element centres, or with ``align_corners`` corners."""
    edge = 1.0 if align_corners else 1.0 - 1.0 / length
    return np.linspace(-edge, edge, length, dtype=dtype)


class LinearClassifier(OpRun):
    """A single row of coefficients gives two classes the scores 1 - f(s) and f(s).

    ONNX Runtime does the same. onnx computes f(-s) and f(s) in single precision; for f(s) = s its
    scores differ, but not their derivatives.
    """

    op_domain = "ai.onnx.ml"

    def _run(
        self,
        x: Array,
        coefficients: Sequence[float],
        intercepts: Sequence[float],
        classlabels_ints: Sequence[int],
        post_transform: str,
        **_: Any,
    ) -> tuple[Array, Array]:
        scores = x @ np.reshape(coefficients, (-1, x.shape[1])).T + np.array(intercepts)
        if post_transform == "LOGISTIC":
            scores = 1 / (1 + np.exp(-scores))
        elif post_transform == "SOFTMAX":
            scores = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
        if scores.shape[1] == 1:
            scores = np.concatenate([1 - scores, scores], axis=1)
        return np.array(classlabels_ints)[scores.argmax(axis=1)], scores


class GridSample(OpRun):
    """Samples at coordinates in double precision, with padding applied to each element.

    onnx computes in single precision. In cubic mode it clips the coordinates first, unlike ONNX
    Runtime and PyTorch.
    """

    op_domain = ""

    def _run(
        self, x: Array, grid: Array, align_corners: int, mode: str, padding_mode: str
    ) -> tuple[Array]:
        y = np.zeros((*x.shape[:2], *grid.shape[1:-1]))
        for image, *point in np.ndindex(grid.shape[:-1]):
            axes = []
            for place, length in zip(grid[(image, *point)][::-1], x.shape[2:], strict=True):
                low, high = (0, length - 1) if align_corners else (-0.5, length - 0.5)
                at = low + (place + 1) / 2 * (high - low)
                axes.append(self._read(at, low, high, mode.removeprefix("bi"), padding_mode))
            for corner in itertools.product(*axes):
                element, weights = zip(*corner, strict=True)
                y[(image, slice(None), *point)] += x[image][(slice(None), *element)] * np.prod(
                    weights
                )
        return (y,)

    def _read(
        self, at: float, low: float, high: float, mode: str, padding: str
    ) -> list[tuple[int, float]]:
        if mode == "nearest":
            near = {float(np.rint(at)): 1.0}
        else:
            reach = {"linear": 1, "cubic": 2}[mode]
            begin = np.floor(at) - reach + 1
            near = {begin + i: self._weight(abs(at - begin - i), mode) for i in range(2 * reach)}
        first, last = math.ceil(low), math.floor(high)
        read = []
        for begun, weight in near.items():
            element = begun
            while padding == "reflection" and high > low and not low <= element <= high:
                element = 2 * (low if element < low else high) - element
            inside = int(min(max(element, first), last))
            read.append((inside, weight * (padding != "zeros" or element == inside)))
        return read

    def _weight(self, distance: float, mode: str) -> float:
        """Weight of an element at this distance; the cubic kernel is Keys' with a = -3/4."""
        d = distance
        if mode == "linear":
            return 1 - d
        return 1.25 * d**3 - 2.25 * d**2 + 1 if d <= 1 else -0.75 * (d**3 - 5 * d**2 + 8 * d - 4)


OPERATORS = [
    AffineGrid,
    BatchNormalization,
    ConvTranspose,
    Erf,
    GlobalLpPool,
    GlobalMaxPool,
    GridSample,
    LRN,
    LinearClassifier,
    LpNormalization,
]
