"""Gradients of operators that read or write elements at indices.

An element that is read several times gets the sum of the gradients of all reads.
"""

from __future__ import annotations

from onnx import TensorProto

from onnxstep.axes import pad
from onnxstep.builder import Builder, Value
from onnxstep.cotangent_sums import scatter_rows
from onnxstep.errors import ModelError
from onnxstep.registry import Cotangents, Node, gradient


@gradient("Gather", versions=(1, 11, 13))
def gather(op: Builder, node: Node, dy: Value) -> Cotangents:
    """Add the gradient of each result row to the row that was read; other rows get zeros."""
    x, places = node.x, node.input(1)
    axis = node.attribute("axis") % x.rank
    place = op.array_of(places)
    if place is not None and place.ndim == 0:
        before = int(place) % x.shape[axis]
        begins, ends = [0] * x.rank, [0] * x.rank
        begins[axis], ends[axis] = before, x.shape[axis] - 1 - before
        return pad(op.Unsqueeze(dy, op.integers(axis)), begins, ends)
    first = [*range(axis, axis + places.rank)]
    rest = [axis_kept for axis_kept in range(dy.rank) if axis_kept not in first]
    rows = op.Transpose(dy, perm=[*first, *rest]) if axis else dy
    table = (x.shape[axis], *x.shape[:axis], *x.shape[axis + 1 :])
    summed = scatter_rows(op, table, rows.elem_type, places.cast(TensorProto.INT64), rows)
    back = [*range(1, axis + 1), 0, *range(axis + 1, x.rank)]
    return op.Transpose(summed, perm=back) if axis else summed


@gradient("GatherElements", versions=(11, 13))
def gather_elements(op: Builder, node: Node, dy: Value) -> Cotangents:
    """Add the gradient of each result element to the element that was read."""
    x, places, axis = node.x, node.input(1), node.attribute("axis") % dy.rank
    zeros = op.zeros(x.shape, dy.elem_type)
    return op.ScatterElements(zeros, places, dy, axis=axis, reduction="add")


@gradient("GatherND", versions=(11, 12, 13))
def gather_nd(op: Builder, node: Node, dy: Value) -> Cotangents:
    """Add the gradient of each result block to the data block that was read; others get zeros."""
    if node.attribute("batch_dims", 0):
        raise ModelError(f"{node.label}: only batch_dims = 0 is differentiated")
    zeros = op.zeros(node.x.shape, dy.elem_type)
    return op.ScatterND(zeros, node.input(1), dy, reduction="add")


@gradient("ScatterElements", versions=(11, 13, 16, 18))
@gradient("ScatterND", versions=(11, 13, 16, 18))
def scatter(op: Builder, node: Node, dy: Value) -> Cotangents:
    """Gradients of the data, and of the updates that the node writes into the data."""
    op_type, places = node.proto.op_type, node.input(1)
    gather = {"ScatterElements": "GatherElements", "ScatterND": "GatherND"}[op_type]
    axis = {"axis": node.attribute("axis") % dy.rank} if op_type == "ScatterElements" else {}

    def read(x: Value) -> Value:
        return op.emit(gather, [x, places], axis)[0]

    def write(x: Value, updates: Value, **reduction: str) -> Value:
        return op.emit(op_type, [x, places, updates], {**axis, **reduction})[0]

    match node.attribute("reduction", "none"):
        case "none":
            return write(dy, op.zeros(node.input(2).shape, dy.elem_type)), None, read(dy)
        case "add":
            return dy, None, read(dy)
        case "max" | "min":
            # As in PyTorch, elements that are equal to the result share its gradient.
            won = op.Cast(op.Equal(node.x, node.y), to=dy.elem_type)
            won_by_updates = op.Cast(op.Equal(node.input(2), read(node.y)), to=dy.elem_type)
            share = dy / write(won, won_by_updates, reduction="add")
            return share * won, None, read(share) * won_by_updates
        case other:
            raise ModelError(f"{node.label}: reduction {other!r} is not differentiated")


@gradient("TopK", versions=(10, 11, 24))
def top_k(op: Builder, node: Node, dy: Value) -> Cotangents:
    """The gradient of each selected value goes to its element of x; none is selected twice."""
    zeros = op.zeros(node.x.shape, dy.elem_type)
    return op.ScatterElements(zeros, node.output(1), dy, axis=node.attribute("axis"))
