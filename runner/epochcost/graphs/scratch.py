"""Memory that kernels of ONNX Runtime's CPU provider take for themselves while they run.

Each entry is what the kernel's algorithm needs, from its shapes; kernels that are not listed work
on their operands alone, or on a few kilobytes of the stack.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

import onnx

from epochcost.graphs.counting import Shapes

_FLOAT_BYTES = 4
# MLAS convolves segments of 128 positions, of each of which 128 columns are spread at a time
# (convolve.cpp: MLAS_CONV_WORKING_BUFFER_SIZE_PER_THREAD); one for a thread.
_SEGMENT_BYTES = 128 * 128 * _FLOAT_BYTES
Scratch = Callable[[onnx.NodeProto, Shapes], Sequence[int]]


def scratch_bytes(node: onnx.NodeProto, shapes: Shapes) -> Sequence[int]:
    """The bytes of each buffer that a node takes beside its outputs."""
    count = _SCRATCH.get(node.op_type)
    return () if count is None or node.domain not in {"", "ai.onnx"} else count(node, shapes)


def _where(node: onnx.NodeProto, shapes: Shapes) -> Sequence[int]:
    """Each side with zeros where the other is taken; the two are then merged."""
    return [_FLOAT_BYTES * math.prod(shapes[node.output[0]])] * 2


def _conv(node: onnx.NodeProto, shapes: Shapes) -> Sequence[int]:
    """One image's columns where a group has more filters than positions, else those of a segment.

    Single taps at every position are a product of matrices as they lie.
    """
    x, kernels, y = (shapes[name] for name in (*node.input[:2], node.output[0]))
    positions = math.prod(y[2:])
    if math.prod(kernels[2:]) == 1 and x[2:] == y[2:]:
        return []
    if kernels[0] * kernels[1] > positions * x[1]:
        return [_FLOAT_BYTES * math.prod(kernels[1:]) * positions]
    return [_SEGMENT_BYTES]


def _conv_transpose(node: onnx.NodeProto, shapes: Shapes) -> Sequence[int]:
    """One image's columns: [features / group · kernel, positions of the input]."""
    x, kernels = shapes[node.input[0]], shapes[node.input[1]]
    return [_FLOAT_BYTES * math.prod(kernels[1:]) * math.prod(x[2:])]


_SCRATCH: Mapping[str, Scratch] = {
    "Conv": _conv,
    "ConvTranspose": _conv_transpose,
    "Where": _where,
}
