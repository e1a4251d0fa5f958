"""Gradients of operators that read or write elements at indices.

An element that is read several times gets the sum of the cotangents.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from onnx import TensorProto

from onnxstep.axes import pad
from onnxstep.builder import Builder, Value, ascending
from onnxstep.cotangent_sums import scatter_rows
from onnxstep.errors import ModelError
from onnxstep.registry import Cotangents, Node, gradient, refused, zero


@gradient("Gather", versions=(1, 11, 13))
def gather(op: Builder, node: Node, dy: Value) -> Cotangents:
    """Add the cotangent of each result row to the row that was read; other rows get zeros."""
    x, places = node.x, node.input(1)
    axis = node.attribute("axis") % x.rank
    place = op.array_of(places)
    if place is not None and place.ndim == 0:
        return _one_row(op, dy, x, axis, int(place))
    first = [*range(axis, axis + places.rank)]
    rest = [axis_kept for axis_kept in range(dy.rank) if axis_kept not in first]
    rows = op.Transpose(dy, perm=[*first, *rest]) if axis else dy
    table = (x.shape[axis], *x.shape[:axis], *x.shape[axis + 1 :])
    summed = scatter_rows(op, table, rows.elem_type, places.cast(TensorProto.INT64), rows)
    back = [*range(1, axis + 1), 0, *range(axis + 1, x.rank)]
    return op.Transpose(summed, perm=back) if axis else summed


@gradient("GatherElements", versions=(11, 13))
def gather_elements(op: Builder, node: Node, dy: Value) -> Cotangents:
    """Add the cotangent of each result element to the element that was read."""
    x, places, axis = node.x, node.input(1), node.attribute("axis") % dy.rank
    zeros = op.zeros(x.shape, dy.elem_type)
    return op.ScatterElements(zeros, places, dy, axis=axis, reduction="add")


@gradient("GatherND", versions=(11, 12, 13))
def gather_nd(op: Builder, node: Node, dy: Value) -> Cotangents:
    """Add the cotangent of each result block to the block that was read."""
    x = node.x
    places = _with_batch_places(op, node.input(1), node.attribute("batch_dims", 0))
    return op.ScatterND(op.zeros(x.shape, dy.elem_type), places, dy, reduction="add")


@gradient("ScatterElements", versions=(11, 13, 16, 18))
def scatter_elements(op: Builder, node: Node, dy: Value) -> Cotangents:
    """Divide the cotangent between the data and the updates that overwrite elements of it."""
    places, axis = node.input(1), node.attribute("axis") % dy.rank

    def read(x: Value) -> Value:
        return op.GatherElements(x, places, axis=axis)

    def write(x: Value, updates: Value, **reduction: str) -> Value:
        return op.ScatterElements(x, places, updates, axis=axis, **reduction)

    return _scattered(op, node, dy, read, write)


@gradient("ScatterND", versions=(11, 13, 16, 18))
def scatter_nd(op: Builder, node: Node, dy: Value) -> Cotangents:
    """Divide the cotangent between the data and the updates that overwrite blocks of it."""
    places = node.input(1)

    def read(x: Value) -> Value:
        return op.GatherND(x, places)

    def write(x: Value, updates: Value, **reduction: str) -> Value:
        return op.ScatterND(x, places, updates, **reduction)

    return _scattered(op, node, dy, read, write)


@gradient("TopK", versions=(10, 11, 24))
def top_k(op: Builder, node: Node, dy: Value) -> Cotangents:
    """Each cotangent goes to the element that was selected; no element is selected twice."""
    zeros = op.zeros(node.x.shape, dy.elem_type)
    return op.ScatterElements(zeros, node.output(1), dy, axis=node.attribute("axis"))


@gradient("OneHot", versions=(9, 11, 28))
def one_hot(op: Builder, node: Node, dy: Value) -> Cotangents:
    """Gradient of y = off + (on - off) h at the numbers off and on.

    The one-hot tensor h of the indices has no derivative.
    """
    axis, axes = node.attribute("axis"), range(dy.rank)
    labels, depth = node.input(0).cast(TensorProto.INT64), op.constant(np.array(dy.shape[axis]))
    # OneHot runs in float32, which every runtime supports.
    hot = op.OneHot(labels, depth, op.constant(np.array([0, 1], np.float32)), axis=axis)
    hot = op.Cast(hot, to=dy.elem_type)
    on = op.reduce("ReduceSum", dy * hot, axes, keepdims=False)
    off = op.reduce("ReduceSum", dy, axes, keepdims=False) - on
    values = [op.Reshape(value, op.integers(1)) for value in (off, on)]
    return None, None, op.Concat(*values, axis=0)


def _one_row(op: Builder, dy: Value, x: Value, axis: int, place: int) -> Value:
    """Gradient of reading one row at a constant place: dy with zeros before and after it."""
    place %= x.shape[axis]
    begins, ends = [0] * x.rank, [0] * x.rank
    begins[axis], ends[axis] = place, x.shape[axis] - 1 - place
    return pad(op.Unsqueeze(dy, op.integers(axis)), begins, ends)


def _with_batch_places(op: Builder, places: Value, batch_dims: int) -> Value:
    """Put the batch's own indices before the indices [*batch, ..., n]: [..., batch_dims + n]."""
    if not batch_dims:
        return places
    columns = [*places.shape[:-1], 1]
    counts = []
    for axis in range(batch_dims):
        count = ascending(columns[axis]).reshape(-1, *[1] * (len(columns) - axis - 1))
        counts.append(op.Expand(op.constant(count), op.integers(*columns)))
    return op.Concat(*counts, places, axis=-1)


def _scattered(
    op: Builder,
    node: Node,
    dy: Value,
    read: Callable[[Value], Value],
    write: Callable[..., Value],
) -> Cotangents:
    """Cotangents of the data and of the updates of a scatter, for each kind of reduction.

    ``read`` gathers elements at the scatter's indices; ``write`` scatters to them.
    """
    updates = node.input(2)
    match node.attribute("reduction", "none"):
        case "none":
            return write(dy, op.zeros(updates.shape, dy.elem_type)), None, read(dy)
        case "add":
            return dy, None, read(dy)
        case "max" | "min":
            return _extreme(op, node, dy, read, write)
        case "mul":
            return _product(op, node, dy, read, write)
        case other:
            raise ModelError(f"{node.label}: reduction {other!r} is unknown")


def _extreme(
    op: Builder,
    node: Node,
    dy: Value,
    read: Callable[[Value], Value],
    write: Callable[..., Value],
) -> Cotangents:
    """Share the cotangent of a maximum or minimum equally among ties.

    PyTorch's scatter_reduce does the same.
    """
    won = op.Cast(op.Equal(node.x, node.y), to=dy.elem_type)
    won_by_updates = op.Cast(op.Equal(node.input(2), read(node.y)), to=dy.elem_type)
    share = dy / write(won, won_by_updates, reduction="add")
    return share * won, None, read(share) * won_by_updates


def _product(
    op: Builder,
    node: Node,
    dy: Value,
    read: Callable[[Value], Value],
    write: Callable[..., Value],
) -> Cotangents:
    """D(x Π u) = Π u dx + Σ (y / u) du.

    If u is 0, the product of the other factors replaces y / u; it is 0 if another factor is 0.
    """
    updates = node.input(2)
    is_zero = op.Cast(op.Equal(updates, op.scalar(0.0, dy.elem_type)), to=dy.elem_type)
    filled = updates + is_zero
    without_zeros = write(node.x, filled, reduction="mul")
    zeros = write(op.zeros(node.x.shape, dy.elem_type), is_zero, reduction="add")
    others_have_none = op.Cast(op.Equal(read(zeros), is_zero), to=dy.elem_type)
    du = read(dy) * others_have_none * read(without_zeros) / filled
    return write(dy, updates, reduction="mul"), None, du


zero("NonZero", versions=(9, 13))
refused("Unique", (11, 28), reason="the number of its outputs depends on data")
