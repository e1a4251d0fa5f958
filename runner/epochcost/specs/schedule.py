"""Learning-rate schedules as data: a factor on the optimizer's rate, by step or epoch.

What the factor is at a step is computed in ``train.schedule``.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Annotated, Literal

from pydantic import Field, model_validator

from epochcost.specs.base import FROM_LIST, NonNegative, Positive, PositiveInt, Share, Spec


class Constant(Spec):
    """The optimizer's own rate, after ``warm_up_steps`` of linear growth."""

    name: Literal["constant"] = Field(description="The schedule.")
    warm_up_steps: Annotated[int, Field(ge=0, le=10**9)] = Field(
        0, description="Steps of linear growth at the start.", examples=[1000]
    )


class Steps(Spec):
    """From each of the epochs on, the factor in its place times the optimizer's rate."""

    name: Literal["step"] = Field(description="The schedule.")
    epochs: Annotated[tuple[Positive, ...], FROM_LIST, Field(min_length=1)] = Field(
        description="The epochs from which on each factor holds, in growing order.", examples=[[82]]
    )
    factors: Annotated[tuple[NonNegative, ...], FROM_LIST, Field(min_length=1)] = Field(
        description="What the optimizer's rate is multiplied by from each of the epochs on.",
        examples=[[0.1]],
    )
    warm_up_steps: Annotated[int, Field(ge=0, le=10**9)] = Field(
        0, description="Steps of linear growth at the start.", examples=[1000]
    )

    @model_validator(mode="after")
    def _one_factor_for_each(self) -> Steps:
        if len(self.epochs) != len(self.factors):
            raise ValueError("should have as many factors as epochs")
        if list(self.epochs) != sorted(set(self.epochs)):
            raise ValueError("should have epochs in growing order")
        return self


class Exponential(Spec):
    """Times ``factor`` after every ``epochs``, all at once; linear growth apart from that."""

    name: Literal["exponential"] = Field(description="The schedule.")
    factor: Annotated[Share, Field(gt=0, lt=1)] = Field(
        description="What the rate is multiplied by each time.", examples=[0.94]
    )
    epochs: Positive = Field(Decimal(1), description="Epochs between two times.", examples=[2])
    warm_up_steps: Annotated[int, Field(ge=0, le=10**9)] = Field(
        0, description="Steps of linear growth at the start.", examples=[1000]
    )


class Cosine(Spec):
    """Linear growth, then half a cosine down to ``final_factor`` at the last step."""

    name: Literal["cosine"] = Field(description="The schedule.")
    warm_up_steps: Annotated[int, Field(ge=0, le=10**9)] = Field(
        0, description="Steps of linear growth at the start.", examples=[1000]
    )
    final_factor: Share = Field(
        Decimal(0),
        description="The share of the rate that is left at the last step.",
        examples=[0.1],
    )


class Linear(Spec):
    """Linear growth, then a line down to ``final_factor`` at the last step, as BERT's."""

    name: Literal["linear"] = Field(description="The schedule.")
    warm_up_steps: Annotated[int, Field(ge=0, le=10**9)] = Field(
        0, description="Steps of linear growth at the start.", examples=[10000]
    )
    final_factor: Share = Field(
        Decimal(0), description="The share of the rate that is left at the last step.", examples=[0]
    )


class InverseSquareRoot(Spec):
    """Linear growth, then with the inverse root of the step (Vaswani et al. 2017, section 5.3)."""

    name: Literal["inverse-square-root"] = Field(description="The schedule.")
    warm_up_steps: PositiveInt = Field(
        description="Steps of linear growth at the start.", examples=[4000]
    )


class InverseTime(Spec):
    """1 / (1 + decay × step), Keras's ``decay`` of 2017."""

    name: Literal["inverse-time"] = Field(description="The schedule.")
    decay: Positive = Field(
        description="What a step adds to the divisor of the rate.", examples=[1e-06]
    )


class OnPlateau(Spec):
    """Multiply by ``factor`` after an epoch whose held-out measure fell by at most ``threshold``.

    ``factor`` 0.5 is "halve on plateau"; training ends below ``minimum_rate``.
    """

    name: Literal["on-plateau"] = Field(description="The schedule.")
    factor: Annotated[Share, Field(gt=0, lt=1)] = Field(
        Decimal("0.5"), description="What the rate is multiplied by on a plateau.", examples=[0.5]
    )
    threshold: NonNegative = Field(
        Decimal(0),
        description="How far the measure must fall in an epoch to be no plateau.",
        examples=[0],
    )
    measure: Literal["perplexity", "loss", "accuracy"] = Field(
        "loss", description="What is measured on held-out data."
    )
    minimum_rate: NonNegative = Field(
        Decimal(0), description="The learning rate below which training ends.", examples=[1e-05]
    )


Schedule = Annotated[
    Constant | Steps | Exponential | Cosine | Linear | InverseSquareRoot | InverseTime | OnPlateau,
    Field(discriminator="name"),
]
