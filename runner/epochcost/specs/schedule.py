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

    name: Literal["constant"]
    warm_up_steps: Annotated[int, Field(ge=0, le=10**9)] = 0


class Steps(Spec):
    """From the epoch ``epochs[i]`` on, the rate is ``factors[i]`` times the optimizer's."""

    name: Literal["step"]
    epochs: Annotated[tuple[Positive, ...], FROM_LIST, Field(min_length=1)]
    factors: Annotated[tuple[NonNegative, ...], FROM_LIST, Field(min_length=1)]
    warm_up_steps: Annotated[int, Field(ge=0, le=10**9)] = 0

    @model_validator(mode="after")
    def _one_factor_for_each(self) -> Steps:
        if len(self.epochs) != len(self.factors):
            raise ValueError("should have as many factors as epochs")
        if list(self.epochs) != sorted(set(self.epochs)):
            raise ValueError("should have epochs in growing order")
        return self


class Exponential(Spec):
    """Times ``factor`` after every ``epochs``, all at once; linear growth apart from that."""

    name: Literal["exponential"]
    factor: Annotated[Share, Field(gt=0, lt=1)]
    epochs: Positive = Decimal(1)
    warm_up_steps: Annotated[int, Field(ge=0, le=10**9)] = 0


class Cosine(Spec):
    """Linear growth, then half a cosine down to ``final_factor`` at the last step."""

    name: Literal["cosine"]
    warm_up_steps: Annotated[int, Field(ge=0, le=10**9)] = 0
    final_factor: Share = Decimal(0)


class Linear(Spec):
    """Linear growth, then a line down to ``final_factor`` at the last step, as BERT's."""

    name: Literal["linear"]
    warm_up_steps: Annotated[int, Field(ge=0, le=10**9)] = 0
    final_factor: Share = Decimal(0)


class InverseSquareRoot(Spec):
    """Linear growth, then with the inverse root of the step (Vaswani et al. 2017, section 5.3)."""

    name: Literal["inverse-square-root"]
    warm_up_steps: PositiveInt


class InverseTime(Spec):
    """1 / (1 + decay × step), Keras's ``decay`` of 2017."""

    name: Literal["inverse-time"]
    decay: Positive


class OnPlateau(Spec):
    """Multiply by ``factor`` after an epoch whose held-out measure fell by at most ``threshold``.

    ``factor`` 0.5 is "halve on plateau"; training ends below ``minimum_rate``.
    """

    name: Literal["on-plateau"]
    factor: Annotated[Share, Field(gt=0, lt=1)] = Decimal("0.5")
    threshold: NonNegative = Decimal(0)
    measure: Literal["perplexity", "loss", "accuracy"] = "loss"
    minimum_rate: NonNegative = Decimal(0)


Schedule = Annotated[
    Constant | Steps | Exponential | Cosine | Linear | InverseSquareRoot | InverseTime | OnPlateau,
    Field(discriminator="name"),
]
