"""The gradient of a table of which rows are read: the sum of their cotangents, each at its place.

Where the table receives a gradient from elsewhere too, as an embedding does that is also the last
layer's weight, the rows are added to that one, and no table of zeros is made. Before opset 16,
where scatters do not add up, the rules of ``rules.indexing`` have another form.
"""

from __future__ import annotations

from dataclasses import dataclass

from epochcost.autodiff.builder import Builder, Value

# ONNX Runtime's CPU kernel of ScatterElements works in place, that of ScatterND copies the table
# first; but it takes an index for each element: benchmarks/rules/scatter.py. So few places of a
# table it pays for.
_FEW = 32


@dataclass(frozen=True)
class Scattered:
    """Rows [*places.shape[:-1], ...] added at ``places`` [..., 1] to zeros of a table's shape."""

    places: Value
    rows: Value


def scattered(
    op: Builder, shape: tuple[int, ...], elem_type: int, places: Value, rows: Value
) -> Value:
    """Zeros of ``shape`` with rows [*places.shape, *shape[1:]] added at their places."""
    at = op.Unsqueeze(places, op.integers(-1))
    summed = op.ScatterND(op.zeros(shape, elem_type), at, rows, reduction="add")
    op.scattered[summed.name] = Scattered(at, rows)
    return summed


def plus(one: Value, other: Value) -> Value:
    """The sum of two cotangents of one value."""
    known = one.op.scattered
    if one.name in known and other.name not in known:
        one, other = other, one
    return _onto(one, known[other.name]) if other.name in known else one + other


def _onto(table: Value, scattered: Scattered) -> Value:
    """The table with the rows added."""
    op, places, rows = table.op, scattered.places, scattered.rows
    if op.provider != "cpu" or places.size * _FEW > table.shape[0]:
        return op.ScatterND(table, places, rows, reduction="add")
    flat = [places.size, *table.shape[1:]]
    column = op.Reshape(places, op.integers(-1, *[1] * (table.rank - 1)))
    each = op.Expand(column, op.integers(*flat))
    rows = op.Reshape(rows, op.integers(*flat))
    return op.ScatterElements(table, each, rows, axis=0, reduction="add")
