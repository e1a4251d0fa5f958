"""Collect measured and published times as objects of class `Observation`, without prices."""

from __future__ import annotations

import datetime as dt
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Literal, get_args

from epochcost.analysis.inputs import Inputs, StepRatio, StoredResult
from epochcost.analysis.machines import Machine, published_machine
from epochcost.analysis.representatives import doubts_about, is_of_steps, representatives
from epochcost.cost.estimate import Estimate, MachineTime, Time
from epochcost.predict.joint import Draws
from epochcost.results.environment import Energy
from epochcost.results.rounds import summary_of
from epochcost.specs.api import MILLION
from epochcost.specs.catalogue import Catalogue
from epochcost.specs.model import Model, Training
from epochcost.specs.published import Published
from epochcost.specs.study import Mode
from epochcost.statistics.interval import Bounded
from epochcost.statistics.summary import Outliers, Summary, outliers
from epochcost.units import render_runtime

Kind = Literal["measured", "published", "predicted"]
# The kinds of evidence, the best first.
KINDS: tuple[Kind, ...] = get_args(Kind)
Goal = Literal["epoch", "full", "million"]
Stack = Literal["onnxruntime", "published"]
STACK_NAMES: Mapping[Stack, str] = {
    "onnxruntime": "ONNX Runtime",
    "published": "published programs",
}
# Our runtime among the frameworks of published times, in any version.
_OURS = "onnx runtime"
# A measured or predicted time whose interval is wider is no answer.
MOST_HIGH_OVER_LOW = 100


@dataclass(frozen=True, slots=True)
class Workload:
    """A model that has a spec (``is_model``) or is known only from a published table."""

    id: str
    name: str
    task: str
    is_model: bool

    @property
    def key(self) -> str:
        """An id that no other workload has; a prefix distinguishes published tables from models."""
        return self.id if self.is_model else f"published/{self.id}"

    @classmethod
    def of_model(cls, model: Model) -> Workload:
        """Make the workload of a model that has a spec."""
        return cls(model.id, model.name, model.task, is_model=True)

    @classmethod
    def of_source(cls, catalogue: Catalogue, source: Published) -> Workload:
        """Make the workload whose times a published table lists: the model, if it has a spec."""
        model = catalogue.models.get(source.model or "")
        if model is not None:
            return cls.of_model(model)
        return cls(source.id, source.workload, "published table", is_model=False)


@dataclass(frozen=True, slots=True)
class Evidence:
    """The place where readers can check a figure: a file on the site, or a source's page."""

    label: str
    uri: str


@dataclass(frozen=True, slots=True)
class Observation:
    """The time of a workload on a machine, with everything that prices and pages need.

    ``step`` is the mean time of a batch, None if a source states epochs only. ``epoch`` is None for
    inference. ``epochs_known`` is False if the batch is larger than every batch size in the model's
    spec. Such a training may need more epochs (Shallue et al., arXiv 1811.03600). ``own_price`` is
    the id of the price that a published time's source states. ``watts`` is the power that
    ``meters`` read. ``peak_memory_bytes`` is that of the measuring process: GPU memory for CUDA,
    else host memory.

    ``variant`` describes settings other than the defaults. ``vcpus`` is the number of CPUs to which
    the trial was pinned, None for all. ``agreement`` compares the outputs with those in fp32.
    ``precision`` is that of most arithmetic, empty if unknown. ``draws`` are samples of log(time /
    predicted time). The draws of a model on several machines are correlated.
    """

    workload: Workload
    machine: Machine
    kind: Kind
    mode: Mode
    batch_size: int
    software: str
    step: Time | None
    epoch: Time | None
    epochs: int | Decimal | None
    date: dt.date
    evidence: Evidence
    summary: Summary | None = None
    stop_reason: str | None = None
    own_price: str | None = None
    step_ratio: StepRatio | None = None
    doubts: tuple[str, ...] = ()
    epochs_known: bool = True
    watts: float | None = None
    meters: str | None = None
    variant: str = ""
    agreement: str | None = None
    vcpus: int | None = None
    outliers: Outliers | None = None
    peak_memory_bytes: int | None = None
    # Times of different stacks are never ranked together.
    stack: Stack = "onnxruntime"
    precision: str = "fp32"
    draws: Draws | None = field(default=None, compare=False, repr=False)

    @property
    def imprecise(self) -> str:
        """The reason why a measured time is too imprecise to choose a machine by it, or ""."""
        step = self.step
        if self.kind != "measured" or step is None or step.high <= MOST_HIGH_OVER_LOW * step.low:
            return ""
        half = max(step.high - step.mean, step.mean - step.low) / step.mean
        return f"not precise: its time is known to ±{100 * half:.0f} % only"

    @property
    def full(self) -> Time | None:
        """The time of all epochs of a training."""
        return self.epoch.scaled(self.epochs) if self.epoch and self.epochs else None

    @property
    def step_joules(self) -> Decimal | None:
        """Energy that the machine's metered parts use in an average step; None without a meter."""
        if self.watts is None or self.step is None:
            return None
        # No meter is accurate to more than six digits.
        return Decimal(f"{self.watts * float(self.step.mean):.6g}")

    @property
    def step_interval(self) -> Bounded:
        """The step's time with its interval; ``step`` must not be None."""
        assert self.step is not None, "a measured observation has a step"
        return in_floats(self.step)

    @property
    def million(self) -> Time | None:
        """The time of inference on a million examples; None for training."""
        if self.mode != "inference" or self.step is None:
            return None
        return self.step.scaled(Decimal(MILLION) / self.batch_size)

    @property
    def goals(self) -> tuple[Goal, ...]:
        """The goals that are priced: epoch and full training, or a million inferences."""
        return ("epoch", "full") if self.mode == "training" else ("million",)

    def time(self, goal: Goal) -> Time | None:
        """The time for a goal; None if the goal is for the other mode (training or inference)."""
        if goal == "million":
            return self.million
        return self.epoch if goal == "epoch" else self.full

    def work(self, goal: Goal) -> MachineTime:
        """The machine time to bill for a goal.

        A full training is billed as a job of its own. The other goals are parts of a longer use of
        the machine, without starts and interruptions; their time is not rounded up.
        """
        time = self.time(goal)
        assert time is not None, "a goal that the work is about has a time"
        machine = self.machine
        return MachineTime(time, machine.vcpus, machine.device == "cuda", shared=goal != "full")


def observe(inputs: Inputs, workloads: Collection[str] | None = None) -> tuple[Observation, ...]:
    """Make an observation of each published time, and of each time measured in default settings.

    The default settings are fp32 on the first GPU or on all CPUs. Of repeated trials on a host,
    `representatives` chooses a result. Published times of a job on several machines, LoadGen's
    scenarios and the phases of decoders are left out. Measured times come first, in the order of
    the files. ``workloads`` are ids; None means all workloads.
    """
    published = _published(inputs.catalogue, workloads)
    return *_measured(inputs, workloads, variants=False), *published


def observe_variants(inputs: Inputs) -> tuple[Observation, ...]:
    """Make an observation of each time measured in non-default settings, such as fp16."""
    return tuple(_measured(inputs, None, variants=True))


def _measured(
    inputs: Inputs, workloads: Collection[str] | None, *, variants: bool
) -> Iterator[Observation]:
    for stored in representatives([file for file in inputs.stored if is_of_steps(file.result)]):
        trial = stored.result.trial
        if bool(trial.variant) == variants and (workloads is None or trial.model in workloads):
            yield _from_result(inputs, stored)


def _from_result(inputs: Inputs, stored: StoredResult) -> Observation:
    result, trial = stored.result, stored.result.trial
    model, summary = inputs.catalogue.models[trial.model], summary_of(result)
    step = mean_time(summary)
    training = model.training if trial.mode == "training" else None
    energy = result.measurement.energy or Energy()
    too_large = _large_batch_doubts(training, trial.batch_size)
    agreement = result.measurement.agreement
    ratio = inputs.ratios.of(trial)
    return Observation(
        workload=Workload.of_model(model),
        machine=inputs.machine(result),
        kind="measured",
        mode=trial.mode,
        batch_size=trial.batch_size,
        software=render_runtime(trial.runtime),
        precision=trial.precision,
        step=step,
        epoch=epoch_time(step, training, trial.batch_size),
        epochs=training.epochs if training else None,
        date=result.measurement.started_at.date(),
        evidence=Evidence("result file", stored.uri),
        summary=summary,
        stop_reason=result.measurement.stop_reason,
        peak_memory_bytes=result.peak_bytes,
        step_ratio=ratio if training else None,
        doubts=(*doubts_about(result), *too_large),
        epochs_known=not too_large,
        watts=energy.watts,
        meters=energy.meter or None,
        variant=trial.variant,
        agreement=agreement.summary if agreement else None,
        vcpus=trial.vcpus,
        outliers=outliers(result.measurement.samples_seconds),
    )


def _large_batch_doubts(training: Training | None, batch_size: int) -> tuple[str, ...]:
    if training is None or batch_size <= (most := max(training.batch_sizes)):
        return ()
    return (f"more epochs may be needed: the source trains at batches of up to {most:,}",)


def epoch_time(step: Time, training: Training | None, batch_size: int) -> Time | None:
    """The time of an epoch, without its incomplete last batch; None for inference."""
    if training is None:
        return None
    return step.scaled(max(1, training.examples_per_epoch // batch_size))


def _published(catalogue: Catalogue, workloads: Collection[str] | None) -> Iterator[Observation]:
    for source in catalogue.published.values():
        workload = Workload.of_source(catalogue, source)
        if workloads is not None and workload.id not in workloads:
            continue
        for timing in source.timings:
            steps, epochs, framework = timing.total_steps, timing.epochs, timing.framework or ""
            # The time of a job on several machines is not a figure of one.
            if timing.count != 1 or timing.batch_size is None or epochs is None:
                continue
            yield Observation(
                workload=workload,
                machine=published_machine(catalogue.hardware[timing.hardware]),
                kind="published",
                mode="training",
                batch_size=timing.batch_size,
                software=framework or "framework not stated",
                stack="onnxruntime" if _OURS in framework.casefold() else "published",
                precision="",
                step=Time.exact(timing.total_seconds / steps) if steps else None,
                epoch=Time.exact(timing.total_seconds / epochs),
                epochs=int(epochs) if epochs == int(epochs) else epochs,
                date=source.as_of,
                evidence=Evidence(f"{source.authors}, {source.year}", f"sources/{source.page}.md"),
                own_price=timing.price,
            )


def workloads(catalogue: Catalogue, observations: Iterable[Observation]) -> tuple[Workload, ...]:
    """The workloads of all models, then the workloads that only published tables have."""
    models = [Workload.of_model(model) for model in catalogue.models.values()]
    observed = dict.fromkeys(observation.workload for observation in observations)
    return (*models, *(workload for workload in observed if not workload.is_model))


def mean_time(summary: Summary) -> Time:
    """The mean of the sampled times that ``summary`` describes, with its confidence interval."""
    return Time.from_floats(summary.interval.low, summary.mean, summary.interval.high)


def in_floats(value: Time | Estimate) -> Bounded:
    """Convert a time or cost and its interval to floats, for ratios and charts."""
    return Bounded(float(value.low), float(value.mean), float(value.high))
