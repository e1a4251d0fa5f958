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
Scratch = Callable[[onnx.NodeProto, Shapes], Sequence[int]]


def scratch_bytes(node: onnx.NodeProto, shapes: Shapes) -> Sequence[int]:
    """The bytes of each buffer that a node takes beside its outputs."""
    count = _SCRATCH.get(node.op_type)
    return () if count is None or node.domain not in {"", "ai.onnx"} else count(node, shapes)


def _where(node: onnx.NodeProto, shapes: Shapes) -> Sequence[int]:
    """Each side with zeros where the other is taken; the two are then merged."""
    return [_FLOAT_BYTES * math.prod(shapes[node.output[0]])] * 2


def _conv_transpose(node: onnx.NodeProto, shapes: Shapes) -> Sequence[int]:
    """One image's columns: [features / group · kernel, positions of the input]."""
    x, kernels = shapes[node.input[0]], shapes[node.input[1]]
    return [_FLOAT_BYTES * math.prod(kernels[1:]) * math.prod(x[2:])]


_SCRATCH: Mapping[str, Scratch] = {"ConvTranspose": _conv_transpose, "Where": _where}
