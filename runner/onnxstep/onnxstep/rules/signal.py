"""Gradients of signal processing: discrete Fourier transform, overlapping patches, mel filters."""

from __future__ import annotations

import numpy as np

from onnxstep.axes import pad
from onnxstep.builder import Builder, Value
from onnxstep.registry import Cotangents, Node, gradient, refused, zero
from onnxstep.windows import Window, convolve, one_hot_kernels

# First version whose axis is an input, which may be negative.
_AXIS_IS_INPUT = 20

# Mel filters start and end at whole bins of the spectrum.
zero("MelWeightMatrix", versions=(17,))
refused(
    "STFT",
    versions=(17,),
    reason="no rule joins its overlapping frames; a Conv with windowed cosines and sines gives "
    "the same and is differentiated",
)


@gradient("DFT", versions=(17, 20))
def dft(op: Builder, node: Node, dy: Value) -> Cotangents:
    """Apply the conjugate transpose: dx = L F⁻¹ dy, or for an inverse transform dx = F dy / L.

    L is the length of the transform F. Values that a one-sided result omits, and values of x that
    the transform cuts off, count as zero. A real x gets the real part.
    """
    axis = _axis(op, node) % node.x.rank
    if node.attribute("inverse") and node.attribute("onesided"):
        return _fitted(_from_half(op, node, dy, axis), node.x.shape)
    length = _length(node, node.x.shape[axis])
    inverse = node.attribute("inverse")
    scale = 1 / length if inverse else length
    dx = _transform(op, dy * float(scale), length, axis, inverse=int(not inverse))
    return _fitted(dx, node.x.shape)


def _from_half(op: Builder, node: Node, dy: Value, axis: int) -> Value:
    """Gradient of the inverse transform from half of a spectrum to a real y: dx = w F dy / L.

    The weight w is 2 for values whose mirror image the half spectrum omits, else 1.
    """
    length = _length(node, dy.shape[axis])
    weights = np.full(length // 2 + 1, 2 / length)
    weights[0] = 1 / length
    if length % 2 == 0:
        weights[-1] = 1 / length
    shape = [1] * dy.rank
    shape[axis] = weights.size
    half = _transform(op, dy, length, axis, onesided=1)
    return half * op.constant(weights.astype(dy.dtype).reshape(shape))


def _fitted(dx: Value, shape: tuple[int, ...]) -> Value:
    """Cut off or append zeros at the end of each axis to get ``shape``, the shape of x."""
    ends = [into - out for into, out in zip(shape, dx.shape, strict=True)]
    return pad(dx, [0] * dx.rank, ends)


def _axis(op: Builder, node: Node) -> int:
    if op.schema(node.proto).since_version < _AXIS_IS_INPUT:
        return int(node.attribute("axis"))
    constant = node.constant(2, "axis")
    return -2 if constant is None else int(constant.item())


def _length(node: Node, otherwise: int) -> int:
    constant = node.constant(1, "dft_length")
    return otherwise if constant is None else int(constant.item())


def _transform(op: Builder, x: Value, length: int, axis: int, **attributes: int) -> Value:
    size = op.constant(np.array(length))
    if op.opset < _AXIS_IS_INPUT:
        return op.emit("DFT", [x, size], {**attributes, "axis": axis})[0]
    return op.emit("DFT", [x, size, op.constant(np.array(axis))], attributes)[0]


@gradient("Col2Im", versions=(18,))
def col2im(op: Builder, node: Node, dy: Value) -> Cotangents:
    """Cut the patches out of dy, by a depthwise convolution with one-hot kernels."""
    block = node.constant(2, "block_shape")
    assert block is not None
    view = _blocks(node, tuple(int(size) for size in block))
    kernels = one_hot_kernels(dy, dy.shape[1], view.kernel)
    patches = convolve(dy, kernels, view, _positions(view, dy.shape[2:]), dy.shape[1])
    return op.Reshape(patches, op.integers(*node.x.shape))


def _blocks(node: Node, kernel: tuple[int, ...]) -> Window:
    rank = len(kernel)
    strides, dilations = (
        tuple(node.attribute(name) or [1] * rank) for name in ("strides", "dilations")
    )
    pads = tuple(node.attribute("pads") or [0] * (2 * rank))
    return Window(kernel, strides, dilations, pads[:rank], pads[rank:])


def _positions(view: Window, image: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(
        (size + view.begins[i] + view.ends[i] - view.extent(i)) // view.strides[i] + 1
        for i, size in enumerate(image)
    )
