"""Optimizers as a spec declares them; their formulas are PyTorch's and stand in ``autodiff``."""

from __future__ import annotations

from decimal import Decimal
from typing import Annotated, Literal

from pydantic import Field, model_validator

from epochcost.specs.base import NonNegative, Positive, Share, Spec

Below1 = Annotated[Share, Field(lt=1)]


class Sgd(Spec):
    """Plain, heavy-ball or Nesterov stochastic gradient descent."""

    name: Literal["sgd"]
    learning_rate: Positive
    momentum: Below1 = Decimal(0)
    nesterov: bool = False
    weight_decay: NonNegative = Decimal(0)

    @model_validator(mode="after")
    def _momentum_to_look_ahead(self) -> Sgd:
        if self.nesterov and not self.momentum:
            raise ValueError("should have a momentum above 0 with nesterov")
        return self


class RmsProp(Spec):
    """RMSprop: step by the gradient over the root of its running mean square.

    ``epsilon`` is added to the root, as in PyTorch; TensorFlow 1 adds it within.
    """

    name: Literal["rmsprop"]
    learning_rate: Positive = Decimal("0.001")
    rho: Below1 = Decimal("0.9")
    epsilon: Positive = Decimal("1e-7")
    momentum: Below1 = Decimal(0)
    weight_decay: NonNegative = Decimal(0)


class Adagrad(Spec):
    """Adagrad: step by the gradient over the root of the sum of its squares.

    The sum starts at ``initial_accumulator``.
    """

    name: Literal["adagrad"]
    learning_rate: Positive = Decimal("0.01")
    epsilon: Positive = Decimal("1e-10")
    initial_accumulator: NonNegative = Decimal(0)
    weight_decay: NonNegative = Decimal(0)


class Adadelta(Spec):
    """Adadelta: step by the ratio of the running root mean squares of steps and gradients."""

    name: Literal["adadelta"]
    learning_rate: Positive = Decimal(1)
    rho: Below1 = Decimal("0.95")
    epsilon: Positive = Decimal("1e-7")
    weight_decay: NonNegative = Decimal(0)


class Adam(Spec):
    """Adam; ``adamw`` shrinks parameters apart from the gradient."""

    name: Literal["adam", "adamw"]
    learning_rate: Positive = Decimal("0.001")
    beta1: Below1 = Decimal("0.9")
    beta2: Below1 = Decimal("0.999")
    epsilon: Positive = Decimal("1e-8")
    weight_decay: NonNegative = Decimal(0)


Optimizer = Annotated[Sgd | RmsProp | Adagrad | Adadelta | Adam, Field(discriminator="name")]
