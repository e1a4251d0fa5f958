"""Operators that cut tensors apart and put them together: Concat, Split, Slice, Pad."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from onnx import helper

from epochcost.autodiff.axes import along_axis, cut_along, flipped, padded, spread
from epochcost.autodiff.builder import Builder, Value, ascending, require_room
from epochcost.autodiff.node import Node
from epochcost.autodiff.registry import Cotangents, gradient
from epochcost.errors import ModelError


@gradient("Concat", versions=(4, 11, 13))
def concat(op: Builder, node: Node, dy: Value) -> Cotangents:
    """Cut the cotangent where the operands were joined."""
    axis = node.attribute("axis") % dy.rank
    lengths = [node.input(index).shape[axis] for index in range(len(node.inputs))]
    wanted = [index for index in range(len(lengths)) if node.wants(index)]
    if len(wanted) > 1:
        return op.emit("Split", [dy, op.integers(*lengths)], {"axis": axis}, len(lengths))
    start, stop = sum(lengths[: wanted[0]]), sum(lengths[: wanted[0] + 1])
    return [None] * wanted[0] + [cut_along(dy, axis, start, stop)]


@gradient("Split", versions=(2, 11, 13, 18))
def split(op: Builder, node: Node, *dy: Value | None) -> Cotangents:
    """Join the cotangents; a part that the loss does not depend on has zeros."""
    parts = [
        op.zeros(node.output(index).shape, node.x.elem_type) if part is None else part
        for index, part in enumerate(dy)
    ]
    return op.Concat(*parts, axis=node.attribute("axis"))


@gradient("Slice", versions=(10, 11, 13))
def slice_(op: Builder, node: Node, dy: Value) -> Cotangents:
    """Each element returns to where it was taken from, among zeros.

    Along an axis with a negative step the lowest place is that of the last element taken.
    """
    if not dy.size:
        return op.zeros(node.x.shape, dy.elem_type)
    starts, steps = _starts_and_steps(node)
    lowest = [
        start + min(step, 0) * (taken - 1)
        for start, step, taken in zip(starts, steps, dy.shape, strict=True)
    ]
    upwards = flipped(dy, [axis for axis, step in enumerate(steps) if step < 0])
    placed = spread(upwards, [abs(step) for step in steps])
    ends = zip(node.x.shape, lowest, placed.shape, strict=True)
    return padded(placed, lowest, [length - first - width for length, first, width in ends])


@gradient("Pad", versions=(11, 13, 18, 19, 21, 23, 24, 25))
def pad(op: Builder, node: Node, dy: Value) -> Cotangents:
    """Cut the pads off; copies of elements in them return to the elements.

    The constant that fills pads receives what they received.
    """
    begins, ends = _pads(node)
    mode = node.attribute("mode")
    if mode != "constant":
        return _unfolded(node, dy, begins, ends, mode)
    dx = padded(dy, [-begin for begin in begins], [-end for end in ends])
    if not node.wants(2):
        return dx
    everything = range(dy.rank)
    total, inner = (op.reduce("ReduceSum", v, everything, keepdims=False) for v in (dy, dx))
    return dx, None, total - inner


@gradient("CenterCropPad", versions=(18,))
def center_crop_pad(_: Builder, node: Node, dy: Value) -> Cotangents:
    """Pad what was cropped and crop what was padded; the odd element is the last one."""
    missing = [into - out for into, out in zip(node.x.shape, dy.shape, strict=True)]
    begins = [n // 2 if n > 0 else -(-n // 2) for n in missing]
    return padded(dy, begins, [n - begin for n, begin in zip(missing, begins, strict=True)])


def _starts_and_steps(node: Node) -> tuple[list[int], list[int]]:
    """For each axis the first place taken, counted from the front, and the step."""
    lengths = node.x.shape
    given = node.constant(1, "starts")
    count = 0 if given is None else given.size
    axes, steps = node.constant(3, "axes"), node.constant(4, "steps")
    starts, strides = [0] * len(lengths), [1] * len(lengths)
    for index in range(count):
        axis = index if axes is None else int(axes[index])
        step = 1 if steps is None else int(steps[index])
        start = int(given[index]) if given is not None else 0
        length = lengths[axis]
        start = start + length if start < 0 else start
        starts[axis] = min(max(start, 0), length - 1 if step < 0 else length)
        strides[axis] = step
    return starts, strides


def _pads(node: Node) -> tuple[list[int], list[int]]:
    """Pads before and after each axis; the input ``axes`` names those that have some."""
    rank = node.x.rank
    pads, axes = node.constant(1, "pads"), node.constant(3, "axes")
    named = range(rank) if axes is None else [int(axis) % rank for axis in axes]
    begins, ends = [0] * rank, [0] * rank
    if pads is not None:
        for axis, begin, end in zip(named, *np.split(pads, 2), strict=True):
            begins[axis], ends[axis] = int(begin), int(end)
    return begins, ends


def _unfolded(
    node: Node, dy: Value, begins: Sequence[int], ends: Sequence[int], mode: str
) -> Value:
    if min(*begins, *ends) < 0:
        raise ModelError(f"{node.label}: negative pads are differentiated in mode constant only")
    for axis, (begin, end) in enumerate(zip(begins, ends, strict=True)):
        if begin or end:
            dy = _unfolded_along(dy, axis, begin, end, mode)
    return dy


def _unfolded_along(dy: Value, axis: int, begin: int, end: int, mode: str) -> Value:
    """The inner part plus what its elements' copies in the pads received, by a 0/1 matrix."""
    op, padded_length = dy.op, dy.shape[axis]
    stop = padded_length - end
    length = stop - begin
    require_room(length, max(1, begin + end))
    sources = np.pad(ascending(length), (begin, end), mode=mode)  # type: ignore[call-overload]
    in_pads = np.r_[sources[:begin], sources[stop:]]
    dtype = helper.tensor_dtype_to_np_dtype(dy.elem_type)
    copies = (np.arange(length)[:, None] == in_pads).astype(dtype)
    borders = [cut_along(dy, axis, 0, begin)] if begin else []
    borders += [cut_along(dy, axis, stop, padded_length)] if end else []
    received = op.Concat(*borders, axis=axis)
    return cut_along(dy, axis, begin, stop) + along_axis(op.constant(copies), received, axis)
