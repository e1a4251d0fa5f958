"""Undoing broadcasting, in one place for all rules."""

from __future__ import annotations

import math

from epochcost.autodiff.builder import Value


def unbroadcast(cotangent: Value, shape: tuple[int, ...]) -> Value:
    """Sum a cotangent of a broadcast result back to the ``shape`` of the operand.

    Broadcasting copies an operand along new leading axes and along axes of length one; the
    derivative of copying is summing. Shapes that differ by axes of length one only are reshaped.
    """
    if cotangent.shape == shape:
        return cotangent
    op = cotangent.op
    if cotangent.size == math.prod(shape):
        return op.Reshape(cotangent, op.integers(*shape))
    leading = cotangent.rank - len(shape)
    stretched = [
        axis + leading
        for axis, length in enumerate(shape)
        if length == 1 and cotangent.shape[axis + leading] != 1
    ]
    axes = [*range(leading), *stretched]
    summed = op.ReduceSum(cotangent, op.integers(*axes), keepdims=0) if axes else cotangent
    return summed if summed.shape == shape else op.Reshape(summed, op.integers(*shape))
