"""Losses and the targets that they compare outputs with, as a spec declares them."""

from __future__ import annotations

from decimal import Decimal
from typing import Annotated, Literal

from pydantic import Field, model_validator

from epochcost.specs.base import Bounded, Positive, Share, Spec, Text

LossName = Literal[
    "softmax_cross_entropy", "sigmoid_cross_entropy", "nll", "mse", "l1", "huber", "own_output"
]
_OF_CLASSES = ("softmax_cross_entropy", "nll")
_OF_NUMBERS = ("mse", "l1", "huber")


class Target(Spec):
    """What a loss compares an output with: class indices ``[0, classes)``, or numbers in a range.

    A masked language model is not asked for the tokens of ``ignored_share``. ``label_smoothing`` is
    of Szegedy et al. 2015, arXiv 1512.00567, section 7.
    """

    classes: Annotated[int, Field(ge=2, le=10**7)] | None = Field(
        None, description="Class indices lie from 0 to below this number.", examples=[10]
    )
    ignored_share: Annotated[Share, Field(lt=1)] = Field(
        Decimal(0),
        description="The share of positions that hold no class and do not count.",
        examples=[0.85],
    )
    label_smoothing: Annotated[Share, Field(lt=1)] = Field(
        Decimal(0),
        description="The share of the target that is spread evenly over the classes.",
        examples=[0.1],
    )
    low: Bounded | None = Field(
        None, description="The lowest number that the output is compared with.", examples=[0]
    )
    high: Bounded | None = Field(
        None,
        description="What the numbers that the output is compared with stay below.",
        examples=[1],
    )

    @property
    def softmax_only(self) -> str | None:
        """The key of a setting that only softmax_cross_entropy has; None without one."""
        return next(
            (key for key in ("ignored_share", "label_smoothing") if getattr(self, key)), None
        )

    @model_validator(mode="after")
    def _classes_or_range(self) -> Target:
        ranged = self.low is not None and self.high is not None
        if (self.classes is not None) == ranged or (self.low is None) != (self.high is None):
            raise ValueError("should have either classes, or low and high")
        if self.low is not None and self.high is not None and self.low >= self.high:
            raise ValueError("should have low below high")
        return self


class LossTerm(Spec):
    """A loss of one output; a step minimises the sum of its terms, each times its ``weight``."""

    loss: LossName = Field(description="How the output is compared with its target.")
    output: Text = Field(description="The graph's output that the loss reads.", examples=["logits"])
    target: Target | None = None
    weight: Positive = Field(
        Decimal(1), description="What the term is multiplied by in the sum.", examples=[0.3]
    )

    @model_validator(mode="after")
    def _target_of_the_loss(self) -> LossTerm:
        target = self.target
        if self.loss == "own_output":
            if target is not None:
                raise ValueError("should have no target: own_output compares with nothing")
            return self
        if target is None:
            raise ValueError(f"should have a target, which {self.loss} compares the output with")
        if self.loss in _OF_CLASSES and target.classes is None:
            raise ValueError(f"should have a target with classes: {self.loss} demands indices")
        if self.loss != "softmax_cross_entropy" and target.softmax_only is not None:
            raise ValueError(
                f"should have no {target.softmax_only}: only softmax_cross_entropy has it"
            )
        if self.loss == "sigmoid_cross_entropy" and target.classes != 2:
            raise ValueError("should have classes = 2: sigmoid_cross_entropy demands 0 or 1")
        if self.loss in _OF_NUMBERS and target.classes is not None:
            raise ValueError(f"should have a target with low and high: {self.loss} demands numbers")
        return self
