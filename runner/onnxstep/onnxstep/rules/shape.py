"""Gradients of operators that rearrange, repeat, cut or join elements, or change their type."""

from __future__ import annotations

import numpy as np

from onnxstep.axes import cut_along, dilate, flip, matmul_along_axis, pad, reduced, split_at
from onnxstep.builder import Builder, Value, ascending, require_room
from onnxstep.errors import ModelError
from onnxstep.registry import Cotangents, Node, gradient


@gradient("Flatten", versions=(1, 9, 11, 13, 21, 23, 24, 25))
@gradient("Reshape", versions=(5, 13, 14, 19, 21, 23, 24, 25))
@gradient("Squeeze", versions=(1, 11, 13, 21, 23, 24, 25))
@gradient("Unsqueeze", versions=(1, 11, 13, 21, 23, 24, 25))
def reshape(op: Builder, node: Node, dy: Value) -> Cotangents:
    """Reshape the incoming gradient to the shape of the node's input x."""
    x = node.x
    return dy.reshape(*x.shape) if x.size else op.zeros(x.shape, x.elem_type)


@gradient("Transpose", versions=(1, 13, 21, 23, 24, 25))
def transpose(op: Builder, node: Node, dy: Value) -> Cotangents:
    """Permute the axes of the incoming gradient back."""
    if not node.x.rank:
        return dy
    forward = node.attribute("perm") or list(range(node.x.rank))[::-1]
    return op.Transpose(dy, perm=[int(axis) for axis in np.argsort(forward)])


@gradient("Cast", versions=(6, 9, 13, 19, 21, 23, 24, 25, 28))
@gradient("CastLike", versions=(15, 19, 21, 23, 24, 25))
def cast(op: Builder, node: Node, dy: Value) -> Cotangents:
    """Cast the incoming gradient back; integers and CastLike's second input get no gradient."""
    return op.Cast(dy, to=node.x.elem_type) if node.x.is_float else (None,)


@gradient("Expand", versions=(8, 13))
@gradient("Identity", versions=(1, 13, 14, 16, 19, 21, 23, 24, 25))
def identity(_: Builder, __: Node, dy: Value) -> Cotangents:
    """Return the incoming gradient; the caller sums it over the axes that Expand broadcasts."""
    return dy


@gradient("Tile", versions=(6, 13))
def tile(op: Builder, node: Node, dy: Value) -> Cotangents:
    """Sum the incoming gradient over all copies of an element."""
    if not dy.size:
        return op.zeros(node.x.shape, dy.elem_type)
    shape: list[int] = []
    copies: list[int] = []
    for length, repeated in zip(node.x.shape, dy.shape, strict=True):
        if repeated != length:
            copies.append(len(shape))
            shape.append(repeated // length)
        shape.append(length)
    return reduced("ReduceSum", dy.reshape(*shape), copies, keepdims=False)


@gradient("DepthToSpace", versions=(1, 11, 13, 28))
def depth_to_space(op: Builder, node: Node, dy: Value) -> Cotangents:
    """Move the gradients of each block of elements back into channels, as the node's mode says."""
    size = node.attribute("blocksize")
    if node.attribute("mode", "DCR") == "DCR":
        return op.SpaceToDepth(dy, blocksize=size)
    batch, channels, rows, columns = dy.shape
    blocks = op.integers(batch, channels, rows // size, size, columns // size, size)
    gathered = op.Transpose(op.Reshape(dy, blocks), perm=[0, 1, 3, 5, 2, 4])
    return gathered.reshape(*node.x.shape)


@gradient("SpaceToDepth", versions=(1, 13, 28))
def space_to_depth(op: Builder, node: Node, dy: Value) -> Cotangents:
    """Move the channels of the incoming gradient back into blocks, as the node's mode says."""
    return op.DepthToSpace(
        dy, blocksize=node.attribute("blocksize"), mode=node.attribute("mode", "DCR")
    )


@gradient("Trilu", versions=(14,))
def trilu(op: Builder, node: Node, dy: Value) -> Cotangents:
    """Keep the node's triangle of the incoming gradient; all other elements become 0."""
    inputs = [dy, node.optional_input(1)]
    return op.emit("Trilu", inputs, {"upper": node.attribute("upper")})[0]


@gradient("Concat", versions=(4, 11, 13))
def concat(_: Builder, node: Node, dy: Value) -> Cotangents:
    """Cut the incoming gradient into one part for each operand."""
    axis = node.attribute("axis") % dy.rank
    lengths = [node.input(index).shape[axis] for index in range(len(node.inputs))]
    indices = [index for index in range(len(lengths)) if node.wants(index)]
    if len(indices) > 1:
        return split_at(dy, lengths, axis)
    start, stop = sum(lengths[: indices[0]]), sum(lengths[: indices[0] + 1])
    return [None] * indices[0] + [cut_along(dy, axis, start, stop)]


@gradient("Split", versions=(2, 11, 13, 18))
def split(op: Builder, node: Node, *dy: Value | None) -> Cotangents:
    """Join the gradients of all parts, with zeros for a part that the loss does not depend on."""
    parts = [
        op.zeros(node.output(index).shape, node.x.elem_type) if part is None else part
        for index, part in enumerate(dy)
    ]
    return op.Concat(*parts, axis=node.attribute("axis"))


@gradient("Slice", versions=(10, 11, 13))
def slice_(op: Builder, node: Node, dy: Value) -> Cotangents:
    """Put each element of the incoming gradient at its place in x, with zeros everywhere else."""
    if not dy.size:
        return op.zeros(node.x.shape, dy.elem_type)
    starts, steps = _first_indices_and_steps(node)
    lowest = [
        start + min(step, 0) * (count - 1)
        for start, step, count in zip(starts, steps, dy.shape, strict=True)
    ]
    upwards = flip(dy, [axis for axis, step in enumerate(steps) if step < 0])
    placed = dilate(upwards, [abs(step) for step in steps])
    ends = zip(node.x.shape, lowest, placed.shape, strict=True)
    return pad(placed, lowest, [length - first - width for length, first, width in ends])


@gradient("Pad", versions=(11, 13, 18, 19, 21, 23, 24, 25))
def pad_(_: Builder, node: Node, dy: Value) -> Cotangents:
    """Cut off the padding; elements that it repeats also get the gradients of their copies."""
    if node.wants(2):
        raise ModelError(f"{node.label}: the fill value is not trained; freeze it")
    begins, ends = _pads_before_and_after(node)
    mode = node.attribute("mode")
    if mode == "constant":
        return pad(dy, [-begin for begin in begins], [-end for end in ends])
    if min(*begins, *ends) < 0:
        raise ModelError(f"{node.label}: negative pads are differentiated in mode constant only")
    for axis, (begin, end) in enumerate(zip(begins, ends, strict=True)):
        if begin or end:
            dy = _fold_padding_back(dy, axis, begin, end, mode)
    return dy


def _first_indices_and_steps(node: Node) -> tuple[list[int], list[int]]:
    """First index and step of a Slice for each axis of x; indices count from the front."""
    lengths = node.x.shape
    starts_given = node.constant(1, "starts")
    axes, steps = node.constant(3, "axes"), node.constant(4, "steps")
    starts, strides = [0] * len(lengths), [1] * len(lengths)
    for index, given in enumerate([] if starts_given is None else starts_given.tolist()):
        axis = index if axes is None else int(axes[index])
        step = 1 if steps is None else int(steps[index])
        length = lengths[axis]
        start = given + length if given < 0 else given
        starts[axis] = min(max(start, 0), length - 1 if step < 0 else length)
        strides[axis] = step
    return starts, strides


def _pads_before_and_after(node: Node) -> tuple[list[int], list[int]]:
    rank = node.x.rank
    pads, axes = node.constant(1, "pads"), node.constant(3, "axes")
    named = range(rank) if axes is None else [int(axis) % rank for axis in axes]
    begins, ends = [0] * rank, [0] * rank
    if pads is not None:
        for axis, begin, end in zip(named, *np.split(pads, 2), strict=True):
            begins[axis], ends[axis] = int(begin), int(end)
    return begins, ends


def _fold_padding_back(dy: Value, axis: int, begin: int, end: int, mode: str) -> Value:
    """Cut the padding off ``dy``; add the padding's gradients to those of the copied elements."""
    op, padded_length = dy.op, dy.shape[axis]
    stop = padded_length - end
    length = stop - begin
    require_room(length, max(1, begin + end))
    sources = np.pad(ascending(length), (begin, end), mode=mode)  # type: ignore[call-overload]
    in_pads = np.r_[sources[:begin], sources[stop:]]
    copies = (np.arange(length)[:, None] == in_pads).astype(dy.dtype)
    borders = [cut_along(dy, axis, 0, begin)] if begin else []
    borders += [cut_along(dy, axis, stop, padded_length)] if end else []
    received = op.Concat(*borders, axis=axis)
    return cut_along(dy, axis, begin, stop) + matmul_along_axis(op.constant(copies), received, axis)
