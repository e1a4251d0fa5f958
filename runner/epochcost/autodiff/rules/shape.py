"""Operators that rearrange or repeat elements: reshaping, transposing, casting, blocks."""

from __future__ import annotations

import numpy as np

from epochcost.autodiff.builder import Builder, Value
from epochcost.autodiff.node import Node
from epochcost.autodiff.registry import Cotangents, gradient, zero


@gradient("Flatten", versions=(1, 9, 11, 13, 21, 23, 24, 25))
@gradient("Reshape", versions=(5, 13, 14, 19, 21, 23, 24, 25))
@gradient("Squeeze", versions=(1, 11, 13, 21, 23, 24, 25))
@gradient("Unsqueeze", versions=(1, 11, 13, 21, 23, 24, 25))
def reshape(op: Builder, node: Node, dy: Value) -> Cotangents:
    """The same elements in the same order: give the cotangent the operand's shape."""
    x = node.x
    return op.Reshape(dy, op.integers(*x.shape)) if x.size else op.zeros(x.shape, x.elem_type)


@gradient("Transpose", versions=(1, 13, 21, 23, 24, 25))
def transpose(op: Builder, node: Node, dy: Value) -> Cotangents:
    """Permute back."""
    forward = node.attribute("perm") or list(range(node.x.rank))[::-1]
    return op.Transpose(dy, perm=[int(axis) for axis in np.argsort(forward)])


@gradient("Cast", versions=(6, 9, 13, 19, 21, 23, 24, 25, 28))
@gradient("CastLike", versions=(15, 19, 21, 23, 24, 25))
def cast(op: Builder, node: Node, dy: Value) -> Cotangents:
    """Cast back; a cast from integers takes no gradient, nor does what only lends its type."""
    return op.Cast(dy, to=node.x.elem_type) if node.x.is_float else (None,)


@gradient("Expand", versions=(8, 13))
def expand(_: Builder, __: Node, dy: Value) -> Cotangents:
    """Copies add up, as wherever broadcasting is undone."""
    return dy


@gradient("Tile", versions=(6, 13))
def tile(op: Builder, node: Node, dy: Value) -> Cotangents:
    """Give each repeated axis a new one that counts the copies, and sum over it."""
    shape: list[int] = []
    copies: list[int] = []
    for length, repeated in zip(node.x.shape, dy.shape, strict=True):
        if repeated != length:
            copies.append(len(shape))
            shape.append(repeated // length)
        shape.append(length)
    return op.reduce("ReduceSum", op.Reshape(dy, op.integers(*shape)), copies, keepdims=False)


@gradient("DepthToSpace", versions=(1, 11, 13, 28))
def depth_to_space(op: Builder, node: Node, dy: Value) -> Cotangents:
    """Gather each block back into channels, in the order of the mode."""
    size = node.attribute("blocksize")
    if node.attribute("mode", "DCR") == "DCR":
        return op.SpaceToDepth(dy, blocksize=size)
    batch, channels, rows, columns = dy.shape
    blocks = op.integers(batch, channels, rows // size, size, columns // size, size)
    gathered = op.Transpose(op.Reshape(dy, blocks), perm=[0, 1, 3, 5, 2, 4])
    return op.Reshape(gathered, op.integers(*node.x.shape))


@gradient("SpaceToDepth", versions=(1, 13, 28))
def space_to_depth(op: Builder, node: Node, dy: Value) -> Cotangents:
    """Spread the channels over blocks again, in the order of the mode."""
    return op.DepthToSpace(
        dy, blocksize=node.attribute("blocksize"), mode=node.attribute("mode", "DCR")
    )


@gradient("ReverseSequence", versions=(10, 28))
def reverse_sequence(op: Builder, node: Node, dy: Value) -> Cotangents:
    """Reversing twice restores the order."""
    axes = {name: node.attribute(name) for name in ("batch_axis", "time_axis")}
    return op.ReverseSequence(dy, node.input(1), **axes)


@gradient("Trilu", versions=(14,))
def trilu(op: Builder, node: Node, dy: Value) -> Cotangents:
    """What was kept is kept; the rest was overwritten by zeros."""
    kept = [dy, node.optional_input(1)]
    return op.emit("Trilu", kept, {"upper": node.attribute("upper")})[0]


for _op_type, _versions in {
    "Shape": (1, 13, 15, 19, 21, 23, 24, 25),
    "Size": (1, 13, 19, 21, 23, 24, 25),
}.items():
    zero(_op_type, _versions)
