"""Reading and adding at one class of each position, the way an embedding or a loss needs it."""

from __future__ import annotations

from epochcost.autodiff.builder import Value, ascending
from epochcost.errors import ModelError

# ScatterElements adds from this opset on; before it the addition goes through a one-hot mask.
_SCATTER_ADDS = 16


def classes_of(scores: Value) -> int:
    """The length of the class axis, the last; raises ModelError where scores have no such axis."""
    if not scores.is_float or scores.rank < 2:
        raise ModelError(
            f"demanded float class scores [..., classes]; output {scores.name!r} has shape "
            f"{list(scores.shape)}"
        )
    return scores.shape[-1]


def pick(scores: Value, classes: Value) -> Value:
    """scores[..., classes]: [..., C] and [...] int64 to [...]."""
    op = scores.op
    chosen = op.GatherElements(scores, op.Unsqueeze(classes, op.integers(-1)), axis=scores.rank - 1)
    return op.Squeeze(chosen, op.integers(-1))


def as_column(values: Value) -> Value:
    """[...] as [..., 1], to stand beside scores; a scalar stays one."""
    return values.op.Unsqueeze(values, values.op.integers(-1)) if values.rank else values


def add_at(scores: Value, classes: Value, amount: Value) -> Value:
    """Add ``amount`` (scalar or [...]) to scores[..., classes]."""
    op = scores.op
    index = op.Unsqueeze(classes, op.integers(-1))
    if op.opset < _SCATTER_ADDS:
        labels = op.constant(ascending(scores.shape[-1]))
        onehot = op.Cast(op.Equal(index, labels), to=scores.elem_type)
        return scores + onehot * as_column(amount)
    amounts = op.Expand(amount, op.integers(*classes.shape))
    updates = op.Unsqueeze(amounts, op.integers(-1))
    return op.ScatterElements(scores, index, updates, axis=scores.rank - 1, reduction="add")
