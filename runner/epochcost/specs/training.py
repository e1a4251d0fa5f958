"""Settings of trainings as specs declare them: loss and targets, optimizer, learning rates.

``onnxstep`` has the formulas of the optimizers, which follow PyTorch; ``train.schedule`` computes
the factor of a schedule at each step.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Annotated, Literal

from pydantic import Field, model_validator

from epochcost.specs.base import (
    FROM_LIST,
    Bounded,
    NonNegative,
    Positive,
    PositiveInt,
    Share,
    Spec,
    Text,
)

Below1 = Annotated[Share, Field(lt=1)]
Momentum = Annotated[
    Below1,
    Field(description="Share of the last step in the next step.", examples=[0.9]),
]
WeightDecay = Annotated[
    NonNegative,
    Field(description="Share of a parameter added to its gradient.", examples=[0.0001]),
]
WarmUpSteps = Annotated[
    int,
    Field(ge=0, le=10**9, description="Steps of linear growth at the start.", examples=[1000]),
]


class Sgd(Spec):
    """Stochastic gradient descent: plain, with momentum, or with Nesterov momentum."""

    name: Literal["sgd"] = Field(description="The optimizer.")
    learning_rate: Positive = Field(description="The size of a step.", examples=[0.1])
    momentum: Momentum = Decimal(0)
    nesterov: bool = Field(False, description="Whether to use Nesterov's momentum.")
    weight_decay: WeightDecay = Decimal(0)

    @model_validator(mode="after")
    def _momentum_to_look_ahead(self) -> Sgd:
        if self.nesterov and not self.momentum:
            raise ValueError("should have a momentum above 0 with nesterov")
        return self


class RmsProp(Spec):
    """RMSprop: a step is the gradient divided by the square root of its running mean square.

    As in PyTorch, ``epsilon`` is added to the root; TensorFlow 1 adds it under the root.
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
        description="Number added to the root of the mean square.",
        examples=[1e-07],
    )
    momentum: Momentum = Decimal(0)
    weight_decay: WeightDecay = Decimal(0)


class Adagrad(Spec):
    """Adagrad: a step is the gradient divided by the root of the sum of all squared gradients."""

    name: Literal["adagrad"] = Field(description="The optimizer.")
    learning_rate: Positive = Field(
        Decimal("0.01"), description="The size of a step.", examples=[0.01]
    )
    epsilon: Positive = Field(
        Decimal("1e-10"),
        description="Number added to the root of the sum of squares.",
        examples=[1e-10],
    )
    initial_accumulator: NonNegative = Field(
        Decimal(0), description="Initial sum of squares.", examples=[0.1]
    )
    weight_decay: WeightDecay = Decimal(0)


class Adadelta(Spec):
    """Adadelta: scale gradients by the ratio of two running root mean squares.

    They are that of the steps and that of the gradients.
    """

    name: Literal["adadelta"] = Field(description="The optimizer.")
    learning_rate: Positive = Field(Decimal(1), description="Factor of the step.", examples=[1])
    rho: Below1 = Field(
        Decimal("0.95"),
        description="The share of the running mean squares that is kept.",
        examples=[0.95],
    )
    epsilon: Positive = Field(
        Decimal("1e-7"), description="Number added to the mean squares.", examples=[1e-07]
    )
    weight_decay: WeightDecay = Decimal(0)


class Adam(Spec):
    """Adam; as ``adamw``, it decays the weights separately from the gradient."""

    name: Literal["adam", "adamw"] = Field(
        description="The optimizer; adamw decays weights separately from the gradient."
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
        description="Number added to the root of the mean square.",
        examples=[1e-08],
    )
    weight_decay: NonNegative = Field(
        Decimal(0),
        description="Share of a parameter subtracted by adamw, or added to its gradient by adam.",
        examples=[0.01],
    )


Optimizer = Annotated[Sgd | RmsProp | Adagrad | Adadelta | Adam, Field(discriminator="name")]


LossName = Literal[
    "softmax_cross_entropy", "sigmoid_cross_entropy", "nll", "mse", "l1", "huber", "own_output"
]
_OF_CLASSES = ("softmax_cross_entropy", "nll")
_OF_NUMBERS = ("mse", "l1", "huber")


class Target(Spec):
    """Targets of a loss: class indices in ``[0, classes)``, or numbers in a range.

    ``ignored_share`` is the share of tokens that a masked language model does not predict.
    ``label_smoothing`` is defined by Szegedy et al. 2015, arXiv 1512.00567, section 7.
    """

    classes: Annotated[int, Field(ge=2, le=10**7)] | None = Field(
        None, description="Number of classes; indices are from 0 to below it.", examples=[10]
    )
    ignored_share: Annotated[Share, Field(lt=1)] = Field(
        Decimal(0),
        description="Share of positions without a class, which do not count.",
        examples=[0.85],
    )
    label_smoothing: Annotated[Share, Field(lt=1)] = Field(
        Decimal(0),
        description="Share of the target that is spread evenly over the classes.",
        examples=[0.1],
    )
    low: Bounded | None = Field(
        None, description="Lower end of the target numbers, included.", examples=[0]
    )
    high: Bounded | None = Field(
        None,
        description="Upper end of the target numbers, excluded.",
        examples=[1],
    )

    @property
    def softmax_only(self) -> str | None:
        """The name of a key that is set although only the loss softmax_cross_entropy supports it.

        None if there is no such key.
        """
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
    """A loss of one graph output.

    A step of training minimises the sum of all losses, each multiplied by its ``weight``.
    """

    loss: LossName = Field(description="The loss function.")
    output: Text = Field(description="The graph's output that the loss reads.", examples=["logits"])
    target: Target | None = None
    weight: Positive = Field(
        Decimal(1), description="Factor of the term in the sum.", examples=[0.3]
    )

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
    """Random changes of the images before each step; a seed makes them repeatable."""

    pad: Annotated[int, Field(ge=0, le=256)] = Field(
        0,
        description="Largest random shift of an image in each direction, in pixels.",
        examples=[4],
    )
    flip: bool = Field(
        False, description="Whether to mirror images left to right with probability one half."
    )


class Constant(Spec):
    """A constant learning rate, after a linear rise over ``warm_up_steps``."""

    name: Literal["constant"] = Field(description="The schedule.")
    warm_up_steps: WarmUpSteps = 0


class Steps(Spec):
    """The optimizer's learning rate times a factor that changes at the start of certain epochs."""

    name: Literal["step"] = Field(description="The schedule.")
    epochs: Annotated[tuple[Positive, ...], FROM_LIST, Field(min_length=1)] = Field(
        description="The epochs at which each factor begins, ascending.", examples=[[82]]
    )
    factors: Annotated[tuple[NonNegative, ...], FROM_LIST, Field(min_length=1)] = Field(
        description="Factor of the optimizer's rate from each of the epochs.",
        examples=[[0.1]],
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
    """A linear rise of the rate, then a multiplication by ``factor`` every ``epochs`` epochs."""

    name: Literal["exponential"] = Field(description="The schedule.")
    factor: Annotated[Share, Field(gt=0, lt=1)] = Field(
        description="Factor of the rate.", examples=[0.94]
    )
    epochs: Positive = Field(
        Decimal(1), description="Epochs between two multiplications.", examples=[2]
    )
    warm_up_steps: WarmUpSteps = 0


class Cosine(Spec):
    """A linear rise of the rate, then half a cosine down to ``final_factor`` at the last step."""

    name: Literal["cosine"] = Field(description="The schedule.")
    warm_up_steps: WarmUpSteps = 0
    final_factor: Share = Field(
        Decimal(0),
        description="Share of the rate at the last step.",
        examples=[0.1],
    )


class Linear(Spec):
    """A linear rise of the rate, then a linear fall to ``final_factor`` at the last step (BERT)."""

    name: Literal["linear"] = Field(description="The schedule.")
    warm_up_steps: Annotated[int, Field(ge=0, le=10**9)] = Field(
        0, description="Steps of linear growth at the start.", examples=[10000]
    )
    final_factor: Share = Field(
        Decimal(0), description="Share of the rate at the last step.", examples=[0]
    )


class InverseSquareRoot(Spec):
    """A linear rise of the rate, then a fall with 1 / √step (Vaswani et al. 2017, section 5.3)."""

    name: Literal["inverse-square-root"] = Field(description="The schedule.")
    warm_up_steps: PositiveInt = Field(
        description="Steps of linear growth at the start.", examples=[4000]
    )


class InverseTime(Spec):
    """The rate divided by 1 + decay × step, like the ``decay`` of Keras in 2017."""

    name: Literal["inverse-time"] = Field(description="The schedule.")
    decay: Positive = Field(
        description="Number that a step adds to the divisor of the rate.", examples=[1e-06]
    )


class OnPlateau(Spec):
    """Multiply the rate by ``factor`` after an epoch without enough progress on held-out data.

    The progress is too small if the measure improves by at most ``threshold``. ``factor`` 0.5 is
    "halve on plateau"; training ends once the rate is below ``minimum_rate``.
    """

    name: Literal["on-plateau"] = Field(description="The schedule.")
    factor: Annotated[Share, Field(gt=0, lt=1)] = Field(
        Decimal("0.5"), description="Factor of the rate on a plateau.", examples=[0.5]
    )
    threshold: NonNegative = Field(
        Decimal(0),
        description="Least fall of the measure in an epoch that is no plateau.",
        examples=[0],
    )
    measure: Literal["perplexity", "loss", "accuracy"] = Field(
        "loss", description="Measure on held-out data."
    )
    minimum_rate: NonNegative = Field(
        Decimal(0), description="The learning rate below which training ends.", examples=[1e-05]
    )


Schedule = Annotated[
    Constant | Steps | Exponential | Cosine | Linear | InverseSquareRoot | InverseTime | OnPlateau,
    Field(discriminator="name"),
]
