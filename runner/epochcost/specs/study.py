"""Studies: the models and machines to measure, with settings, precision and budget."""

from __future__ import annotations

from decimal import Decimal
from typing import Annotated, Literal

from pydantic import Discriminator, Field, Tag, ValidationInfo, field_validator

from epochcost.specs.base import (
    DISTINCT,
    FROM_LIST,
    Identifier,
    NamedSpec,
    NonNegative,
    Notes,
    Positive,
    Spec,
    Text,
)
from epochcost.specs.decoder import Generation
from epochcost.specs.model import BatchSizes
from epochcost.specs.reference_data import Currency
from epochcost.specs.requests import Requests
from epochcost.specs.wording import describe, suggest_or_list

BudgetGoal = Literal["epoch", "full-training", "million-inferences"]


class BudgetLimit(Spec):
    """A demand that ``goal`` of ``model`` cost at most the amount ``at_most`` in ``currency``.

    Without ``hardware`` and ``price``, the limit applies to the cheapest machine and plan. With
    ``accuracy_percent``, it applies only to trainings whose source states at least this accuracy.
    """

    model: Identifier = Field(description="A model of the study, by id.", examples=["mnist-cnn"])
    goal: BudgetGoal = Field(
        description="Work to pay for: an epoch, all epochs, or a million inferences.",
        examples=["full-training"],
    )
    at_most: Positive = Field(description="Highest cost, in the currency.", examples=[1])
    currency: Currency = Field(
        "USD", description="Code of the currency in ISO 4217.", examples=["USD"]
    )
    accuracy_percent: Annotated[Positive, Field(le=100)] | None = Field(
        None,
        description="Accuracy that the training reaches in its source, in percent.",
        examples=[91],
    )
    hardware: Identifier | None = Field(
        None,
        description="The machine, by id; the cheapest by default.",
        examples=["p2.xlarge"],
    )
    price: Identifier | None = Field(
        None,
        description="The price plan, by id; the cheapest by default.",
        examples=["p2.xlarge-on-demand-2026-07"],
    )


class Budget(Spec):
    """The highest allowed costs of a study's models.

    `epochcost check --budgets` fails if a cost is higher.
    """

    limits: Annotated[tuple[BudgetLimit, ...], FROM_LIST, Field(min_length=1)] = Field(
        description="A table for each limit; an unknown cost exceeds every limit."
    )


# Raw samples take about 11 bytes each, so that a result has at most half a megabyte.
MOST_SAMPLES = 50_000
# The id for any machine that runs the study.
AT_HAND = "local"
Mode = Literal["training", "inference"]
Provider = Literal["cpu", "cuda"]
# "batch": full batches one after the other; the others are MLPerf Inference's, under LoadGen.
Scenario = Literal["batch", "offline", "server"]
Scenarios = Annotated[tuple[Scenario, ...], FROM_LIST, Field(min_length=1), DISTINCT]
MOST_BATCH = 65_536
# With more rounds a round would be mostly warm-up.
MOST_ROUNDS = 100
# tf32: an NVIDIA GPU may round the factors of fp32 products to 10 bits of mantissa. fp16 and bf16
# compute in half precision; trainings keep weights in fp32. int4 is for decoders, whose weights
# have 4 bits.
Precision = Literal["fp32", "tf32", "fp16", "bf16", "int4"]
MOST_CPUS = 4096
CpuCount = Annotated[int, Field(ge=1, le=MOST_CPUS)]
# "auto": a sweep from the model's smallest size upward.
AskedBatchSizes = Annotated[
    Annotated[BatchSizes, Tag("listed")] | Annotated[Literal["auto"], Tag("auto")],
    Discriminator(lambda value: "auto" if isinstance(value, str) else "listed"),
]
Modes = Annotated[tuple[Mode, ...], FROM_LIST, Field(min_length=1), DISTINCT]
Providers = Annotated[tuple[Provider, ...], FROM_LIST, Field(min_length=1), DISTINCT]


class Sampling(Spec):
    """Conditions that end a trial: its mean is precise enough, or its time budget is used up.

    The time budget does not include the time to build the graph and to start the worker process.
    """

    relative_half_width: Annotated[Positive, Field(lt=1)] = Field(
        Decimal("0.02"),
        description=(
            "Demanded precision of the mean step time: half its 95 % interval over the mean."
        ),
        examples=[0.02],
    )
    minimum_samples: Annotated[int, Field(ge=10, le=MOST_SAMPLES)] = Field(
        30, description="Least number of timed steps.", examples=[30]
    )
    budget_seconds: Positive = Field(
        Decimal(20),
        description="Longest time of a trial's warm-up and samples together, in seconds.",
        examples=[20],
    )


class Serving(Spec):
    """Settings of MLPerf Inference's scenarios: the latency bound, and how the server batches.

    With dynamic batching, the server runs a batch as soon as ``maximum_batch`` samples are waiting,
    or the oldest sample has waited for ``maximum_delay_ms``.
    """

    server_latency_ms: Positive | None = Field(
        None,
        description=(
            "Bound of the latency percentile in the scenario server, in "
            "milliseconds; the model's by default."
        ),
        examples=[15],
    )
    latency_percentile: Annotated[Positive, Field(lt=1)] = Field(
        Decimal("0.99"), description="The share of answers that keep the bound.", examples=[0.99]
    )
    maximum_batch: Annotated[int, Field(ge=1, le=MOST_BATCH)] | None = Field(
        None,
        description=(
            "Largest batch of the server, in samples; the largest inference batch size by default."
        ),
        examples=[32],
    )
    maximum_delay_ms: NonNegative = Field(
        Decimal(0),
        description="Longest wait of a sample for others, in milliseconds.",
        examples=[5],
    )


class Cuda(Spec):
    """Settings of ONNX Runtime's CUDA provider."""

    device: Annotated[int, Field(ge=0, le=63)] = Field(
        0, description="CUDA's number of the GPU.", examples=[0]
    )
    graphs: bool = Field(
        False, description="Whether a step is recorded once as a CUDA graph and replayed."
    )
    memory_limit_gib: Positive | None = Field(
        None, description="Limit of ONNX Runtime's arena on the device, in GiB.", examples=[8]
    )


class Study(NamedSpec):
    """A set of trials: models × hardware × modes × providers × batch sizes × variants.

    Batch sizes are those of training and of inference in full batches. Several rounds of a trial
    share its time budget. Among the variants, ``vcpus`` pins trials of the CPU provider to that
    number of CPUs, which emulates a smaller machine of the same family.
    """

    name: Text = Field(description="Title of the study.", examples=["First results"])
    models: Annotated[tuple[Identifier, ...], FROM_LIST, Field(min_length=1), DISTINCT] = Field(
        description="The models, by their ids in models/.", examples=[["mnist-cnn"]]
    )
    hardware: Annotated[tuple[Identifier, ...], FROM_LIST, Field(min_length=1), DISTINCT] = Field(
        (AT_HAND,),
        description=(
            "The machines, by their ids in hardware/; local is the machine that runs the study."
        ),
        examples=[["local"]],
    )
    modes: Modes = Field(
        ("training", "inference"),
        description="Whether models are trained, served, or both.",
        examples=[["training"]],
    )
    providers: Providers = Field(
        ("cpu", "cuda"),
        description="ONNX Runtime's execution providers; those that a machine lacks are left out.",
        examples=[["cpu"]],
    )
    training_batch_sizes: AskedBatchSizes | None = Field(
        None,
        description=(
            'Examples in a training step, or "auto" for the largest; each model\'s by default.'
        ),
    )
    inference_batch_sizes: AskedBatchSizes | None = Field(
        None,
        description=('Examples in a run, or "auto" to find the largest; each model\'s by default.'),
    )
    scenarios: Scenarios = Field(
        ("batch",),
        description=(
            "Loads of inference: full batches one after the other, or MLPerf Inference's scenarios."
        ),
        examples=[["server"]],
    )
    serving: Serving = Serving()
    generation: Generation | None = Field(
        None, description="Phases of decoders to measure; each model's by default."
    )
    requests: Requests | None = Field(
        None,
        description=(
            "Requests to decoders in an engine; phases are then measured only with a table "
            "generation."
        ),
    )
    threads: Annotated[int, Field(ge=0, le=MOST_CPUS)] = Field(
        0, description="Threads of the CPU provider; 0 takes all cores.", examples=[0]
    )
    vcpus: Annotated[tuple[CpuCount, ...], FROM_LIST, Field(min_length=1), DISTINCT] | None = Field(
        None,
        description="Numbers of CPUs to pin trials to, as in smaller machines.",
        examples=[[2]],
    )
    precisions: Annotated[tuple[Precision, ...], FROM_LIST, Field(min_length=1), DISTINCT] = Field(
        ("fp32",),
        description="Precisions of the models, each a separate trial.",
        examples=[["fp32"]],
    )
    cuda: Cuda = Cuda()
    rounds: Annotated[int, Field(ge=1, le=MOST_ROUNDS)] = Field(
        3,
        description=(
            "Number of rounds of each trial, each in a new process and order; one round is too few "
            "to compare results."
        ),
        examples=[3],
    )
    seed: Annotated[int, Field(ge=0, le=2**31 - 1)] = Field(
        0, description="Seed of all random numbers.", examples=[20161101]
    )
    sampling: Sampling = Sampling()
    budget: Budget | None = None
    notes: Notes | None = None

    @field_validator("budget")
    @classmethod
    def _of_its_models(cls, budget: Budget | None, info: ValidationInfo) -> Budget | None:
        models: tuple[str, ...] = info.data.get("models", ())
        for limit in budget.limits if budget else ():
            if models and limit.model not in models:
                got = f"got {describe(limit.model)}{suggest_or_list(limit.model, models)}"
                raise ValueError(f"should be of models of this study, {got}")
        return budget
