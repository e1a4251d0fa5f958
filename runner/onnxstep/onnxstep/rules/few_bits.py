"""Gradients of products with quantized weights: only the other operand gets a gradient."""

from __future__ import annotations

import numpy as np
from onnx import TensorProto, helper

from onnxstep.axes import cut_along, late, zero_after
from onnxstep.builder import Builder, Value
from onnxstep.errors import ModelError
from onnxstep.graphs.contrib import DOMAIN, VERSION
from onnxstep.registry import Cotangents, Node, gradient

_WHOLE_CODES = (2, 4, 8)
_BYTE = 8


@gradient("MatMulNBits", versions=(VERSION,), domain=DOMAIN)
def few_bits_matmul(op: Builder, node: Node, dy: Value) -> Cotangents:
    """Gradients of x and b in x Wᵀ + b; the weights W [N, K] are dequantized for each product."""
    if node.wants(2):
        raise ModelError(f"{node.label}: scales of quantized weights are not trained; freeze them")
    return op.MatMul(dy, _dequantized_weights(node, dy)), None, None, None, None, dy


def _dequantized_weights(node: Node, dy: Value) -> Value:
    """The weights W [N, K], each computed as (stored integer - zero point) · scale.

    Each block within a row has one zero point and one scale. W has the type of ``dy``.
    """
    op, bits = node.op, int(node.attribute("bits", 4))
    if bits not in _WHOLE_CODES or node.optional_input(4) is not None:
        raise ModelError(f"{node.label}: expected weights of 2, 4 or 8 bits, without g_idx")
    rows, columns, size = (int(node.attribute(key)) for key in ("N", "K", "block_size"))
    blocks, zeros = -(-columns // size), node.optional_input(3)
    zero = 2 ** (bits - 1) if zeros is None else 0
    # Read the stored integers only after dy has been computed: otherwise the runtime would
    # dequantize them once and keep the weights.
    codes = _unpack_integers(late(node.input(1), zero_after(dy)), bits, dy.elem_type, zero)
    steps = op.Reshape(codes, op.integers(rows, blocks, size))
    if zeros is not None:
        each = zeros if zeros.is_float else _unpack_integers(zeros, bits, dy.elem_type)
        each = cut_along(op.Reshape(each, op.integers(rows, -1)), 1, 0, blocks)
        steps = steps - op.Unsqueeze(each.cast(dy.elem_type), op.integers(-1))
    scales = op.Reshape(node.input(2), op.integers(rows, blocks, 1)).cast(dy.elem_type)
    return cut_along(op.Reshape(steps * scales, op.integers(rows, -1)), 1, 0, columns)


def _unpack_integers(packed_bytes: Value, bits: int, elem_type: int, zero_point: int = 0) -> Value:
    """Unpack bytes along a new last axis, lowest bits first, and subtract ``zero_point``."""
    op, places = packed_bytes.op, np.arange(0, _BYTE, bits)
    table = (np.arange(2**_BYTE)[:, None] >> places & (2**bits - 1)) - zero_point
    numbers = op.constant(table.astype(helper.tensor_dtype_to_np_dtype(elem_type)))
    return op.Gather(numbers, op.Cast(packed_bytes, to=TensorProto.INT32))
