"""A worker's job, which names files instead of arrays, the worker's messages, and its failures."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from epochcost.errors import CapabilityError, EpochcostError, InputError
from epochcost.plan.trial import SessionSettings
from epochcost.plan.work import Load, Requests
from epochcost.results.fields import Record
from epochcost.results.records import Pinning
from epochcost.specs.decoder import Decoder
from epochcost.specs.study import MOST_SAMPLES, Mode, Precision, Provider

Phase = Literal["starting", "warm-up", "sampling", "finishing"]


class CarriedValue(Record):
    """A value that a step reads as ``input`` and passes to the next step as ``output``.

    Both have the same type and static shape. All elements of the first value are ``fill``, unless
    it is a parameter. If ``in_place``, the output may overwrite the input.
    """

    input: str
    output: str
    fill: float = 0.0
    in_place: bool = False


class SamplingRule(Record):
    """Conditions that end the sampling of a trial.

    Sampling ends when half the mean's 95 % confidence interval is at most ``relative_half_width``
    of the mean, and all minima are reached. Otherwise it ends after ``most_samples`` or
    ``budget_seconds``. ``minimum_share`` is a share of ``budget_seconds``, which includes the
    warm-up.
    """

    relative_half_width: Annotated[float, Field(gt=0, lt=1)] = 0.02
    minimum_samples: Annotated[int, Field(ge=2)] = 30
    most_samples: Annotated[int, Field(ge=2, le=MOST_SAMPLES)] = MOST_SAMPLES
    minimum_seconds: Annotated[float, Field(ge=0)] = 0.5
    minimum_share: Annotated[float, Field(ge=0, lt=1)] = 0.1
    budget_seconds: Annotated[float, Field(gt=0, allow_inf_nan=False)] = 20.0


class WarmUpRule(Record):
    """Conditions that end the warm-up of a trial, see ``measure.sampling.is_settled``.

    ``minimum_steps`` gives time for lazy allocation and kernel selection, ``minimum_seconds`` for
    the clocks to rise. ``budget_share`` is the largest share of the sampling budget.
    """

    minimum_steps: Annotated[int, Field(ge=1)] = 10
    minimum_seconds: Annotated[float, Field(ge=0)] = 0.25
    tolerance: Annotated[float, Field(gt=0, lt=1)] = 0.05
    budget_share: Annotated[float, Field(gt=0, lt=1)] = 0.25


class Evaluation(Record):
    """A graph that computes the loss on held-out batches, before and after a trial's steps.

    ``loss`` is the name of its scalar output. For each input that changes, the .npz ``batches`` has
    an array ``[batches, batch, ...]``. The values in ``carried`` start at zero at the first batch.
    """

    graph: Path
    batches: Path
    loss: str
    carried: tuple[CarriedValue, ...] = ()


class ServingFiles(Record):
    """The load that LoadGen sends, and a graph file for each batch size."""

    load: Load
    graphs: dict[int, Path]


class AskedDecoder(Record):
    """A decoder with the sizes ``form``, and the requests that its serving engine gets."""

    form: Decoder
    requests: Requests


class Reference(Record):
    """Files to run a trial's first step in fp32, for comparison with the trial's outputs.

    The first batch in the .npz has ``examples`` examples. If ``provider`` is None, the reference
    runs on the trial's provider.
    """

    graph: Path
    batches: Path
    examples: Annotated[int, Field(ge=1)]
    provider: Provider | None = None


class JobFiles(Record):
    """The files that a trial executes, with names and values of some inputs and outputs.

    ``graph`` is an ONNX file with static shapes: a whole training step, or a model for inference.
    ``batches`` is an .npz with an array ``[pool, batch, ...]`` for each graph input that changes;
    steps take the batches in turn. ``series`` is an .npz with arrays ``[steps, ...]`` of inputs
    that follow a schedule; after the end, the last value stays. ``initial`` is an .npz of
    parameters. Parameters that it lacks are drawn with the job's seed, as the metadata of ``graph``
    says. ``outputs`` are the names of outputs to read that are not carried. ``reference`` is None
    if no outputs are compared.

    ``serving`` is None for trials that time steps. With `ServingFiles`, ``batches`` has arrays
    ``[examples, ...]``, and ``graph`` is for the largest batch size. With `AskedDecoder`, a serving
    engine runs ``graph``, and ``batches`` has the prompts and the lengths of prompts and answers.
    """

    graph: Path
    batches: Path
    initial: Path | None = None
    scalars: dict[str, float] = Field(default_factory=dict)
    series: Path | None = None
    carried: tuple[CarriedValue, ...] = ()
    outputs: tuple[str, ...] = ()
    reference: Reference | None = None
    evaluation: Evaluation | None = None
    serving: ServingFiles | AskedDecoder | None = None


class Job(JobFiles):
    """All data that a worker needs for a trial: its files and the settings of its run.

    ``runtime`` is ``package==version``. If ``python`` is None, the worker runs under this
    interpreter. Without ``pinning``, all CPUs may be used. ``memory_limit_bytes`` limits host
    memory.
    """

    mode: Mode
    provider: Provider
    runtime: str | None = None
    python: Path | None = None
    session: SessionSettings = SessionSettings()
    pinning: Pinning | None = None
    memory_limit_bytes: Annotated[int, Field(gt=0)] | None = None
    seed: int = 0
    precision: Precision = "fp32"
    sampling: SamplingRule = SamplingRule()
    warm_up: WarmUpRule = WarmUpRule()


class Progress(Record):
    """A worker's report of its progress.

    ``samples`` counts the steps of the phase. ``relative_half_width`` (see `SamplingRule`) is None
    until it is computed. ``elapsed_seconds`` counts from the start of the warm-up, in the phase
    ``starting`` from the worker's. Warm-up and sampling together may take ``budget_seconds``.
    """

    phase: Phase
    samples: int = 0
    relative_half_width: float | None = None
    elapsed_seconds: float = 0.0
    budget_seconds: float


class Message(Record):
    """A line that a worker prints: its progress, or the reason why the worker cannot continue."""

    progress: Progress | None = None
    failure: str | None = None


class TrialFailed(EpochcostError):  # noqa: N818 - the field's name for this outcome
    """The worker died, hung or could not continue; the message has the worker's last lines."""

    exit_code = CapabilityError.exit_code


class TrialRefused(TrialFailed):
    """The worker found an error in the graph or the data, or the training diverged."""

    exit_code = InputError.exit_code


class OutOfMemory(TrialFailed):
    """The trial needs more memory than the host or the device has."""


class PlacementError(CapabilityError):
    """A part of the graph that should run on a GPU ran on the CPU."""


class JobError(InputError):
    """An input of a job, such as a shape in a file, is wrong, or the job's training diverged."""
