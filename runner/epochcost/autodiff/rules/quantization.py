"""Quantized numbers: what floats stand for them, and how that depends on the scale."""

from __future__ import annotations

from epochcost.autodiff.axes import padded
from epochcost.autodiff.builder import Builder, Value
from epochcost.autodiff.node import Node
from epochcost.autodiff.registry import Cotangents, gradient


@gradient("DequantizeLinear", versions=(10, 13, 19, 21, 23, 24, 25, 28))
def dequantize_linear(op: Builder, node: Node, dy: Value) -> Cotangents:
    """D((x - z) s) = (x - z) ds; integers take no gradient."""
    scale = node.input(1)
    ones = op.zeros(scale.shape, scale.elem_type) + 1.0
    attributes = {name: node.attribute(name) for name in ("axis", "block_size")}
    given = {name: value for name, value in attributes.items() if value}
    inputs = [node.x, ones, node.optional_input(2)]
    [steps] = op.emit("DequantizeLinear", inputs, given)
    typed = dy if dy.elem_type == scale.elem_type else op.Cast(dy, to=scale.elem_type)
    return None, _summed(typed * steps, scale, node)


def _summed(terms: Value, scale: Value, node: Node) -> Value:
    """Over all elements that share a scale: the tensor's, an axis's, or a block's."""
    op = terms.op
    if scale.rank == 0 or scale.size == 1:
        return op.reduce("ReduceSum", terms, range(terms.rank), keepdims=False)
    axis = int(node.attribute("axis")) % terms.rank
    if not node.attribute("block_size"):
        others = [other for other in range(terms.rank) if other != axis]
        return op.reduce("ReduceSum", terms, others, keepdims=False)
    blocks, size = scale.shape[axis], int(node.attribute("block_size"))
    ends = [0] * terms.rank
    ends[axis] = blocks * size - terms.shape[axis]
    whole = padded(terms, [0] * terms.rank, ends)
    split = [*terms.shape[:axis], blocks, size, *terms.shape[axis + 1 :]]
    parts = op.Reshape(whole, op.integers(*split))
    return op.reduce("ReduceSum", parts, [axis + 1], keepdims=False)
