"""Optimizers: ONNX nodes that compute the next value of a parameter and of its states.

Formulas and defaults are those of torch.optim. w is the parameter, g its gradient, and a prime
marks the next value. ``weight_decay`` adds weight_decay · w to the gradient, except in AdamW.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from onnx import TensorProto

from onnxstep.builder import Value


@dataclass(frozen=True)
class Pace:
    """Scalar learning rate, in the parameter's type, and step count of an update.

    ``count`` is a float64 scalar, 1 in the first step, or None if the optimizer counts no steps.
    """

    rate: Value
    count: Value | None = None


@dataclass(frozen=True)
class Optimizer:
    """Base class of update rules, which compute the next parameter and states from a gradient.

    ``counts_steps`` says whether the update rule needs the step count.
    """

    weight_decay: float = field(default=0.0, kw_only=True)
    counts_steps: ClassVar[bool] = False

    @property
    def states(self) -> tuple[str, ...]:
        """Names of the states of each parameter; a state has the parameter's shape."""
        return ()

    @property
    def initial_state(self) -> float:
        """The number that fills all states before the first step."""
        return 0.0

    def update(self, w: Value, gradient: Value, pace: Pace, *states: Value) -> Sequence[Value]:
        """Emit the next value of the parameter ``w``, then those of its ``states``."""
        raise NotImplementedError


@dataclass(frozen=True)
class Sgd(Optimizer):
    """Gradient descent on a parameter w with gradient g: w' = w - rate · g."""

    def update(self, w: Value, gradient: Value, pace: Pace, *_: Value) -> Sequence[Value]:
        """Emit the next values of ``w`` and of its states."""
        g = _decayed(w, gradient, self.weight_decay)
        return [w - g * pace.rate]


@dataclass(frozen=True)
class Momentum(Optimizer):
    """Gradient descent with a velocity v: v' = momentum · v + g; w' = w - rate · v'.

    With ``nesterov``: w' = w - rate · (g + momentum · v').
    """

    momentum: float = 0.9
    nesterov: bool = False
    states: ClassVar[tuple[str, ...]] = ("momentum",)

    def update(self, w: Value, gradient: Value, pace: Pace, *states: Value) -> Sequence[Value]:
        """Emit the next values of ``w`` and of its states."""
        g = _decayed(w, gradient, self.weight_decay)
        velocity = states[0] * self.momentum + g
        direction = g + velocity * self.momentum if self.nesterov else velocity
        return w - direction * pace.rate, velocity


@dataclass(frozen=True)
class RmsProp(Optimizer):
    """Divide the gradient g by the root of s, the running average of squared gradients.

    s' = rho · s + (1 - rho) · g²; d = g / (√s' + epsilon); w' = w - rate · d. With ``momentum``: v'
    = momentum · v + d; w' = w - rate · v'. The stored states are s / (1 - rho) and v · √(1 - rho).
    """

    rho: float = 0.99
    epsilon: float = 1e-8
    momentum: float = 0.0

    @property
    def states(self) -> tuple[str, ...]:
        """Names of the mean squared gradient and, unless ``momentum`` is 0, of the velocity."""
        return ("square_average", "momentum") if self.momentum else ("square_average",)

    def update(self, w: Value, gradient: Value, pace: Pace, *states: Value) -> Sequence[Value]:
        """Emit the next values of ``w`` and of its states."""
        g = _decayed(w, gradient, self.weight_decay)
        # The states are scaled to save a pass over memory. TensorFlow 1 differs: epsilon is under
        # the root, s starts at 1, and v includes the rate.
        square = states[0] * self.rho + g * g
        root = math.sqrt(1 - self.rho)
        direction, rate = g / (w.op.Sqrt(square) + self.epsilon / root), pace.rate * (1 / root)
        if not self.momentum:
            return w - direction * rate, square
        velocity = states[1] * self.momentum + direction
        return w - velocity * rate, square, velocity


@dataclass(frozen=True)
class Adagrad(Optimizer):
    """Divide the gradient g by the root of s, the sum of all squared gradients.

    s' = s + g²; w' = w - rate · g / (√s' + epsilon). s starts at ``initial_accumulator``.
    """

    epsilon: float = 1e-10
    initial_accumulator: float = 0.0
    states: ClassVar[tuple[str, ...]] = ("square_sum",)

    @property
    def initial_state(self) -> float:
        """The first value of the sum of squared gradients."""
        return self.initial_accumulator

    def update(self, w: Value, gradient: Value, pace: Pace, *states: Value) -> Sequence[Value]:
        """Emit the next values of ``w`` and of its states."""
        g = _decayed(w, gradient, self.weight_decay)
        square = states[0] + g * g
        return w - g / (w.op.Sqrt(square) + self.epsilon) * pace.rate, square


@dataclass(frozen=True)
class Adadelta(Optimizer):
    """Scale the gradient g by the ratio of two root mean squares: of past changes and of g.

    s' = rho · s + (1 - rho) · g²; d = √((u + epsilon) / (s' + epsilon)) · g; u' = rho · u + (1 -
    rho) · d²; w' = w - rate · d.
    """

    rho: float = 0.9
    epsilon: float = 1e-6
    states: ClassVar[tuple[str, ...]] = ("square_average", "accumulated_delta")

    def update(self, w: Value, gradient: Value, pace: Pace, *states: Value) -> Sequence[Value]:
        """Emit the next values of ``w`` and of its states."""
        g = _decayed(w, gradient, self.weight_decay)
        squares, deltas = states
        square = squares * self.rho + g * g * (1 - self.rho)
        delta = w.op.Sqrt((deltas + self.epsilon) / (square + self.epsilon)) * g
        moved = deltas * self.rho + delta * delta * (1 - self.rho)
        return w - delta * pace.rate, square, moved


@dataclass(frozen=True)
class Adam(Optimizer):
    """Divide the average gradient m by the root of v, the average squared gradient.

    m' = β₁ m + (1 - β₁) g; v' = β₂ v + (1 - β₂) g²;

    w' = w - rate / (1 - β₁ᵗ) · m' / (√v' / √(1 - β₂ᵗ) + epsilon) at step t.

    ``decoupled`` makes this AdamW. The stored states are m / (1 - β₁) and v / (1 - β₂).
    """

    beta1: float = 0.9
    beta2: float = 0.999
    epsilon: float = 1e-8
    decoupled: bool = False
    states: ClassVar[tuple[str, ...]] = ("first_moment", "second_moment")
    counts_steps: ClassVar[bool] = True

    def update(self, w: Value, gradient: Value, pace: Pace, *states: Value) -> Sequence[Value]:
        """Emit the next values of ``w`` and of its states."""
        op = w.op
        g = gradient if self.decoupled else _decayed(w, gradient, self.weight_decay)
        # The states are scaled to save two passes over memory.
        first = states[0] * self.beta1 + g
        second = states[1] * self.beta2 + g * g
        # The quotient is (m' / c₁) / (√v' / c + epsilon), with bias corrections c₁ and c.
        # Multiplying both parts by c saves a pass over memory.
        c = op.Sqrt(_bias_correction(self.beta2, pace, w) * (1 / (1 - self.beta2)))
        spread = op.Sqrt(second) + c * self.epsilon
        c_1 = _bias_correction(self.beta1, pace, w) * (1 / (1 - self.beta1))
        length = pace.rate * c / c_1
        # AdamW's decay multiplies the parameter instead of changing the gradient.
        decayed = (
            w * (1.0 - pace.rate * self.weight_decay) if self.decoupled and self.weight_decay else w
        )
        return decayed - first / spread * length, first, second


def _bias_correction(beta: float, pace: Pace, w: Value) -> Value:
    assert pace.count is not None, "an optimizer that counts steps needs the count"
    # At step t, the correction is 1 - betaᵗ. In float32, it would lose most digits.
    power = w.op.Pow(w.op.scalar(beta, TensorProto.DOUBLE), pace.count)
    return w.op.Cast(1.0 - power, to=w.elem_type)


def _decayed(w: Value, gradient: Value, weight_decay: float) -> Value:
    return gradient + w * weight_decay if weight_decay else gradient


OPTIMIZERS: Mapping[str, Optimizer] = {
    "sgd": Sgd(),
    "momentum": Momentum(),
    "nesterov": Momentum(nesterov=True),
    "rmsprop": RmsProp(),
    "adagrad": Adagrad(),
    "adadelta": Adadelta(),
    "adam": Adam(),
    "adamw": Adam(weight_decay=0.01, decoupled=True),
}
