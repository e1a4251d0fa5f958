"""Whole epochs after a training trial, to see how far off an epoch from the mean step is.

The epochs run in a fresh worker of their own, on a data set of the declared size that is drawn from
the trial's seed and read from files. That worker samples steps as the trial does, before its epochs
and in pauses of them, so that what predicts and what happens are of one process and of the same
minutes. The trial's own measurement is not touched.
Epochs that would take too long are left out before anything is made for them, with the reason.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from epochcost.errors import EpochcostError
from epochcost.execute.build import build_job
from epochcost.execute.step import build_step
from epochcost.graphs.loading import load_model
from epochcost.measure.job import EpochFiles, Job, Progress, SamplingRule, WarmUpRule
from epochcost.measure.trial import run_trial
from epochcost.plan.binding import bind_model
from epochcost.plan.trial import Trial
from epochcost.results.records import MOST_EPOCH_SECONDS, Measurement, WholeEpochs
from epochcost.results.rounds import summary_of
from epochcost.specs.catalogue import Catalogue
from epochcost.specs.model import Model
from epochcost.specs.study import MOST_SAMPLES
from epochcost.train.batches import example_fields, examples_on_disk, step_targets, write_epoch
from epochcost.train.teacher import Teacher
from epochcost.units import seconds

# What of an epoch's steps may be spent on predicting it, warm-up included; but never fewer than
# the sampler's own minimum.
_MOST_SHARE = 0.1
# Steps settle as in a trial; seconds of warm-up would be a large part of a short epoch.
_WARM_UP = WarmUpRule(minimum_seconds=0)
# The step under the profiler.
_FIRST = 1
OnProgress = Callable[[Progress], None]


@dataclass(frozen=True)
class EpochRequest:
    """How many whole epochs to run, none of which may be expected to take more than a limit.

    ``examples`` shortens an epoch; None: as many as the model's spec declares.
    """

    count: int
    most_seconds: float = MOST_EPOCH_SECONDS
    examples: int | None = None


def run_whole_epochs(
    asked: EpochRequest,
    trial: Trial,
    measurement: Measurement,
    catalogue: Catalogue,
    folder: Path,
    on_progress: OnProgress,
) -> WholeEpochs | None:
    """Run the epochs in ``folder``, or say why not; None where the trial trains nothing."""
    steps = epoch_steps(asked, trial, catalogue)
    if steps is None:
        return None
    expected = steps * summary_of(measurement).mean
    if expected > asked.most_seconds:
        return WholeEpochs(steps=steps, left_out=_too_long(expected, asked.most_seconds))
    try:
        job = epoch_job(asked, trial, catalogue, folder)
        return run_trial(job, folder, on_progress).epochs
    except (EpochcostError, OSError) as error:
        return WholeEpochs(steps=steps, left_out=str(error))


def epoch_steps(asked: EpochRequest, trial: Trial, catalogue: Catalogue) -> int | None:
    """How many full batches an epoch has; None where the trial trains nothing."""
    training = catalogue.model(trial.model).training
    if trial.mode != "training" or training is None:
        return None
    return max(1, (asked.examples or training.examples_per_epoch) // trial.batch_size)


def epoch_job(asked: EpochRequest, trial: Trial, catalogue: Catalogue, folder: Path) -> Job:
    """Write the trial's graph and the epoch's examples into ``folder``; the job that runs them.

    Raises ModelError as ``build_job`` does, OSError where the disk is full.
    """
    model = catalogue.model(trial.model)
    steps = epoch_steps(asked, trial, catalogue)
    assert steps is not None, "only trainings have epochs"
    job = build_job(trial, model, catalogue.graph_path(model), folder)
    teacher = _teacher(trial, model, catalogue.graph_path(model))
    # The last incomplete batch is dropped after shuffling, so its examples belong to the epoch.
    examples = max(asked.examples or _declared(model), steps * trial.batch_size)
    stored = examples_on_disk(teacher, examples)
    samples = _sampled_steps(job.sampling, steps)
    epochs = EpochFiles(
        arrays=dict(write_epoch(teacher, stored, folder)),
        examples=examples,
        batch_size=trial.batch_size,
        steps=steps,
        count=asked.count,
        between=samples,
        seed=trial.seed,
    )
    predicting = {"sampling": _whole(job.sampling, samples), "warm_up": _WARM_UP}
    only = {"evaluation": None, "reference": None, "epochs": epochs}
    return job.model_copy(update=only | predicting)


def _sampled_steps(sampling: SamplingRule, steps: int) -> int:
    """As many samples as are left of the share of an epoch."""
    left = int(_MOST_SHARE * steps) - _WARM_UP.minimum_steps - _FIRST
    return min(max(left, sampling.minimum_samples), MOST_SAMPLES)


def _whole(sampling: SamplingRule, most: int) -> SamplingRule:
    """So many samples, or until the trial's time is up."""
    whole = {"minimum_samples": most, "minimum_seconds": 0.0, "minimum_share": 0.0}
    return sampling.model_copy(update={"most_samples": most} | whole)


def _declared(model: Model) -> int:
    assert model.training is not None, "only trainings have epochs"
    return model.training.examples_per_epoch


def _too_long(expected_seconds: float, most_seconds: float) -> str:
    return (
        f"an epoch would take about {seconds(expected_seconds)}; the limit is "
        f"{seconds(most_seconds)}: raise it with --epoch-limit"
    )


def _teacher(trial: Trial, model: Model, graph_path: Path) -> Teacher:
    """Who draws the examples: the same that draws a trial's batches."""
    assert model.training is not None, "only trainings have epochs"
    graph = bind_model(load_model(graph_path), model, trial.batch_size)
    step = build_step(graph, model, model.training, trial.provider, trial.seed)
    targets = step_targets(step, graph, model, model.training, trial.batch_size)
    return Teacher(example_fields(graph, model, trial.batch_size), targets, trial.seed)
