"""Settings of trainings; ``onnxstep`` has the formulas of the optimizers, which follow PyTorch."""

from __future__ import annotations

from decimal import Decimal
from typing import Annotated, Literal

from pydantic import Field, model_validator

from epochcost.specs.base import (
    Array,
    Bounded,
    NonNegative,
    Positive,
    PositiveInt,
    Share,
    Spec,
    Text,
    key,
    optional,
)

Below1 = Annotated[Share, Field(lt=1)]
Momentum = Annotated[Below1, key("Share of the last step that is added to the next step.", 0.9)]
WeightDecay = Annotated[NonNegative, key("Share of a parameter added to its gradient.", 0.0001)]
WarmUpSteps = Annotated[int, key("Steps in which the learning rate rises.", 1000, ge=0, le=10**9)]


class Sgd(Spec):
    """Stochastic gradient descent: plain, with momentum, or with Nesterov momentum."""

    name: Literal["sgd"] = key("The optimizer.")
    learning_rate: Positive = key("The size of a step.", 0.1)
    momentum: Momentum = Decimal(0)
    nesterov: bool = key("Whether to use Nesterov's momentum.", default=False)
    weight_decay: WeightDecay = Decimal(0)

    @model_validator(mode="after")
    def _momentum_to_look_ahead(self) -> Sgd:
        if self.nesterov and not self.momentum:
            raise ValueError("should have a momentum above 0 with nesterov")
        return self


class RmsProp(Spec):
    """RMSprop: a step is the gradient divided by the square root of its running mean square.

    As in PyTorch, ``epsilon`` is added to the root. TensorFlow 1 adds ``epsilon`` under the root.
    """

    name: Literal["rmsprop"] = key("The optimizer.")
    learning_rate: Positive = key("The size of a step.", 0.001, default=Decimal("0.001"))
    rho: Below1 = key("Share kept of the running mean square.", 0.9, default=Decimal("0.9"))
    epsilon: Positive = key("Added to the root of the mean square.", 1e-07, default=Decimal("1e-7"))
    momentum: Momentum = Decimal(0)
    weight_decay: WeightDecay = Decimal(0)


class Adagrad(Spec):
    """Adagrad: a step is the gradient divided by the root of the sum of all squared gradients."""

    name: Literal["adagrad"] = key("The optimizer.")
    learning_rate: Positive = key("The size of a step.", 0.01, default=Decimal("0.01"))
    epsilon: Positive = key("Added to the root of the sum of squares.", default=Decimal("1e-10"))
    initial_accumulator: NonNegative = key("Initial sum of squares.", 0.1, default=Decimal(0))
    weight_decay: WeightDecay = Decimal(0)


class Adadelta(Spec):
    """Adadelta: a step is the gradient multiplied by a ratio of two running root mean squares.

    The ratio is the root mean square of earlier steps divided by the root mean square of the
    gradients.
    """

    name: Literal["adadelta"] = key("The optimizer.")
    learning_rate: Positive = key("Factor of the step.", 1, default=Decimal(1))
    rho: Below1 = key("Share kept of the running mean squares.", 0.95, default=Decimal("0.95"))
    epsilon: Positive = key("Added to the mean squares.", 1e-07, default=Decimal("1e-7"))
    weight_decay: WeightDecay = Decimal(0)


class Adam(Spec):
    """Adam. With the name ``adamw``, weight decay changes the parameter, not its gradient."""

    name: Literal["adam", "adamw"] = key(
        "The optimizer; with adamw, weight decay does not change the gradient."
    )
    learning_rate: Positive = key("The size of a step.", 0.001, default=Decimal("0.001"))
    beta1: Below1 = key("Share kept of the running mean.", 0.9, default=Decimal("0.9"))
    beta2: Below1 = key("Share kept of the running mean square.", 0.999, default=Decimal("0.999"))
    epsilon: Positive = key("Added to the root of the mean square.", 1e-08, default=Decimal("1e-8"))
    weight_decay: NonNegative = key(
        "With adam, this share of a parameter is added to its gradient; with adamw, this share "
        "times the learning rate is subtracted from the parameter.",
        0.01,
        default=Decimal(0),
    )


Optimizer = Annotated[Sgd | RmsProp | Adagrad | Adadelta | Adam, Field(discriminator="name")]


LossName = Literal[
    "softmax_cross_entropy", "sigmoid_cross_entropy", "nll", "mse", "l1", "huber", "own_output"
]
_OF_CLASSES = ("softmax_cross_entropy", "nll")
_OF_NUMBERS = ("mse", "l1", "huber")


class Target(Spec):
    """Targets of a loss: class indices in ``[0, classes)``, or numbers in a range.

    ``ignored_share`` is the share of tokens that a masked language model does not predict. Szegedy
    et al. 2015, arXiv 1512.00567, section 7, define ``label_smoothing``.
    """

    classes: Annotated[int, Field(ge=2, le=10**7)] | None = optional(
        "Number of classes; class indices go from 0 to below this number.", 10
    )
    ignored_share: Below1 = key(
        "Share of positions without a class, which the loss ignores.", 0.85, default=Decimal(0)
    )
    label_smoothing: Below1 = key(
        "Share of the target that is spread evenly over the classes.", 0.1, default=Decimal(0)
    )
    low: Bounded | None = optional("Lower end of the target numbers, included.", 0)
    high: Bounded | None = optional("Upper end of the target numbers, excluded.", 1)

    @property
    def softmax_only(self) -> str | None:
        """Name of a key that is set and that only softmax_cross_entropy supports; else None."""
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
    """A loss of one graph output."""

    loss: LossName = key("The loss function.")
    output: Text = key("The graph's output that the loss reads.", "logits")
    target: Target | None = None
    weight: Positive = key("Factor of this loss in the sum of all losses.", 0.3, default=Decimal(1))

    @model_validator(mode="after")
    def _target_of_the_loss(self) -> LossTerm:
        target = self.target
        if self.loss == "own_output":
            if target is not None:
                raise ValueError("should have no target: own_output compares with nothing")
            return self
        if target is None:
            raise ValueError(f"should have a target, which {self.loss} needs")
        if self.loss in _OF_CLASSES and target.classes is None:
            raise ValueError(f"should have a target with classes: {self.loss} needs indices")
        if self.loss != "softmax_cross_entropy" and target.softmax_only is not None:
            raise ValueError(
                f"should have no {target.softmax_only}: only softmax_cross_entropy has it"
            )
        if self.loss == "sigmoid_cross_entropy" and target.classes != 2:
            raise ValueError("should have classes = 2: sigmoid_cross_entropy needs 0 or 1")
        if self.loss in _OF_NUMBERS and target.classes is not None:
            raise ValueError(f"should have a target with low and high: {self.loss} needs numbers")
        return self


class Augmentation(Spec):
    """Random augmentation of the images before each step; a seed makes it repeatable."""

    pad: Annotated[int, Field(ge=0, le=256)] = key(
        "Largest random shift of an image in each direction, in pixels.", 4, default=0
    )
    flip: bool = key("Whether to mirror half of the images left to right.", default=False)


class Constant(Spec):
    """A constant learning rate, after a linear rise over ``warm_up_steps``."""

    name: Literal["constant"] = key("The schedule.")
    warm_up_steps: WarmUpSteps = 0


class Steps(Spec):
    """The optimizer's learning rate times a factor that changes at the start of certain epochs."""

    name: Literal["step"] = key("The schedule.")
    epochs: Annotated[Array[Positive], Field(min_length=1)] = key(
        "The epochs from which the factors apply, ascending.", [82]
    )
    factors: Annotated[Array[NonNegative], Field(min_length=1)] = key(
        "Factors of the optimizer's learning rate, one for each of the epochs.", [0.1]
    )
    warm_up_steps: WarmUpSteps = 0

    @model_validator(mode="after")
    def _one_factor_for_each(self) -> Steps:
        if len(self.epochs) != len(self.factors):
            raise ValueError("should have as many factors as epochs")
        if list(self.epochs) != sorted(set(self.epochs)):
            raise ValueError("should have epochs in growing order")
        return self


class Exponential(Spec):
    """Multiply the learning rate by ``factor`` every ``epochs`` epochs, after a linear rise."""

    name: Literal["exponential"] = key("The schedule.")
    factor: Annotated[Share, Field(gt=0, lt=1)] = key("Factor of the learning rate.", 0.94)
    epochs: Positive = key("Epochs between two multiplications.", 2, default=Decimal(1))
    warm_up_steps: WarmUpSteps = 0


class Falling(Spec):
    """A linear rise of the learning rate, then a fall until the last step.

    The fall follows half a cosine (``cosine``) or a line (``linear``, as in BERT).
    """

    name: Literal["cosine", "linear"] = key("The schedule.")
    warm_up_steps: WarmUpSteps = 0
    final_factor: Share = key("Factor of the rate at the last step.", 0.1, default=Decimal(0))


class InverseSquareRoot(Spec):
    """A linear rise of the learning rate, then a fall with 1 / √step (Vaswani et al. 2017, 5.3)."""

    name: Literal["inverse-square-root"] = key("The schedule.")
    warm_up_steps: PositiveInt = key("Steps in which the learning rate rises.", 4000)


class InverseTime(Spec):
    """The learning rate divided by 1 + ``decay`` × number of updates, as in Keras in 2017."""

    name: Literal["inverse-time"] = key("The schedule.")
    decay: Positive = key("Number that each step adds to the divisor of the learning rate.", 1e-06)


class OnPlateau(Spec):
    """Multiply the learning rate by ``factor`` after an epoch with too little progress.

    The command `train` refuses models with this schedule.
    """

    name: Literal["on-plateau"] = key("The schedule.")
    factor: Annotated[Share, Field(gt=0, lt=1)] = key(
        "Factor of the learning rate after a plateau.", 0.5, default=Decimal("0.5")
    )
    threshold: NonNegative = key(
        "An epoch that improves the measure by no more is a plateau.", default=Decimal(0)
    )
    measure: Literal["perplexity", "loss", "accuracy"] = key(
        "Measure of progress on held-out data.", default="loss"
    )
    minimum_rate: NonNegative = key("Rate below which training ends.", 1e-05, default=Decimal(0))


Schedule = Annotated[
    Constant | Steps | Exponential | Falling | InverseSquareRoot | InverseTime | OnPlateau,
    Field(discriminator="name"),
]
