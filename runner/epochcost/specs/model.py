"""Models: an ONNX file, the values of its inputs, and settings for its training and serving."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from decimal import Decimal
from typing import Annotated

from pydantic import model_validator

from epochcost.specs.base import (
    DISTINCT,
    Array,
    Bounded,
    Choices,
    Identifier,
    Percentage,
    Positive,
    PositiveInt,
    SourcedSpec,
    Spec,
    Text,
    TrialTime,
    distinct,
    key,
    matching,
    optional,
)
from epochcost.specs.decoder import MASK, POSITIONS, TOKENS, Decoder
from epochcost.specs.training import Augmentation, Constant, LossTerm, Optimizer, Schedule

# Names of parameters; they may contain wildcards, such as "bert.encoder.*".
Patterns = Annotated[Array[Text], DISTINCT]
GraphFile = Annotated[
    str,
    matching(
        r"[A-Za-z0-9][A-Za-z0-9._-]*\.onnx",
        "the name of an .onnx file in the folder models/, without a path",
    ),
]


class Input(Spec):
    """A graph input and the values that the program feeds to it.

    The values are random numbers in a range ``[low, high)``, random token indices in ``[0,
    vocabulary)``, or all equal to ``value``.
    """

    name: Text = key("The name of the input in the graph.", "image")
    low: Bounded | None = optional("Lower end of the random input values, included.", 0)
    high: Bounded | None = optional("Upper end of the random input values, excluded.", 1)
    vocabulary: PositiveInt | None = optional(
        "Number of different tokens; input values are indices from 0 to below this number.", 30522
    )
    value: Bounded | None = optional("Value of all elements, such as 1 in a full mask.", 1)

    @model_validator(mode="after")
    def _one_kind_of_values(self) -> Input:
        ranged = self.low is not None or self.high is not None
        if [ranged, self.vocabulary is not None, self.value is not None].count(True) > 1:
            raise ValueError("should have either low and high, or vocabulary, or value")
        low, high = self.range
        if low >= high:
            raise ValueError("should have low below high")
        return self

    @property
    def range(self) -> tuple[Decimal, Decimal]:
        """The half-open range from which values are drawn; [0, 1) by default."""
        if self.vocabulary is not None:
            return Decimal(0), Decimal(self.vocabulary)
        if self.value is not None:
            return self.value, self.value + 1
        return self.low or Decimal(0), Decimal(1) if self.high is None else self.high


class CarriedState(Spec):
    """A recurrent state: a graph input, first zero, then an output of the previous step or run."""

    input: Text = key("The graph's input that reads the state; the state starts at zero.", "h0")
    output: Text = key("The graph's output that the next step or run reads as this input.", "hn")


class Training(LossTerm):
    """The settings of a model's training, as the model's source describes them.

    An epoch has ``examples_per_epoch // batch`` steps.
    """

    auxiliary: Array[LossTerm] = key("Further terms that are added to the loss.", default=())
    optimizer: Optimizer = key("The optimizer.")
    schedule: Schedule = key(
        "Schedule of the learning rate; constant by default.", default=Constant(name="constant")
    )
    no_weight_decay: Patterns = key(
        "Parameters without weight decay, by name or shell pattern.", ["*bias"], default=()
    )
    freeze: Patterns = key(
        "Parameters that are not trained, by name or shell pattern.", ["bert.encoder.*"], default=()
    )
    clip_norm: Positive | None = optional(
        "Largest norm of all gradients together; larger gradients are scaled down.", 1
    )
    batch_sizes: Choices[PositiveInt] = key(
        "Examples per step; first the size in the source.", [128]
    )
    examples_per_epoch: PositiveInt = key(
        "Examples in an epoch; an incomplete last batch is left out.", 50000
    )
    epochs: PositiveInt = key("Epochs of the whole training.", 12)
    augmentation: Augmentation | None = optional(
        "Random augmentation of real images; timed steps use synthetic images, not augmented."
    )

    @property
    def terms(self) -> tuple[LossTerm, ...]:
        """All terms of the loss, the main term first."""
        main = {name: getattr(self, name) for name in LossTerm.model_fields}
        return (LossTerm.model_validate(main), *self.auxiliary)


class Inference(Spec):
    """Batch sizes and latency bound for inference with the model."""

    batch_sizes: Choices[PositiveInt] = key("Examples in a run of the model.", [1])
    server_latency_ms: TrialTime | None = optional(
        "Latency bound in MLPerf Inference's scenario server, in milliseconds.", 15
    )


class DeclaredModel(Spec):
    """The size of a model without an ONNX graph, to estimate the cost of the model's training.

    A training of N parameters on D tokens takes 6 · N · D floating-point operations (Kaplan et al.
    2020, arXiv 2001.08361).
    """

    parameters: PositiveInt = key("Number of parameters of the model.", 11000000000)
    training_tokens: PositiveInt = key(
        "Number of tokens in the whole training; repeated tokens count each time.", 1000000000000
    )

    @property
    def training_flops(self) -> int:
        """Floating-point operations of the whole training."""
        return 6 * self.parameters * self.training_tokens


class Model(SourcedSpec):
    """A model: its graph and inputs, its training and its serving."""

    name: Text = key("Name for people.", "ResNet-44 for CIFAR-10")
    task: Text = key("Task of the model, in a few words.", "image classification")
    example: Text = key("Description of an example.", "a colour image of 32 x 32 pixels")
    dataset: Identifier | None = optional("Training data, by id in datasets/.", "cifar-10")
    graph: GraphFile | None = optional("ONNX file, in the folder models/.", "cifar_resnet44.onnx")
    declared: DeclaredModel | None = None
    inputs: Annotated[Array[Input], distinct(lambda declared: declared.name)] = key(
        "Inputs of the graph, a table for each.", default=()
    )
    dimensions: Mapping[str, PositiveInt] = key(
        "Sizes of the graph's symbolic dimensions other than the batch, by name.", default={}
    )
    carried: Annotated[
        Array[CarriedState],
        distinct(lambda state: state.input),
        distinct(lambda state: state.output),
    ] = key("State that goes from one step or run to the next.", default=())
    decoder: Decoder | None = optional(
        "Sizes of a model that generates tokens with a cache of keys and values; with "
        "`hidden` and `parameters`, the model needs no graph."
    )
    tokens_per_example: PositiveInt | None = optional("Number of tokens in an example.", 128)
    most_tokens: PositiveInt | None = optional(
        "Tokens of the longest text that the model reads; longer texts are cut.", 512
    )
    training: Training | None = None
    inference: Inference | None = None
    accuracy_percent: Percentage | None = optional(
        "Accuracy that the source reports on its held-out data after all epochs, in percent.", 91.6
    )

    @model_validator(mode="after")
    def _graph_or_declared(self) -> Model:
        if self.decoder is not None:
            self._check_decoder(self.decoder)
        elif (self.graph is None) == (self.declared is None):
            raise ValueError("should have either graph and inputs, or the table [declared]")
        if self.graph is not None and not (self.inputs or self.decoder):
            raise ValueError("should have at least one table [[inputs]] with a graph")
        if self.declared is not None and (self.training or self.inference or self.inputs):
            raise ValueError("should have no inputs, training or inference with [declared]")
        return self

    def _check_decoder(self, decoder: Decoder) -> None:
        if self.inputs or self.carried or self.declared:
            raise ValueError(
                "should have no inputs or carried state, or [declared], with [decoder]"
            )
        if self.graph is None and not decoder.predictable:
            raise ValueError("should have a graph, or hidden and parameters in [decoder]")
        if self.graph is None and (self.training or self.inference):
            raise ValueError("should have a graph with [training] or [inference]")
        if self.graph is not None and decoder.key_value_rank is not None:
            raise ValueError("should have no graph with key_value_rank: it cannot be run")

    @property
    def fed(self) -> tuple[Input, ...]:
        """Graph inputs that get values; for a decoder, its tokens and a mask that hides none."""
        if self.decoder is None:
            return self.inputs
        tokens = Input(name=TOKENS, vocabulary=self.decoder.vocabulary)
        return tokens, Input(name=MASK, value=Decimal(1))

    def fed_to(self, names: Collection[str]) -> tuple[Input, ...]:
        """``fed``, and a decoder's token positions if ``names``, all inputs of the graph, has them.

        Positions are random, because they do not change the time.
        """
        if self.decoder is None or POSITIONS not in names:
            return self.fed
        return *self.fed, Input(name=POSITIONS, vocabulary=self.decoder.context)

    @property
    def states(self) -> tuple[CarriedState, ...]:
        """The inputs whose value is an output of the previous step, such as a decoder's cache."""
        if self.decoder is None:
            return self.carried
        return tuple(CarriedState(input=past, output=now) for past, now in self.decoder.cache)
