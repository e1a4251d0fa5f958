"""Optimizers as a spec declares them; their formulas are PyTorch's and stand in ``autodiff``."""

from __future__ import annotations

from decimal import Decimal
from typing import Annotated, Literal

from pydantic import Field, model_validator

from epochcost.specs.base import NonNegative, Positive, Share, Spec

Below1 = Annotated[Share, Field(lt=1)]


class Sgd(Spec):
    """Plain, heavy-ball or Nesterov stochastic gradient descent."""

    name: Literal["sgd"] = Field(description="The optimizer.")
    learning_rate: Positive = Field(description="The size of a step.", examples=[0.1])
    momentum: Below1 = Field(
        Decimal(0),
        description="The share of the last step that is kept in the next.",
        examples=[0.9],
    )
    nesterov: bool = Field(False, description="Whether the gradient is taken ahead of the step.")
    weight_decay: NonNegative = Field(
        Decimal(0),
        description="The share of a parameter that is added to its gradient.",
        examples=[0.0001],
    )

    @model_validator(mode="after")
    def _momentum_to_look_ahead(self) -> Sgd:
        if self.nesterov and not self.momentum:
            raise ValueError("should have a momentum above 0 with nesterov")
        return self


class RmsProp(Spec):
    """RMSprop: step by the gradient over the root of its running mean square.

    As in PyTorch; TensorFlow 1 adds ``epsilon`` within the root.
    """

    name: Literal["rmsprop"] = Field(description="The optimizer.")
    learning_rate: Positive = Field(
        Decimal("0.001"), description="The size of a step.", examples=[0.001]
    )
    rho: Below1 = Field(
        Decimal("0.9"),
        description="The share of the running mean square that is kept.",
        examples=[0.9],
    )
    epsilon: Positive = Field(
        Decimal("1e-7"),
        description="What is added to the root of the mean square.",
        examples=[1e-07],
    )
    momentum: Below1 = Field(
        Decimal(0),
        description="The share of the last step that is kept in the next.",
        examples=[0.9],
    )
    weight_decay: NonNegative = Field(
        Decimal(0),
        description="The share of a parameter that is added to its gradient.",
        examples=[0.0001],
    )


class Adagrad(Spec):
    """Adagrad: step by the gradient over the root of the sum of its squares."""

    name: Literal["adagrad"] = Field(description="The optimizer.")
    learning_rate: Positive = Field(
        Decimal("0.01"), description="The size of a step.", examples=[0.01]
    )
    epsilon: Positive = Field(
        Decimal("1e-10"),
        description="What is added to the root of the sum of squares.",
        examples=[1e-10],
    )
    initial_accumulator: NonNegative = Field(
        Decimal(0), description="What the sum of squares starts at.", examples=[0.1]
    )
    weight_decay: NonNegative = Field(
        Decimal(0),
        description="The share of a parameter that is added to its gradient.",
        examples=[0.0001],
    )


class Adadelta(Spec):
    """Adadelta: step by the ratio of the running root mean squares of steps and gradients."""

    name: Literal["adadelta"] = Field(description="The optimizer.")
    learning_rate: Positive = Field(
        Decimal(1), description="What the step is multiplied by.", examples=[1]
    )
    rho: Below1 = Field(
        Decimal("0.95"),
        description="The share of the running mean squares that is kept.",
        examples=[0.95],
    )
    epsilon: Positive = Field(
        Decimal("1e-7"), description="What is added to the mean squares.", examples=[1e-07]
    )
    weight_decay: NonNegative = Field(
        Decimal(0),
        description="The share of a parameter that is added to its gradient.",
        examples=[0.0001],
    )


class Adam(Spec):
    """Adam; ``adamw`` shrinks parameters apart from the gradient."""

    name: Literal["adam", "adamw"] = Field(
        description="The optimizer; adamw shrinks parameters apart from the gradient."
    )
    learning_rate: Positive = Field(
        Decimal("0.001"), description="The size of a step.", examples=[0.001]
    )
    beta1: Below1 = Field(
        Decimal("0.9"), description="The share of the running mean that is kept.", examples=[0.9]
    )
    beta2: Below1 = Field(
        Decimal("0.999"),
        description="The share of the running mean square that is kept.",
        examples=[0.999],
    )
    epsilon: Positive = Field(
        Decimal("1e-8"),
        description="What is added to the root of the mean square.",
        examples=[1e-08],
    )
    weight_decay: NonNegative = Field(
        Decimal(0),
        description="The share of a parameter that is taken off, or added to its gradient.",
        examples=[0.01],
    )


Optimizer = Annotated[Sgd | RmsProp | Adagrad | Adadelta | Adam, Field(discriminator="name")]
