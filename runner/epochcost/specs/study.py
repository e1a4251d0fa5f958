"""Studies: the models and machines to measure, with settings, precision and budget."""

from __future__ import annotations

from decimal import Decimal
from typing import Annotated, Literal

from pydantic import Discriminator, Field, Tag, ValidationInfo, field_validator

from epochcost.specs.base import (
    Array,
    Choices,
    Currency,
    Identifier,
    NamedSpec,
    NonNegative,
    Number,
    Percentage,
    Positive,
    PositiveInt,
    Spec,
    Text,
    TrialTime,
    key,
    optional,
)
from epochcost.specs.decoder import Generation
from epochcost.specs.requests import Requests
from epochcost.specs.wording import got

BudgetGoal = Literal["epoch", "full-training", "million-inferences"]


class BudgetLimit(Spec):
    """A limit: training or inference of a model may cost at most ``at_most`` in ``currency``.

    Without ``hardware`` and ``price``, the limit applies to the machine and plan that `epochcost
    cheapest` chooses. The time on this machine may be measured, published or predicted. An assumed
    price or an imprecise time is chosen only if all machines and plans have such a drawback.
    """

    model: Identifier = key("A model of the study, by id.", "mnist-cnn")
    goal: BudgetGoal = key("An epoch, all epochs, or a million inferences.", "full-training")
    at_most: Positive = key("Highest allowed cost, in the currency.", 1)
    currency: Currency = key("Code of the currency in ISO 4217.", "USD", default="USD")
    accuracy_percent: Annotated[Percentage, Field(gt=0)] | None = optional(
        "Least accuracy of the training, as its source states it, in percent.", 91
    )
    hardware: Identifier | None = optional("Machine, by id; the cheapest by default.", "p2.xlarge")
    price: Identifier | None = optional(
        "Price plan, by id; the cheapest by default.", "p2.xlarge-on-demand-2026-07"
    )


class Budget(Spec):
    """The highest allowed costs of a study's models.

    `epochcost check --budgets` fails if a cost is higher.
    """

    limits: Annotated[Array[BudgetLimit], Field(min_length=1)] = key(
        "A table for each limit; an unknown cost exceeds every limit."
    )


# Raw samples take about 11 bytes each, so that a result has at most half a megabyte.
MOST_SAMPLES = 50_000
# As the id of the machine: whichever machine runs the study.
AT_HAND = "local"
Mode = Literal["training", "inference"]
Provider = Literal["cpu", "cuda"]
# "batch": full batches one after the other; the others are scenarios of MLPerf Inference.
Scenario = Literal["batch", "offline", "server"]
MOST_BATCH = 65_536
# With more rounds, each round would consist mostly of warm-up.
MOST_ROUNDS = 100
# tf32: an NVIDIA GPU may round the factors of fp32 products to 10 bits of mantissa. fp16 and bf16
# compute in half precision; trainings keep weights in fp32. int4 is for decoders, whose weights
# have 4 bits.
Precision = Literal["fp32", "tf32", "fp16", "bf16", "int4"]
MOST_CPUS = 4096
# "auto": increasing batch sizes, from the model's smallest upward.
AskedBatchSizes = Annotated[
    Annotated[Choices[PositiveInt], Tag("listed")] | Annotated[Literal["auto"], Tag("auto")],
    Discriminator(lambda value: "auto" if isinstance(value, str) else "listed"),
]


class Sampling(Spec):
    """Conditions that end a trial: a precise enough mean step time, or a used-up time budget.

    The time budget does not include the time to build the graph and to start the worker process.
    """

    relative_half_width: Annotated[Positive, Field(lt=1)] = key(
        "Precision of the mean step time: half of its 95 % interval, divided by the mean.",
        default=Decimal("0.02"),
    )
    minimum_samples: Annotated[int, Field(ge=10, le=MOST_SAMPLES)] = key(
        "Least number of timed steps.", default=30
    )
    budget_seconds: TrialTime = key(
        "Longest time of a trial's warm-up and samples, in seconds.", default=Decimal(20)
    )


class Serving(Spec):
    """Settings of MLPerf Inference's scenarios: the latency bound, and how requests form batches.

    In the scenario ``server``, a batch runs as soon as ``maximum_batch`` samples are waiting, or
    the oldest sample has waited for ``maximum_delay_ms``.
    """

    server_latency_ms: TrialTime | None = optional(
        "Latency bound in the scenario server, in ms; by default, that of the model's spec.", 15
    )
    latency_percentile: Annotated[Positive, Field(lt=1)] = key(
        "Share of the answers that must keep the latency bound.", 0.99, default=Decimal("0.99")
    )
    maximum_batch: Annotated[int, Field(ge=1, le=MOST_BATCH)] | None = optional(
        "Largest batch of the server, in samples; by default, the largest batch size of inference.",
        32,
    )
    maximum_delay_ms: Annotated[NonNegative, Field(le=1_000_000)] = key(
        "Longest wait of a sample for a full batch, in milliseconds.", 5, default=Decimal(0)
    )


class Cuda(Spec):
    """Settings of ONNX Runtime's CUDA provider."""

    device: Annotated[int, Field(ge=0, le=63)] = key("CUDA's number of the GPU.", 0, default=0)
    graphs: bool = key("Whether a step is recorded as a CUDA graph and replayed.", default=False)
    memory_limit_gib: Annotated[Number, Field(ge=0.0625, le=1_000_000)] | None = optional(
        "Limit of ONNX Runtime's memory arena on the device, in GiB.", 8
    )


class Study(NamedSpec):
    """A set of trials: all combinations of the listed models, machines and settings.

    The settings are modes, execution providers, batch sizes, scenarios, precisions and numbers of
    CPUs (``vcpus``). Batch sizes apply to training and to inference in the scenario ``batch``. The
    rounds of a trial share the trial's time budget. For each number in ``vcpus``, trials of the CPU
    provider use only this number of CPUs, like a smaller machine of the same family.
    """

    name: Text = key("Title of the study.", "First results")
    models: Choices[Identifier] = key("The models, by their ids in models/.", ["mnist-cnn"])
    hardware: Choices[Identifier] = key(
        "Machines, by id in hardware/; local is the machine that runs the study.",
        default=(AT_HAND,),
    )
    modes: Choices[Mode] = key(
        "Whether models are trained, served, or both.", default=("training", "inference")
    )
    providers: Choices[Provider] = key(
        "Execution providers; those that a machine lacks are left out.", default=("cpu", "cuda")
    )
    training_batch_sizes: AskedBatchSizes | None = optional(
        'Batch sizes of training, or "auto" for the largest that fits; by default, the model\'s.'
    )
    inference_batch_sizes: AskedBatchSizes | None = optional(
        'Batch sizes of inference, or "auto" for the largest that fits; by default, the model\'s.'
    )
    scenarios: Choices[Scenario] = key(
        "Loads: batches in succession, or MLPerf Inference's scenarios.", default=("batch",)
    )
    serving: Serving = Serving()
    generation: Generation | None = optional(
        "Phases (prefill, decode) of decoders to measure; by default, those in the model's spec."
    )
    requests: Requests | None = optional(
        "Requests to decoders in a serving engine. A study with this table measures the phases "
        "prefill and decode only if the study also has a table `generation`."
    )
    threads: Annotated[int, Field(ge=0, le=MOST_CPUS)] = key(
        "Threads of the CPU provider; 0 takes all cores.", 0, default=0
    )
    vcpus: Choices[Annotated[int, Field(ge=1, le=MOST_CPUS)]] | None = optional(
        "Numbers of CPUs to which trials are pinned, to emulate smaller machines.", [2]
    )
    precisions: Choices[Precision] = key(
        "Precisions of the models; each is a separate trial.", ["fp32"], default=("fp32",)
    )
    cuda: Cuda = Cuda()
    rounds: Annotated[int, Field(ge=1, le=MOST_ROUNDS)] = key(
        "Rounds over all trials, each in a new order and new processes; one is too few to compare.",
        default=3,
    )
    seed: Annotated[int, Field(ge=0, le=2**31 - 1)] = key(
        "Seed of all random numbers.", 20161101, default=0
    )
    sampling: Sampling = Sampling()
    budget: Budget | None = None

    @field_validator("budget")
    @classmethod
    def _of_its_models(cls, budget: Budget | None, info: ValidationInfo) -> Budget | None:
        models: tuple[str, ...] = info.data.get("models", ())
        for limit in budget.limits if budget else ():
            if models and limit.model not in models:
                raise ValueError(f"should be of models of this study, {got(limit.model, models)}")
        return budget
