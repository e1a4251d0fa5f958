"""Models: an ONNX file, what goes into it, and how it is trained and served."""

from __future__ import annotations

from decimal import Decimal
from typing import Annotated, Literal

from pydantic import Field, model_validator

from epochcost.specs.base import (
    DISTINCT,
    FROM_LIST,
    Bounded,
    NamedSpec,
    NonNegative,
    Positive,
    PositiveInt,
    Share,
    Source,
    Spec,
    Text,
    Unconfirmed,
    distinct,
    matching,
)

BatchSizes = Annotated[tuple[PositiveInt, ...], FROM_LIST, Field(min_length=1), DISTINCT]
GraphFile = Annotated[
    str,
    matching(
        r"[A-Za-z0-9][A-Za-z0-9._-]*\.onnx",
        "the name of an .onnx file in the folder models/, without a path",
    ),
]


class Input(Spec):
    """A graph input and the values it takes: a range for floats, ``[0, high)`` for integers."""

    name: Text
    low: Bounded = Decimal(0)
    high: Bounded = Decimal(1)

    @model_validator(mode="after")
    def _range_not_empty(self) -> Input:
        if self.low >= self.high:
            raise ValueError("should have low below high")
        return self


class Target(Spec):
    """What the loss compares the output with: class indices ``[0, classes)``."""

    classes: Annotated[int, Field(ge=2, le=10**7)]


class Sgd(Spec):
    """Plain or heavy-ball stochastic gradient descent."""

    name: Literal["sgd"]
    learning_rate: Positive
    momentum: Annotated[Share, Field(lt=1)] = Decimal(0)


class RmsProp(Spec):
    """RMSprop: step by the gradient over the root of its running mean square."""

    name: Literal["rmsprop"]
    learning_rate: Positive = Decimal("0.001")
    rho: Annotated[Share, Field(lt=1)] = Decimal("0.9")
    epsilon: Positive = Decimal("1e-7")


class Adadelta(Spec):
    """Adadelta: step by the ratio of the running root mean squares of steps and gradients."""

    name: Literal["adadelta"]
    learning_rate: Positive = Decimal(1)
    rho: Annotated[Share, Field(lt=1)] = Decimal("0.95")
    epsilon: Positive = Decimal("1e-7")


Optimizer = Annotated[Sgd | RmsProp | Adadelta, Field(discriminator="name")]


class Training(Spec):
    """How the source trains the model; an epoch is ``examples_per_epoch // batch`` steps."""

    loss: Literal["softmax_cross_entropy"]
    output: Text
    target: Target
    optimizer: Optimizer
    batch_sizes: BatchSizes
    examples_per_epoch: PositiveInt
    epochs: PositiveInt


class Inference(Spec):
    """The batch sizes at which the model is served."""

    batch_sizes: BatchSizes


class Model(NamedSpec):
    """One model; ``graph`` is a file in the folder ``models/``.

    ``example`` says what one example is; ``accuracy_percent`` is what the source reports on its own
    data after all epochs.
    """

    name: Text
    task: Text
    example: Text
    graph: GraphFile
    inputs: Annotated[
        tuple[Input, ...], FROM_LIST, Field(min_length=1), distinct(lambda declared: declared.name)
    ]
    training: Training | None = None
    inference: Inference | None = None
    accuracy_percent: Annotated[NonNegative, Field(le=100)] | None = None
    source: Source
    notes: Text | None = None
    unconfirmed: Unconfirmed = ()
