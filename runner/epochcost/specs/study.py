"""Studies: the models to measure, the machines, the settings, the precision and the budget."""

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
    """A demand: ``goal`` of ``model`` costs ``at_most`` this amount in ``currency``.

    Without ``hardware`` and ``price`` the cheapest machine and plan count. With
    ``accuracy_percent`` only trainings count that reach it by their source.
    """

    model: Identifier = Field(
        description="The model, by its id; one of the study's.", examples=["mnist-cnn"]
    )
    goal: BudgetGoal = Field(
        description="What is paid for: an epoch, all epochs, or a million inferences.",
        examples=["full-training"],
    )
    at_most: Positive = Field(description="What it may cost, in the currency.", examples=[1])
    currency: Currency = Field(
        "USD", description="The currency, by its three letters.", examples=["USD"]
    )
    accuracy_percent: Annotated[Positive, Field(le=100)] | None = Field(
        None,
        description="What the training should reach, by its source, in percent.",
        examples=[91],
    )
    hardware: Identifier | None = Field(
        None,
        description="The machine, by its id; the cheapest where it is left out.",
        examples=["p2.xlarge"],
    )
    price: Identifier | None = Field(
        None,
        description="The price plan, by its id; the cheapest where it is left out.",
        examples=["p2.xlarge-on-demand-2026-07"],
    )


class Budget(Spec):
    """The most that the study's models may cost; `epochcost check --budgets` fails beyond it."""

    limits: Annotated[tuple[BudgetLimit, ...], FROM_LIST, Field(min_length=1)] = Field(
        description="One demand each; a cost that is unknown keeps none."
    )


# Raw samples are stored, about 11 bytes each: a result may weigh half a megabyte.
MOST_SAMPLES = 50_000
# The id by which a study means any machine that it is run on.
AT_HAND = "local"
Mode = Literal["training", "inference"]
Provider = Literal["cpu", "cuda"]
# "batch": full batches one after the other; the others are MLPerf Inference's, under LoadGen.
Scenario = Literal["batch", "offline", "server"]
Scenarios = Annotated[tuple[Scenario, ...], FROM_LIST, Field(min_length=1), DISTINCT]
MOST_BATCH = 65_536
# A round of a budget of a minute is then a fraction of a second, which is mostly warm-up.
MOST_ROUNDS = 100
# tf32: an NVIDIA GPU may round the factors of fp32 products to 10 bits of mantissa; fp16 and bf16
# compute in half precision, trainings with weights in fp32; int4 is of decoders, of which the
# weights alone have so few bits.
Precision = Literal["fp32", "tf32", "fp16", "bf16", "int4"]
MOST_CPUS = 4096
CpuCount = Annotated[int, Field(ge=1, le=MOST_CPUS)]
# "auto": from the model's smallest size upward, as far as it is worth it.
AskedBatchSizes = Annotated[
    Annotated[BatchSizes, Tag("listed")] | Annotated[Literal["auto"], Tag("auto")],
    Discriminator(lambda value: "auto" if isinstance(value, str) else "listed"),
]
Modes = Annotated[tuple[Mode, ...], FROM_LIST, Field(min_length=1), DISTINCT]
Providers = Annotated[tuple[Provider, ...], FROM_LIST, Field(min_length=1), DISTINCT]


class Sampling(Spec):
    """End of a trial: its mean is precise enough, or its time is used up.

    The budget does not cover the building of the graph and the start of the worker.
    """

    relative_half_width: Annotated[Positive, Field(lt=1)] = Field(
        Decimal("0.02"),
        description=(
            "How well the mean step time is to be known: half its 95 % interval over the mean."
        ),
        examples=[0.02],
    )
    minimum_samples: Annotated[int, Field(ge=10, le=MOST_SAMPLES)] = Field(
        30, description="Steps that are timed at least.", examples=[30]
    )
    budget_seconds: Positive = Field(
        Decimal(20),
        description="The most that a trial's warm-up and samples take together, in seconds.",
        examples=[20],
    )


class Serving(Spec):
    """How the scenarios of MLPerf Inference load a model, and how its server batches.

    Dynamic batching: the server takes what waits, at most ``maximum_batch`` samples, once the
    oldest has waited ``maximum_delay_ms``.
    """

    server_latency_ms: Positive | None = Field(
        None,
        description=(
            "What bounds the latency percentile under a server's load, in "
            "milliseconds; the model's own where it is left out."
        ),
        examples=[15],
    )
    latency_percentile: Annotated[Positive, Field(lt=1)] = Field(
        Decimal("0.99"), description="The share of answers that keep the bound.", examples=[0.99]
    )
    maximum_batch: Annotated[int, Field(ge=1, le=MOST_BATCH)] | None = Field(
        None,
        description=(
            "Samples that the server takes at once at most; the largest inference "
            "batch size where it is left out."
        ),
        examples=[32],
    )
    maximum_delay_ms: NonNegative = Field(
        Decimal(0),
        description="How long the oldest sample waits for others, in milliseconds.",
        examples=[5],
    )


class Cuda(Spec):
    """Settings of the CUDA provider alone."""

    device: Annotated[int, Field(ge=0, le=63)] = Field(
        0, description="The GPU's number, as CUDA counts.", examples=[0]
    )
    graphs: bool = Field(
        False, description="Whether a step is recorded once as a CUDA graph and replayed."
    )
    memory_limit_gib: Positive | None = Field(
        None, description="What bounds ONNX Runtime's arena on the device, in GiB.", examples=[8]
    )


class Study(NamedSpec):
    """A set of trials: models × hardware × modes × providers × batch sizes × variants.

    Batch sizes are those of training and of the scenario batch. Several rounds share the budget.
    Variants: ``vcpus`` pins trials of the CPU provider to that number of CPUs, which emulates a
    smaller machine of the same family.
    """

    name: Text = Field(description="What the study is about.", examples=["First results"])
    models: Annotated[tuple[Identifier, ...], FROM_LIST, Field(min_length=1), DISTINCT] = Field(
        description="The models, by their ids in models/.", examples=[["mnist-cnn"]]
    )
    hardware: Annotated[tuple[Identifier, ...], FROM_LIST, Field(min_length=1), DISTINCT] = Field(
        (AT_HAND,),
        description=(
            "The machines, by their ids in hardware/; local is any machine at hand, whatever its "
            "id."
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
        description=("ONNX Runtime's execution providers; one that a machine has not is left out."),
        examples=[["cpu"]],
    )
    training_batch_sizes: AskedBatchSizes | None = Field(
        None,
        description=(
            'Examples in a training step, or "auto" to find how far they grow; each'
            " model's own where it is left out."
        ),
    )
    inference_batch_sizes: AskedBatchSizes | None = Field(
        None,
        description=(
            'Examples in a call, or "auto" to find how far they grow; each model\'s '
            "own where it is left out."
        ),
    )
    scenarios: Scenarios = Field(
        ("batch",),
        description=(
            "How inference is loaded: full batches one after the other, or as "
            "MLPerf Inference does."
        ),
        examples=[["server"]],
    )
    serving: Serving = Serving()
    generation: Generation | None = Field(
        None, description="Which phases of decoders are measured; each model's own otherwise."
    )
    requests: Requests | None = Field(
        None,
        description=(
            "Requests that come to decoders behind an engine; their phases are then measured only "
            "where generation is asked for too."
        ),
    )
    threads: Annotated[int, Field(ge=0, le=MOST_CPUS)] = Field(
        0, description="Threads of the CPU provider; 0 takes all cores.", examples=[0]
    )
    vcpus: Annotated[tuple[CpuCount, ...], FROM_LIST, Field(min_length=1), DISTINCT] | None = Field(
        None,
        description="Numbers of CPUs that trials are pinned to, as smaller machines have them.",
        examples=[[2]],
    )
    precisions: Annotated[tuple[Precision, ...], FROM_LIST, Field(min_length=1), DISTINCT] = Field(
        ("fp32",),
        description="What the models compute in, each a trial of its own.",
        examples=[["fp32"]],
    )
    cuda: Cuda = Cuda()
    rounds: Annotated[int, Field(ge=1, le=MOST_ROUNDS)] = Field(
        3,
        description=(
            "How often a run comes back to each trial, in another process and order each time; of "
            "one round no change can be told."
        ),
        examples=[3],
    )
    seed: Annotated[int, Field(ge=0, le=2**31 - 1)] = Field(
        0, description="What all random numbers come from.", examples=[20161101]
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
