"""Dropout whose mask is a hash of the element's position, which is faster on the CPU.

ONNX Runtime's Dropout draws its random numbers one by one, on one thread. Here the tensor is seen
as a matrix. Each run draws a number of 32 bits for every row and every column. An element stays if
the product of its row's and its column's number, modulo 2³², is below a limit. Tests compare these
masks with random masks: the share of kept elements, and pairs of elements, runs and layers.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from onnx import TensorProto

from onnxstep.builder import Value
from onnxstep.registry import Node

_HALF_RANGE = 2**31


def forward(node: Node) -> Sequence[Value]:
    """Result and mask of a Dropout node; empty unless its ratio and training mode are constants."""
    op, x = node.op, node.x
    ratio, training = (op.array_of(node.optional_input(place)) for place in (1, 2))
    if op.provider != "cpu" or ratio is None or not training or not 0 < ratio < 1 or not x.size:
        return ()
    stays = 1 - float(ratio)
    limit = op.scalar(round((2 * stays - 1) * _HALF_RANGE), TensorProto.INT32)
    mask, shape = op.Less(_hashes(node), limit), op.integers(*x.shape)
    node.output(1)
    # This Cast must differ from the Cast in the backward pass: ONNX Runtime would merge equal nodes
    # and keep the float result in memory.
    factors = op.Reshape(op.Cast(mask, to=x.elem_type) * (1 / stays), shape)
    return x * factors, op.Reshape(mask, shape)


def _hashes(node: Node) -> Value:
    """Hash of 32 bits for each element of the Dropout node's input, as a matrix."""
    op, shape = node.op, node.x.shape
    splits = [(math.prod(shape[:axis]), math.prod(shape[axis:])) for axis in range(len(shape) + 1)]
    sizes = min(splits, key=sum)
    seed = node.attribute("seed")
    drawn = op.RandomUniform(
        dtype=TensorProto.DOUBLE,
        low=-float(_HALF_RANGE),
        high=float(_HALF_RANGE),
        shape=[sum(sizes)],
        **({} if seed is None else {"seed": float(seed + 1)}),
    )
    whole = op.Cast(drawn, to=TensorProto.INT32)
    # Successive draws depend linearly on each other; a quadratic permutation of 32 bits prevents
    # this.
    mixed = whole * (whole + whole + 1)
    rows, columns = op.emit("Split", [mixed, op.integers(*sizes)], {"axis": 0}, outputs=2)
    return op.Reshape(rows, op.integers(-1, 1)) * columns
