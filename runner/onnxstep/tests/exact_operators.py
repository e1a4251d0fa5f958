"""Operators that onnx 1.23.2's reference evaluator computes wrongly, rewritten to be exact.

A wrong forward pass cannot check a gradient. Each class says what onnx does wrong.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from onnx.reference.op_run import OpRun

Array = NDArray[Any]


class Erf(OpRun):
    """The error function in double precision; onnx computes it in single precision."""

    op_domain = ""

    def _run(self, x: Array) -> tuple[Array]:
        return (np.vectorize(math.erf, otypes=[x.dtype])(x),)


class LRN(OpRun):
    """Sum the squares of all channels of the window; onnx omits the last channel."""

    op_domain = ""

    def _run(self, x: Array, alpha: float, beta: float, bias: float, size: int) -> tuple[Array]:
        before, after = (size - 1) // 2, size // 2
        padding = [(0, 0), (before, after), *[(0, 0)] * (x.ndim - 2)]
        squares = np.pad(x**2, padding)
        total = sum(squares[:, place : place + x.shape[1]] for place in range(size))
        return (x / (bias + alpha / size * total) ** beta,)


class GlobalMaxPool(OpRun):
    """The maximum over all positions; onnx's result gets additional axes unless x has rank 4."""

    op_domain = ""

    def _run(self, x: Array) -> tuple[Array]:
        return (x.max(tuple(range(2, x.ndim)), keepdims=True),)


class ConvTranspose(OpRun):
    """Multiply each element by the kernel and add the products where they overlap.

    onnx fails for groups of more than one channel, and if ``output_shape`` determines the pads.
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
        kernel_shape: Sequence[int] | None = None,  # noqa: ARG002 - implied by the weights
        output_padding: Sequence[int] | None = None,
        output_shape: Sequence[int] | None = None,
        pads: Sequence[int] | None = None,
        strides: Sequence[int] | None = None,
    ) -> tuple[Array]:
        rank = w.ndim - 2
        steps, gaps = strides or [1] * rank, dilations or [1] * rank
        full = _transposed_convolution(x, w, steps, gaps, output_padding or [0] * rank, group)
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


def _transposed_convolution(
    x: Array,
    w: Array,
    strides: Sequence[int],
    dilations: Sequence[int],
    output_padding: Sequence[int],
    group: int,
) -> Array:
    """Transposed convolution without bias, before the padding is cut off."""
    batch, channels, *into = x.shape
    reach = [s * (n - 1) + 1 for s, n in zip(strides, into, strict=True)]
    spans = [d * (k - 1) for d, k in zip(dilations, w.shape[2:], strict=True)]
    size = [r + s + m for r, s, m in zip(reach, spans, output_padding, strict=True)]
    y = np.zeros((batch, group, w.shape[1], *size), x.dtype)
    xs = x.reshape(batch, group, channels // group, *into)
    ws = w.reshape(group, channels // group, *w.shape[1:])
    for tap in np.ndindex(*w.shape[2:]):
        starts = [t * d for t, d in zip(tap, dilations, strict=True)]
        at = tuple(slice(a, a + r, s) for a, r, s in zip(starts, reach, strides, strict=True))
        y[(..., *at)] += np.einsum("ngc...,gcm->ngm...", xs, ws[(..., *tap)])
    return y.reshape(batch, -1, *size)


OPERATORS = [ConvTranspose, Erf, GlobalMaxPool, LRN]
