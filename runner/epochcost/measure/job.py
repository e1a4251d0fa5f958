"""The job that a worker process receives, the messages that it sends, and its failures.

A job contains no arrays. It names files, such as the graph to run and the batches of inputs. All
messages are frozen records, written as JSON.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from epochcost.errors import CapabilityError, EpochcostError, InputError
from epochcost.plan.trial import SessionSettings
from epochcost.plan.work import Load, Requests
from epochcost.results.records import Pinning
from epochcost.specs.decoder import Decoder
from epochcost.specs.study import MOST_SAMPLES, Mode, Precision, Provider

Phase = Literal["starting", "warm-up", "sampling", "finishing"]
PositiveSeconds = Annotated[float, Field(gt=0, allow_inf_nan=False)]


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class CarriedValue(_Frozen):
    """A value that a step reads as ``input`` and passes to the next step as ``output``.

    Both have the same type and static shape. All elements of the first value are ``fill``, unless
    that value is drawn at random or is in a file of the job. If ``in_place``, the output may
    overwrite the input.
    """

    input: str
    output: str
    fill: float = 0.0
    in_place: bool = False


class SamplingRule(_Frozen):
    """Conditions that end the sampling of a trial.

    ``relative_half_width`` is half the width of the mean's 95 % confidence interval, divided by the
    mean. Sampling ends at this precision if it has ``minimum_samples`` and has lasted long enough.
    It must last at least ``minimum_seconds``, and at least the share ``minimum_share`` of
    ``budget_seconds``. Otherwise, sampling ends after ``most_samples`` or ``budget_seconds``. The
    warm-up's time counts towards ``budget_seconds``, but its steps are no samples.
    """

    relative_half_width: Annotated[float, Field(gt=0, lt=1)] = 0.02
    minimum_samples: Annotated[int, Field(ge=2)] = 30
    most_samples: Annotated[int, Field(ge=2, le=MOST_SAMPLES)] = MOST_SAMPLES
    minimum_seconds: Annotated[float, Field(ge=0)] = 0.5
    minimum_share: Annotated[float, Field(ge=0, lt=1)] = 0.1
    budget_seconds: PositiveSeconds = 20.0


class WarmUpRule(_Frozen):
    """Conditions that end the warm-up of a trial, see ``measure.sampling.is_settled``.

    ``minimum_steps`` gives time for lazy allocation and kernel selection, ``minimum_seconds`` for
    the clocks to rise. The warm-up takes at most ``budget_share`` of the sampling budget.
    """

    minimum_steps: Annotated[int, Field(ge=1)] = 10
    minimum_seconds: Annotated[float, Field(ge=0)] = 0.25
    tolerance: Annotated[float, Field(gt=0, lt=1)] = 0.05
    budget_share: Annotated[float, Field(gt=0, lt=1)] = 0.25


class Evaluation(_Frozen):
    """A graph that computes the loss on held-out batches, before and after a trial's steps.

    ``graph`` has static shapes, and ``loss`` is the name of its scalar output. ``batches`` is an
    .npz with an array ``[batches, batch, ...]`` for each input that differs between batches. In
    each evaluation, the values in ``carried`` start at zero, and each batch passes them to the next
    batch.
    """

    graph: Path
    batches: Path
    loss: str
    carried: tuple[CarriedValue, ...] = ()


class ServingFiles(_Frozen):
    """The load that LoadGen sends, and a graph file for each batch size."""

    load: Load
    graphs: dict[int, Path]


class AskedDecoder(_Frozen):
    """A decoder that a serving engine runs, and the requests that the engine gets.

    ``form`` has the decoder's sizes. The decoder's graph is ``JobFiles.graph``. The file
    ``JobFiles.batches`` has the prompts, their lengths and the lengths of the answers.
    """

    form: Decoder
    requests: Requests


class Reference(_Frozen):
    """Files to run a trial's first step in fp32, for comparison with the trial's outputs.

    ``batches`` is a file of arrays by input name (.npz). Only the first batch is compared, and
    ``examples`` is the number of examples in that batch. If ``provider`` is None, the reference
    runs on the trial's provider.
    """

    graph: Path
    batches: Path
    examples: Annotated[int, Field(ge=1)]
    provider: Provider | None = None


class JobFiles(_Frozen):
    """The files that a trial executes, with names and values of some inputs and outputs.

    ``graph`` is an ONNX file with static shapes: the whole training step, or the model for
    inference. ``batches`` is an .npz with an array ``[pool, batch, ...]`` for each graph input that
    changes; steps take the batches in turn. ``scalars`` are inputs with one value for the whole
    trial. ``series`` is an .npz with arrays ``[steps, ...]`` of inputs that follow a schedule;
    after the end, the last value stays. ``initial`` is an .npz with the first values of parameters.
    Parameters that it lacks are drawn with the job's seed, as the metadata of ``graph`` says. In
    inference, a parameter without a value is an error. ``carried`` are the values that a step
    passes to the next step. ``outputs`` are the names of outputs to read that are not carried.
    ``reference`` is the same work in fp32, with which outputs are compared. It is None if the trial
    is in fp32 or was compared in an earlier round, or if a serving engine runs ``graph``.

    ``serving`` is None for trials that time steps. With `ServingFiles`, the arrays in ``batches``
    are ``[examples, ...]``, and ``graph`` is the graph for the largest batch size. With
    `AskedDecoder`, a serving engine runs ``graph``, and ``batches`` has the prompts and the lengths
    of prompts and answers.
    """

    graph: Path
    batches: Path
    initial: Path | None = None
    scalars: dict[str, float] = {}
    series: Path | None = None
    carried: tuple[CarriedValue, ...] = ()
    outputs: tuple[str, ...] = ()
    reference: Reference | None = None
    evaluation: Evaluation | None = None
    serving: ServingFiles | AskedDecoder | None = None


class Job(JobFiles):
    """All data that a worker needs for a trial: its files and the settings of its run.

    ``runtime`` is the required package as ``package==version``. ``python`` is the interpreter, by
    default this program's. Without ``pinning``, all CPUs may be used. ``memory_limit_bytes`` limits
    memory on the host.
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


class Progress(_Frozen):
    """A worker's report of its progress.

    ``samples`` counts the steps of the phase. ``relative_half_width`` is half the width of the
    mean's confidence interval, divided by the mean; None until this is computed. In the phase
    ``starting``, ``elapsed_seconds`` counts from the start of the worker, later from the start of
    the warm-up. The warm-up and all later phases may take ``budget_seconds`` together.
    """

    phase: Phase
    samples: int = 0
    relative_half_width: float | None = None
    elapsed_seconds: float = 0.0
    budget_seconds: float


class Message(_Frozen):
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
