"""Dynamic loss scaling: gradients of fp16 that neither vanish nor overflow for long.

The loss is multiplied by a scale before it is differentiated and the gradients are divided by it.
A step whose gradients are not all finite changes nothing but the scale, which is carried from step
to step as optimizer state is.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from onnx import TensorProto

from epochcost.autodiff.builder import Builder, Value
from epochcost.autodiff.mixed import Precision
from epochcost.autodiff.update import Move

SCALE = "loss_scale"
GOOD_STEPS = "loss_scale.good_steps"
_FLOAT = TensorProto.FLOAT
# The largest power of two in float32: twice that is infinite.
_LARGEST = 2.0**127


@dataclass(frozen=True)
class LossScaling:
    """How the scale moves; the defaults are those of PyTorch's ``torch.amp.GradScaler``.

    A bad step multiplies it by ``backoff``, ``growth_interval`` good ones in a row by ``growth``.
    """

    initial: float = 2.0**16
    growth: float = 2.0
    backoff: float = 0.5
    growth_interval: int = 2000


def scale_of(op: Builder, precision: Precision, scaling: LossScaling | None) -> Scale | None:
    """The scale of a step's loss; None where none is needed: fp32 and bf16 have range enough.

    ``scaling`` None is PyTorch's for fp16.
    """
    if precision != "fp16" and scaling is None:
        return None
    return Scale(op, scaling or LossScaling())


class Scale:
    """The scale of one step, a float32 scalar that is carried, and what hangs on it."""

    def __init__(self, op: Builder, scaling: LossScaling) -> None:
        self._op, self._scaling = op, scaling
        self.before = op.input(SCALE, (), _FLOAT)
        self._good_steps = op.input(GOOD_STEPS, (), _FLOAT)

    def scaled(self, cotangents: Mapping[str, Value]) -> dict[str, Value]:
        """Cotangents of the scaled loss."""
        return {name: value * self.before for name, value in cotangents.items()}

    def unscaled(self, gradients: Mapping[str, Value]) -> dict[str, Value]:
        """Gradients of the loss itself, from those of the scaled loss."""
        inverse = 1.0 / self.before
        return {name: gradient * inverse for name, gradient in gradients.items()}

    def moves(self, finite: Value) -> Iterator[Move]:
        """The next scale and the count of good steps; ``finite``: this step was one."""
        op, said = self._op, self._scaling
        count = self._good_steps + 1.0
        grows = op.Equal(count, op.scalar(said.growth_interval, _FLOAT))
        grown = op.Min(self.before * said.growth, op.scalar(_LARGEST, _FLOAT))
        good = op.Where(grows, grown, self.before)
        scale = op.Where(finite, good, self.before * said.backoff)
        reset = op.scalar(0.0, _FLOAT)
        steps = op.Where(finite, op.Where(grows, reset, count), reset)
        yield Move(self.before, op.rename(scale, f"{SCALE}.next"), "state", said.initial)
        yield Move(self._good_steps, op.rename(steps, f"{GOOD_STEPS}.next"), "state")


def all_finite(op: Builder, gradients: Mapping[str, Value]) -> Value:
    """Whether every number of the gradients is finite: a bool scalar.

    The sum of all squares is below infinity just then (it does not overflow by itself below 1e19),
    and a norm for clipping takes the same squares.
    """
    squares = [
        op.Reshape(op.ReduceSumSquare(g, keepdims=0), op.integers(1)) for g in gradients.values()
    ]
    total = op.Reshape(op.Sum(*squares), op.constant(np.zeros(0, np.int64)))
    return op.Less(total, op.scalar(np.inf, total.elem_type))
