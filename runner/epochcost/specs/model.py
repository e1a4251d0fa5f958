"""Models: an ONNX file, what goes into it, and how it is trained and served."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Annotated

from pydantic import Field, model_validator

from epochcost.specs.base import (
    DISTINCT,
    FROM_LIST,
    Bounded,
    Identifier,
    NamedSpec,
    NonNegative,
    Positive,
    PositiveInt,
    Source,
    Spec,
    Text,
    Unconfirmed,
    distinct,
    matching,
)
from epochcost.specs.loss import LossTerm
from epochcost.specs.optimizer import Optimizer
from epochcost.specs.schedule import Constant, Schedule

BatchSizes = Annotated[tuple[PositiveInt, ...], FROM_LIST, Field(min_length=1), DISTINCT]
# Names of parameters, or shell patterns of names, such as "bert.encoder.*".
Patterns = Annotated[tuple[Text, ...], FROM_LIST, DISTINCT]
GraphFile = Annotated[
    str,
    matching(
        r"[A-Za-z0-9][A-Za-z0-9._-]*\.onnx",
        "the name of an .onnx file in the folder models/, without a path",
    ),
]


class Input(Spec):
    """A graph input and the values it takes.

    A range ``[low, high)`` for numbers, ``vocabulary`` for token indices ``[0, vocabulary)``, or
    ``value``, the same everywhere, as in a mask that hides nothing.
    """

    name: Text
    low: Bounded | None = None
    high: Bounded | None = None
    vocabulary: PositiveInt | None = None
    value: Bounded | None = None

    @model_validator(mode="after")
    def _one_kind_of_values(self) -> Input:
        ranged = self.low is not None or self.high is not None
        if [ranged, self.vocabulary is not None, self.value is not None].count(True) > 1:
            raise ValueError("should have one of low and high, vocabulary, or value")
        low, high = self.range
        if low >= high:
            raise ValueError("should have low below high")
        return self

    @property
    def range(self) -> tuple[Decimal, Decimal]:
        """The half-open range of the values; [0, 1) where nothing is said."""
        if self.vocabulary is not None:
            return Decimal(0), Decimal(self.vocabulary)
        if self.value is not None:
            return self.value, self.value + 1
        return self.low or Decimal(0), Decimal(1) if self.high is None else self.high


class CarriedState(Spec):
    """A graph output that the next step or call reads as this input; it starts at zero."""

    input: Text
    output: Text


class Training(LossTerm):
    """How the source trains the model; an epoch is ``examples_per_epoch // batch`` steps.

    ``auxiliary`` terms are added to the loss. Parameters that match ``freeze`` are not trained,
    those that match ``no_weight_decay`` are not decayed. ``clip_norm`` bounds the norm of all
    gradients together.
    """

    auxiliary: Annotated[tuple[LossTerm, ...], FROM_LIST] = ()
    optimizer: Optimizer
    schedule: Schedule = Constant(name="constant")
    no_weight_decay: Patterns = ()
    freeze: Patterns = ()
    clip_norm: Positive | None = None
    batch_sizes: BatchSizes
    examples_per_epoch: PositiveInt
    epochs: PositiveInt

    @property
    def terms(self) -> tuple[LossTerm, ...]:
        """Every term of the loss, the main one first."""
        own = {name: getattr(self, name) for name in LossTerm.model_fields}
        return (LossTerm.model_validate(own), *self.auxiliary)


class Inference(Spec):
    """The batch sizes at which the model is served.

    ``server_latency_ms`` is how long an answer may take under a server's load.
    """

    batch_sizes: BatchSizes
    server_latency_ms: Positive | None = None


class Declared(Spec):
    """The size of a model that nobody here can run and that has no graph: priced from FLOPs.

    A training of N parameters on D tokens takes 6 · N · D floating-point operations (Kaplan et al.
    2020, arXiv 2001.08361).
    """

    parameters: PositiveInt
    training_tokens: PositiveInt

    @property
    def training_flops(self) -> int:
        """Of the whole training."""
        return 6 * self.parameters * self.training_tokens


class Model(NamedSpec):
    """One model; ``graph`` is a file in the folder ``models/``.

    ``example`` says what one example is, ``tokens_per_example`` how many tokens it has.
    ``dimensions`` binds symbolic dimensions of the graph other than the batch.
    ``accuracy_percent`` is what the source reports on its own data after all epochs.
    """

    name: Text
    task: Text
    example: Text
    dataset: Identifier | None = None
    graph: GraphFile | None = None
    declared: Declared | None = None
    inputs: Annotated[tuple[Input, ...], FROM_LIST, distinct(lambda declared: declared.name)] = ()
    dimensions: Mapping[str, PositiveInt] = {}
    carried: Annotated[
        tuple[CarriedState, ...], FROM_LIST, distinct(lambda state: state.input)
    ] = ()
    tokens_per_example: PositiveInt | None = None
    training: Training | None = None
    inference: Inference | None = None
    accuracy_percent: Annotated[NonNegative, Field(le=100)] | None = None
    source: Source
    notes: Text | None = None
    unconfirmed: Unconfirmed = ()

    @model_validator(mode="after")
    def _graph_or_declared(self) -> Model:
        if (self.graph is None) == (self.declared is None):
            raise ValueError("should have either graph and inputs, or the table [declared]")
        if self.graph is not None and not self.inputs:
            raise ValueError("should have at least one table [[inputs]] with a graph")
        if self.declared is not None and (self.training or self.inference or self.inputs):
            raise ValueError("should have no inputs, training or inference with [declared]")
        return self
