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
    and the second against it; that of all steps is [T·D, n, B].
    """

    op: Builder
    steps: int
    directions: int

    def each(self, every: Value) -> list[Value]:
        """All steps apart."""
        _, rows, batch = every.shape
        if self.directions == 1:
            every = self.op.Reshape(every, self.op.integers(self.steps * rows, batch))
        return split(every, self.steps, axis=0)

    def every(self, values: Sequence[Value]) -> Value:
        """All steps as one."""
        rows, batch = values[0].shape[-2:]
        flat = joined(values, axis=0)
        return self.op.Reshape(flat, self.op.integers(len(values) * self.directions, rows, batch))

    def product(self, weights: Value, value: Value, added: Value | None = None) -> Value:
        """Weights [m, n] or [2, m, n] by the value of a step, plus that of another."""
        op = self.op
        if added is None:
            return op.MatMul(weights, value)
        if self.directions == 1:
            return op.Gemm(weights, value, added)
        return op.MatMul(weights, value) + added

    def from_rows(self, directions: Sequence[Value]) -> Value:
        """[n, T·B] of each direction, in the order of processing, as all steps."""
        op, (rows, columns) = self.op, directions[0].shape
        batch = columns // self.steps
        by_unit = op.Reshape(
            joined(directions, axis=0), op.integers(self.directions * rows, self.steps, batch)
        )
        by_step = op.Transpose(by_unit, perm=[1, 0, 2])
        return op.Reshape(by_step, op.integers(self.steps * self.directions, rows, batch))

    def as_rows(self, every: Value) -> list[Value]:
        """All steps as [n, T·B] of each direction."""
        op, (_, rows, batch) = self.op, every.shape
        by_step = op.Reshape(every, op.integers(self.steps, self.directions * rows, batch))
        by_unit = op.Transpose(by_step, perm=[1, 0, 2])
        flat = op.Reshape(by_unit, op.integers(self.directions * rows, self.steps * batch))
        return split(flat, self.directions, axis=0)

    def from_sequences(self, directions: Sequence[Value]) -> Value:
        """[T, B, n] of each direction, in the order of processing, as all steps."""
        op, (_, batch, rows) = self.op, directions[0].shape
        flat = [op.Unsqueeze(value, op.integers(1)) for value in directions]
        turned = op.Transpose(joined(flat, axis=1), perm=[0, 1, 3, 2])
        return op.Reshape(turned, op.integers(self.steps * self.directions, rows, batch))

    def as_sequences(self, every: Value) -> list[Value]:
        """All steps as [T·B, n] of each direction."""
        op, (_, rows, batch) = self.op, every.shape
        turned = op.Transpose(every, perm=[0, 2, 1])
        apart = op.Reshape(turned, op.integers(self.steps, self.directions, batch, rows))
        flat = op.integers(self.steps * batch, rows)
        return [op.Reshape(part, flat) for part in split(apart, self.directions, axis=1)]

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
