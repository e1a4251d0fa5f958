"""Accumulate and clip gradients, and apply the optimizer to parameters and states."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Literal

from onnx import TensorProto

from onnxstep.builder import Builder, Value
from onnxstep.graphs.tensors import HALF_TYPES
from onnxstep.optimizers import Optimizer, Pace

Role = Literal["parameter", "state"]
# Value before the first step: "model" means the value from ``graphs.parameters.materialise``; a
# number fills all elements.
First = Literal["model"] | float
# torch.nn.utils.clip_grad_norm_ adds this to the norm before it divides.
_NORM_GUARD = 1e-6


@dataclass(frozen=True)
class Carried:
    """A value that each step outputs and that is an input of the next step.

    ``role`` is "parameter", or "state" for everything else. An ``initial`` of "model" is the value
    in the model; a number fills all elements at first.
    """

    input: str
    output: str
    shape: tuple[int, ...]
    elem_type: int
    role: Role
    initial: First = 0.0

    @property
    def fill(self) -> float:
        """The number that fills the tensor at first; 0 if the first value comes from the model."""
        return 0.0 if self.initial == "model" else self.initial


@dataclass(frozen=True)
class Transition:
    """A carried value before and after a step; ``role`` and ``initial`` are as in ``Carried``."""

    before: Value
    after: Value
    role: Role
    initial: First = 0.0

    @property
    def carried(self) -> Carried:
        """Input and output name, shape, type, role and first value, for the caller of a step."""
        before, after = self.before, self.after.name
        return Carried(before.name, after, before.shape, before.elem_type, self.role, self.initial)


def updates(
    op: Builder,
    optimizer: Optimizer,
    gradients: Mapping[str, Value],
    rate: Value,
    undecayed: Collection[str] = (),
    finite: Value | None = None,
) -> Iterator[Transition]:
    """Emit the updates of parameters, of optimizer states and, if needed, of the step count.

    Parameters in ``undecayed`` get no weight decay. If the bool scalar ``finite`` is false at run
    time, all values stay as they are.
    """
    count = None
    if optimizer.counts_steps:
        before = op.input("step_count", (), TensorProto.DOUBLE)
        count = before + 1.0
        yield _updated(before, count, finite, "state")
    for name, gradient in gradients.items():
        w = op.values[name]
        rule = replace(optimizer, weight_decay=0.0) if name in undecayed else optimizer
        states = [op.input(f"{name}.{state}", w.shape, w.elem_type) for state in rule.states]
        after = rule.update(w, gradient, Pace(rate.cast(w.elem_type), count), *states)
        yield _updated(w, after[0], finite, "parameter", "model")
        for state, following in zip(states, after[1:], strict=True):
            yield _updated(state, following, finite, "state", rule.initial_state)


def _updated(
    before: Value, after: Value, finite: Value | None, role: Role, first: First = 0.0
) -> Transition:
    following = after if finite is None else after.op.Where(finite, after, before)
    return Transition(before, after.op.rename(following, f"{before.name}.next"), role, first)


def clip_by_global_norm(
    op: Builder, gradients: Mapping[str, Value], max_norm: float | None
) -> Mapping[str, Value]:
    """Scale all gradients by one factor if their global 2-norm exceeds ``max_norm`` (if any)."""
    if max_norm is None:
        return gradients
    kinds = {gradient.elem_type for gradient in gradients.values()}
    # Squares of half numbers overflow, and all inputs of Sum must have the same type.
    kind = kinds.pop() if len(kinds) == 1 and kinds.isdisjoint(HALF_TYPES) else TensorProto.FLOAT
    norm = op.Sqrt(sum_of_squares(op, gradients, kind))
    factor = op.Min(max_norm / (norm + _NORM_GUARD), op.scalar(1.0, norm.elem_type))
    return {name: g * factor.cast(g.elem_type) for name, g in gradients.items()}


def sum_of_squares(op: Builder, gradients: Mapping[str, Value], elem_type: int) -> Value:
    """Sum of the squares of all numbers of all gradients, as a tensor [1] of type ``elem_type``."""
    squares = [
        op.ReduceSumSquare(g.cast(elem_type), keepdims=0).reshape(1) for g in gradients.values()
    ]
    return op.Sum(*squares)


def accumulate(op: Builder, gradients: Mapping[str, Value]) -> dict[str, Transition]:
    """Sums of gradients before and after the current micro-batch, by parameter name."""
    sums = {}
    for name, gradient in gradients.items():
        before = op.input(f"{name}.gradient_sum", gradient.shape, gradient.elem_type)
        added = op.rename(before + gradient, f"{before.name}.added")
        sums[name] = Transition(before, added, "state")
    return sums


def reset_to_zero(op: Builder, total: Transition) -> Transition:
    """Set the sum of gradients ``total`` to zero after the last micro-batch."""
    before = total.before
    zeros = op.Expand(op.scalar(0.0, before.elem_type), op.integers(*before.shape))
    return _updated(before, zeros, None, "state")
