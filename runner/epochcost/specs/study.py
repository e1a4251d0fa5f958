"""Studies: which models are measured where, how, and how precisely."""

from __future__ import annotations

from decimal import Decimal
from typing import Annotated, Literal

from pydantic import Discriminator, Field, Tag

from epochcost.specs.base import (
    DISTINCT,
    FROM_LIST,
    Identifier,
    NamedSpec,
    NonNegative,
    Positive,
    Spec,
    Text,
)
from epochcost.specs.model import BatchSizes

# Raw samples are stored, about 11 bytes each: half a megabyte is as much as one result may weigh.
MOST_SAMPLES = 50_000
Mode = Literal["training", "inference"]
Provider = Literal["cpu", "cuda"]
# "batch": full batches one after the other; the others are MLPerf Inference's, under LoadGen.
Scenario = Literal["batch", "single-stream", "multi-stream", "offline", "server"]
Scenarios = Annotated[tuple[Scenario, ...], FROM_LIST, Field(min_length=1), DISTINCT]
MOST_BATCH = 65_536
# A round of a budget of a minute is then a fraction of a second, which is mostly warm-up.
MOST_ROUNDS = 100
# tf32: an NVIDIA GPU may round the factors of fp32 products to 10 bits of mantissa; fp16 and bf16
# compute in half precision; int8 is quantised inference.
Precision = Literal["fp32", "tf32", "fp16", "bf16", "int8"]
# How int8 is made: scales of activations found while it runs, or beforehand on a few batches.
Quantization = Literal["dynamic", "static"]
# ONNX Runtime's levels; "extended" and "all" fuse operators, "all" changes layouts too.
GraphOptimization = Literal["disabled", "basic", "extended", "all"]
# Whether the copy of a fresh batch from the host to the device is inside the timed step.
InputCopy = Literal["included", "excluded"]
_RUNTIME = r"onnxruntime(-gpu)?==[0-9]+\.[0-9]+\.[0-9]+"
RuntimeName = Annotated[str, Field(pattern=f"^{_RUNTIME}$")]
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
    """When a trial has measured enough: the mean is known well, or its time is used up.

    ``relative_half_width`` is of the 95 % interval of the mean step time; ``budget_seconds`` covers
    warm-up and samples, not the building of the graph and the start of the worker.
    """

    relative_half_width: Annotated[Positive, Field(lt=1)] = Decimal("0.02")
    minimum_samples: Annotated[int, Field(ge=10, le=MOST_SAMPLES)] = 30
    budget_seconds: Positive = Decimal(20)


class Serving(Spec):
    """How the scenarios of MLPerf Inference load a model, and how its server batches.

    ``server_latency_ms`` bounds the ``latency_percentile`` of the scenario server; where it is not
    given, the model's own does. ``samples_per_query`` is of multi-stream, MLPerf's 8 by default.
    Dynamic batching: the server takes what waits, at most ``maximum_batch`` samples (the largest
    inference batch size where it is not given), once the oldest has waited ``maximum_delay_ms``.
    """

    server_latency_ms: Positive | None = None
    latency_percentile: Annotated[Positive, Field(lt=1)] = Decimal("0.99")
    samples_per_query: Annotated[int, Field(ge=1, le=MOST_BATCH)] = 8
    maximum_batch: Annotated[int, Field(ge=1, le=MOST_BATCH)] | None = None
    maximum_delay_ms: NonNegative = Decimal(0)


class Session(Spec):
    """How ONNX Runtime is set up; every graph optimisation level is a trial of its own.

    ``spinning``: idle threads wait in a loop instead of asleep. ``denormals_as_zero``: numbers
    below the smallest normal one become zero.
    """

    graph_optimizations: Annotated[
        tuple[GraphOptimization, ...], FROM_LIST, Field(min_length=1), DISTINCT
    ] = ("all",)
    spinning: bool = True
    denormals_as_zero: bool = False


class Cuda(Spec):
    """What only the CUDA provider knows.

    ``device`` is the GPU's number as CUDA counts; ``graphs`` records a step once as a CUDA
    graph and replays it; ``memory_limit_gib`` bounds ONNX Runtime's arena on the device.
    """

    device: Annotated[int, Field(ge=0, le=63)] = 0
    graphs: bool = False
    memory_limit_gib: Positive | None = None


class Study(NamedSpec):
    """A set of trials: models × hardware × modes × providers × batch sizes × variants.

    A mode whose batch sizes are not given takes each model's own, and ``auto`` finds them;
    ``threads`` 0 is all cores.
    ``scenarios`` are of inference; batch sizes are those of the scenario batch. ``rounds``: how
    often a run comes back to each trial, in another order each time, with its part of the budget.

    Variants: ``vcpus`` pins trials of the CPU provider to so many CPUs, which emulates a smaller
    machine of the same family; without it they have all. ``precisions`` and ``runtimes`` (packages
    as ``onnxruntime==1.20.1``, each in an environment that ``epochcost runtimes install`` made;
    without them the one that is installed) give a trial for each. ``quantization`` says how int8 is
    made; without it static where convolutions lead, dynamic elsewhere
    (``measure.quantise.suggested``).
    """

    name: Text
    models: Annotated[tuple[Identifier, ...], FROM_LIST, Field(min_length=1), DISTINCT]
    hardware: Annotated[tuple[Identifier, ...], FROM_LIST, Field(min_length=1), DISTINCT] = (
        "local",
    )
    modes: Modes = ("training", "inference")
    providers: Providers = ("cpu", "cuda")
    training_batch_sizes: AskedBatchSizes | None = None
    inference_batch_sizes: AskedBatchSizes | None = None
    scenarios: Scenarios = ("batch",)
    serving: Serving = Serving()
    threads: Annotated[int, Field(ge=0, le=MOST_CPUS)] = 0
    vcpus: Annotated[tuple[CpuCount, ...], FROM_LIST, Field(min_length=1), DISTINCT] | None = None
    precisions: Annotated[tuple[Precision, ...], FROM_LIST, Field(min_length=1), DISTINCT] = (
        "fp32",
    )
    quantization: Quantization | None = None
    runtimes: (
        Annotated[tuple[RuntimeName, ...], FROM_LIST, Field(min_length=1), DISTINCT] | None
    ) = None
    input_copy: InputCopy = "included"
    session: Session = Session()
    cuda: Cuda = Cuda()
    rounds: Annotated[int, Field(ge=1, le=MOST_ROUNDS)] = 1
    seed: Annotated[int, Field(ge=0, le=2**31 - 1)] = 0
    sampling: Sampling = Sampling()
    notes: Text | None = None
