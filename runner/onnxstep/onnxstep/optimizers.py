"""Optimizers: ONNX nodes that compute the next value of a parameter and of its states.

Formulas and defaults are those of torch.optim. w is the parameter, g its gradient, and a prime
marks the next value. ``weight_decay`` adds weight_decay · w to the gradient, except in AdamW.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, ClassVar, Self

from onnx import TensorProto

from onnxstep.builder import Builder, Value


@dataclass(frozen=True)
class Update:
    """The next value of a parameter, and of its states in the order of ``Optimizer.states``."""

    parameter: Value
    states: tuple[Value, ...] = ()


@dataclass(frozen=True)
class Pace:
    """Scalar learning rate, in the parameter's type, and step count of an update.

    ``count`` is a float64 scalar, 1 in the first step, or None if the optimizer counts no steps.
    """

    rate: Value
    count: Value | None = None


class Optimizer:
    """Base class of update rules, which compute the next parameter and states from a gradient.

    ``counts_steps`` says whether the update rule needs the step count.
    """

    counts_steps: ClassVar[bool] = False

    @property
    def states(self) -> tuple[str, ...]:
        """Names of the states of each parameter; a state has the parameter's shape."""
        return ()

    @property
    def initial_state(self) -> float:
        """The number that fills all states before the first step."""
        return 0.0

    def update(self, op: Builder, w: Value, gradient: Value, pace: Pace, *states: Value) -> Update:
        """Emit the nodes that compute the next value of the parameter ``w`` and of its states."""
        raise NotImplementedError

    def undecayed(self) -> Self:
        """The same update rule without weight decay."""
        rule: Any = self
        undecayed: Self = replace(rule, weight_decay=0.0)
        return undecayed


@dataclass(frozen=True)
class Sgd(Optimizer):
    """Gradient descent on a parameter w with gradient g: w' = w - rate · g."""

    weight_decay: float = 0.0

    def update(self, op: Builder, w: Value, gradient: Value, pace: Pace, *_: Value) -> Update:
        """Emit the next values of ``w`` and of its states."""
        g = _decayed(w, gradient, self.weight_decay)
        return Update(op.Sub(w, g * pace.rate))


@dataclass(frozen=True)
class Momentum(Optimizer):
    """Gradient descent with a velocity v: v' = momentum · v + g; w' = w - rate · v'.

    With ``nesterov``: w' = w - rate · (g + momentum · v').
    """

    momentum: float = 0.9
    nesterov: bool = False
    weight_decay: float = 0.0
    states: ClassVar[tuple[str, ...]] = ("momentum",)

    def update(self, op: Builder, w: Value, gradient: Value, pace: Pace, *states: Value) -> Update:
        """Emit the next values of ``w`` and of its states."""
        g = _decayed(w, gradient, self.weight_decay)
        velocity = op.Add(states[0] * self.momentum, g)
        direction = g + velocity * self.momentum if self.nesterov else velocity
        return Update(w - direction * pace.rate, (velocity,))


@dataclass(frozen=True)
class RmsProp(Optimizer):
    """Divide the gradient g by the root of s, the running average of squared gradients.

    s' = rho · s + (1 - rho) · g²; d = g / (√s' + epsilon); w' = w - rate · d. With ``momentum``: v'
    = momentum · v + d; w' = w - rate · v'. The stored states are s / (1 - rho) and v · √(1 - rho).
    """

    rho: float = 0.99
    epsilon: float = 1e-8
    momentum: float = 0.0
    weight_decay: float = 0.0

    @property
    def states(self) -> tuple[str, ...]:
        """Names of the mean squared gradient and, unless ``momentum`` is 0, of the velocity."""
        return ("square_average", "momentum") if self.momentum else ("square_average",)

    def update(self, op: Builder, w: Value, gradient: Value, pace: Pace, *states: Value) -> Update:
        """Emit the next values of ``w`` and of its states."""
        g = _decayed(w, gradient, self.weight_decay)
        # The states are scaled to save a pass over memory. TensorFlow 1 differs: epsilon is under
        # the root, s starts at 1, and v includes the rate.
        square = op.Add(states[0] * self.rho, g * g)
        root = math.sqrt(1 - self.rho)
        direction, rate = g / (op.Sqrt(square) + self.epsilon / root), pace.rate * (1 / root)
        if not self.momentum:
            return Update(w - direction * rate, (square,))
        velocity = op.Add(states[1] * self.momentum, direction)
        return Update(w - velocity * rate, (square, velocity))


@dataclass(frozen=True)
class Adagrad(Optimizer):
    """Divide the gradient g by the root of s, the sum of all squared gradients.

    s' = s + g²; w' = w - rate · g / (√s' + epsilon). s starts at ``initial_accumulator``.
    """

    epsilon: float = 1e-10
    initial_accumulator: float = 0.0
    weight_decay: float = 0.0
    states: ClassVar[tuple[str, ...]] = ("square_sum",)

    @property
    def initial_state(self) -> float:
        """The first value of the sum of squared gradients."""
        return self.initial_accumulator

    def update(self, op: Builder, w: Value, gradient: Value, pace: Pace, *states: Value) -> Update:
        """Emit the next values of ``w`` and of its states."""
        g = _decayed(w, gradient, self.weight_decay)
        square = op.Add(states[0], g * g)
        return Update(w - g / (op.Sqrt(square) + self.epsilon) * pace.rate, (square,))


@dataclass(frozen=True)
class Adadelta(Optimizer):
    """Scale the gradient g by the ratio of two root mean squares: of past changes and of g.

    s' = rho · s + (1 - rho) · g²; d = √((u + epsilon) / (s' + epsilon)) · g; u' = rho · u + (1 -
    rho) · d²; w' = w - rate · d.
    """

    rho: float = 0.9
    epsilon: float = 1e-6
    weight_decay: float = 0.0
    states: ClassVar[tuple[str, ...]] = ("square_average", "accumulated_delta")

    def update(self, op: Builder, w: Value, gradient: Value, pace: Pace, *states: Value) -> Update:
        """Emit the next values of ``w`` and of its states."""
        g = _decayed(w, gradient, self.weight_decay)
        squares, deltas = states
        square = op.Add(squares * self.rho, g * g * (1 - self.rho))
        delta = op.Sqrt((deltas + self.epsilon) / (square + self.epsilon)) * g
        moved = op.Add(deltas * self.rho, delta * delta * (1 - self.rho))
        return Update(w - delta * pace.rate, (square, moved))


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
    weight_decay: float = 0.0
    decoupled: bool = False
    states: ClassVar[tuple[str, ...]] = ("first_moment", "second_moment")
    counts_steps: ClassVar[bool] = True

    def update(self, op: Builder, w: Value, gradient: Value, pace: Pace, *states: Value) -> Update:
        """Emit the next values of ``w`` and of its states."""
        g = gradient if self.decoupled else _decayed(w, gradient, self.weight_decay)
        # The states are scaled to save two passes over memory.
        first = op.Add(states[0] * self.beta1, g)
        second = op.Add(states[1] * self.beta2, g * g)
        # The quotient is (m' / c₁) / (√v' / c + epsilon), with bias corrections c₁ and c.
        # Multiplying both parts by c saves a pass over memory.
        c = op.Sqrt(_bias_correction(op, self.beta2, pace, w.elem_type) * (1 / (1 - self.beta2)))
        spread = op.Sqrt(second) + c * self.epsilon
        c_1 = _bias_correction(op, self.beta1, pace, w.elem_type) * (1 / (1 - self.beta1))
        length = pace.rate * c / c_1
        # AdamW's decay multiplies the parameter instead of changing the gradient.
        decayed = (
            w * (1.0 - pace.rate * self.weight_decay) if self.decoupled and self.weight_decay else w
        )
        return Update(decayed - first / spread * length, (first, second))


def _bias_correction(op: Builder, beta: float, pace: Pace, elem_type: int) -> Value:
    assert pace.count is not None, "an optimizer that counts steps needs the count"
    # At step t, the correction is 1 - betaᵗ. In float32, it would lose most digits.
    power = op.Pow(op.scalar(beta, TensorProto.DOUBLE), pace.count)
    return op.Cast(1.0 - power, to=elem_type)


def _decayed(w: Value, gradient: Value, weight_decay: float) -> Value:
    return gradient + w * weight_decay if weight_decay else gradient


OPTIMIZERS: Mapping[str, Optimizer] = MappingProxyType(
    {
        "sgd": Sgd(),
        "momentum": Momentum(),
        "nesterov": Momentum(nesterov=True),
        "rmsprop": RmsProp(),
        "adagrad": Adagrad(),
        "adadelta": Adadelta(),
        "adam": Adam(),
        "adamw": Adam(weight_decay=0.01, decoupled=True),
    }
)
