"""Signal processing: the discrete Fourier transform, overlapping patches, mel filters."""

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
    """The transform's conjugate transpose: dx = L F⁻¹ dy, of the inverse: dx = F dy / L.

    Values omitted from a one-sided result, and cut off from x, count as zero. A real x receives the
    real part.
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
    """For real y, from half of a spectrum: dx = w F dy / L; w is 2 for mirrored values."""
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
    """Cut or padded with zeros at the ends, the opposite of the transform's change to x."""
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
    """The patches of dy, cut out by a depthwise convolution with one-hot kernels."""
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
