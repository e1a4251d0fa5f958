"""How a layer that is written out over time holds the values of its steps: a column for a sequence.

A product for one step has few sequences and many units. With the weights on its left ONNX Runtime's
product reads them where they stand; on its right it would order them anew at every step. Gates are
rows here, so that they are cut apart and put together in one piece each. Two directions are one
batch of two. The equations stand in ``unrolled`` and ``rules.written_out``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from epochcost.autodiff.builder import Builder, Value
from epochcost.autodiff.recurrence import joined, split

# The axis of units, or of gates above each other, in the values of a step and of all steps.
UNITS = -2


@dataclass(frozen=True)
class Columns:
    """T steps of D directions and B sequences.

    The value of a step is [n, B], or [2, n, B] for both directions, the first in the order of time
    and the second against it. All steps are rows [n, T·B] for each direction.
    """

    op: Builder
    steps: int
    directions: int

    def each(self, rows: Sequence[Value]) -> list[Value]:
        """The steps of rows."""
        return split(self.stacked(rows), self.steps, axis=-1)

    def rows(self, values: Sequence[Value]) -> list[Value]:
        """All steps as rows."""
        rows, batch = values[0].shape[-2:]
        shape = self.op.integers(self.directions * rows, len(values) * batch)
        return split(self.op.Reshape(joined(values, axis=-1), shape), self.directions, axis=0)

    def product(self, weights: Value, value: Value, added: Value | None = None) -> Value:
        """Weights [m, n] or [2, m, n] by the value of a step, plus that of another."""
        op = self.op
        if added is None:
            return op.MatMul(weights, value)
        if self.directions == 1:
            return op.Gemm(weights, value, added)
        return op.MatMul(weights, value) + added

    def from_states(self, states: Sequence[Value]) -> Value:
        """A state [B, n] of each direction as the value of a step."""
        turned = [self.op.Transpose(state, perm=[1, 0]) for state in states]
        return self.stacked(turned)

    def as_states(self, value: Value) -> list[Value]:
        """The value of a step as [B, n] of each direction."""
        op, (rows, batch) = self.op, value.shape[-2:]
        flat = op.Reshape(value, op.integers(self.directions * rows, batch))
        return [op.Transpose(s, perm=[1, 0]) for s in split(flat, self.directions, axis=0)]

    def stacked(self, values: Sequence[Value]) -> Value:
        """Values [m, n] of each direction as one."""
        op = self.op
        if len(values) == 1:
            return values[0]
        return joined([op.Unsqueeze(value, op.integers(0)) for value in values], axis=0)
