"""Products with weights of few bits, which stay as they are: only what they meet has a gradient."""

from __future__ import annotations

from onnxstep.axes import cut_along, late, zero_after
from onnxstep.builder import Builder, Value
from onnxstep.errors import ModelError
from onnxstep.graphs.contrib import DOMAIN, VERSION
from onnxstep.registry import Cotangents, Node, gradient

_WHOLE_CODES = (2, 4, 8)
_BYTE = 8


@gradient("MatMulNBits", versions=(VERSION,), domain=DOMAIN)
def few_bits_matmul(op: Builder, node: Node, dy: Value) -> Cotangents:
    """D(x Wᵀ + b) = dx Wᵀ + db, with W [N, K] made of its codes anew for each product."""
    if node.wants(2):
        raise ModelError(f"{node.label}: scales of codes are not trained; freeze them")
    return op.MatMul(dy, _weights(node, dy)), None, None, None, None, dy


def _weights(node: Node, dy: Value) -> Value:
    """(code - zero) scale, in blocks of a row that share both; N rows of K numbers.

    The codes are read after ``dy`` is there: the runtime would compute the weights once and keep
    them otherwise.
    """
    op, bits = node.op, int(node.attribute("bits", 4))
    if bits not in _WHOLE_CODES or node.optional_input(4) is not None:
        raise ModelError(f"{node.label}: expected codes of 2, 4 or 8 bits, their groups in order")
    rows, columns, size = (int(node.attribute(key)) for key in ("N", "K", "block_size"))
    blocks = -(-columns // size)
    codes = _digits(late(node.input(1), zero_after(dy)), bits, dy.elem_type)
    steps = op.Reshape(codes, op.integers(rows, blocks, size))
    scales = op.Reshape(node.input(2), op.integers(rows, blocks, 1)).cast(dy.elem_type)
    weights = op.Reshape((steps - _zeros(node, bits, dy)) * scales, op.integers(rows, -1))
    return cut_along(weights, 1, 0, columns)


def _zeros(node: Node, bits: int, dy: Value) -> Value | float:
    """The code of zero: a number, or one for each block [N, blocks, 1], which may be codes too."""
    zeros = node.optional_input(3)
    if zeros is None:
        return float(2 ** (bits - 1))
    op, rows = node.op, int(node.attribute("N"))
    blocks = -(-int(node.attribute("K")) // int(node.attribute("block_size")))
    if zeros.is_float:
        return op.Reshape(zeros, op.integers(rows, blocks, 1)).cast(dy.elem_type)
    codes = _digits(zeros, bits, dy.elem_type)
    return op.Unsqueeze(
        cut_along(op.Reshape(codes, op.integers(rows, -1)), 1, 0, blocks), op.integers(-1)
    )


def _digits(packed: Value, bits: int, elem_type: int) -> Value:
    """The numbers that bytes hold, the first in the lowest bits, on a new last axis."""
    op, base = packed.op, float(2**bits)
    rest, digits = packed.cast(elem_type), []
    for _ in range(_BYTE // bits - 1):
        higher = op.Floor(rest * (1 / base))
        digits.append(rest - higher * base)
        rest = higher
    return op.Concat(*(op.Unsqueeze(d, op.integers(-1)) for d in [*digits, rest]), axis=-1)
