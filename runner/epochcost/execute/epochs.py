"""Whole epochs after a training trial, to see how far off an epoch from the mean step is.

The epochs run in a fresh worker of their own, on a data set of the declared size that is drawn from
the trial's seed and read from files. The trial's own measurement is not touched. Epochs that would
take too long are left out before anything is made for them, with the reason.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from epochcost.errors import EpochcostError
from epochcost.execute.binding import bound
from epochcost.execute.build import build_job
from epochcost.execute.step import step_of
from epochcost.graphs.loading import load_model
from epochcost.measure.job import EpochFiles, Progress, Sampling
from epochcost.measure.trial import run_trial
from epochcost.plan.trial import Trial
from epochcost.results.epochs import MOST_EPOCH_SECONDS, WholeEpochs
from epochcost.results.records import Measurement
from epochcost.results.summary import summary_of
from epochcost.specs.catalogue import Catalogue
from epochcost.specs.model import Model
from epochcost.train.batches import example_fields, step_targets
from epochcost.train.epoch_data import examples_on_disk, write_epoch
from epochcost.train.teacher import Teacher
from epochcost.units import seconds

# Before the epochs the worker warms up as always and takes the fewest samples there are.
_SHORT = Sampling(relative_half_width=0.5, minimum_samples=3, minimum_seconds=0.0, minimum_share=0)
OnProgress = Callable[[Progress], None]


@dataclass(frozen=True)
class EpochsAsked:
    """How many whole epochs to run, none of which may be expected to take more than a limit.

    ``examples`` shortens an epoch; None: as many as the model's spec declares.
    """

    count: int
    most_seconds: float = MOST_EPOCH_SECONDS
    examples: int | None = None


def whole_epochs(
    asked: EpochsAsked,
    trial: Trial,
    measurement: Measurement,
    catalogue: Catalogue,
    folder: Path,
    on_progress: OnProgress,
) -> WholeEpochs | None:
    """Run the epochs in ``folder``, or say why not; None where the trial trains nothing."""
    model = catalogue.model(trial.model)
    if trial.mode != "training" or model.training is None:
        return None
    examples = asked.examples or model.training.examples_per_epoch
    steps = max(1, examples // trial.batch_size)
    expected = steps * summary_of(measurement).mean
    if expected > asked.most_seconds:
        return WholeEpochs(steps=steps, left_out=_too_long(expected, asked.most_seconds))
    try:
        files = _Files(trial, model, catalogue.graph_path(model), folder)
        return _run(asked.count, files, examples, steps, on_progress)
    except (EpochcostError, OSError) as error:
        return WholeEpochs(steps=steps, left_out=str(error))


def _too_long(expected_seconds: float, most_seconds: float) -> str:
    return (
        f"an epoch would take about {seconds(expected_seconds)}; the limit is "
        f"{seconds(most_seconds)}: raise it with --epoch-limit"
    )


@dataclass(frozen=True)
class _Files:
    """What a worker's files are made of, and where they go."""

    trial: Trial
    model: Model
    graph_path: Path
    folder: Path

    @property
    def teacher(self) -> Teacher:
        """Who draws the examples: the same that draws a trial's batches."""
        trial, training = self.trial, self.model.training
        assert training is not None, "only trainings have epochs"
        graph = bound(load_model(self.graph_path), self.model, trial.batch_size)
        step = step_of(graph, self.model, training, trial.provider, trial.seed)
        targets = step_targets(step, graph, self.model, training, trial.batch_size)
        fields = example_fields(graph, self.model, trial.batch_size)
        return Teacher(fields, targets, trial.seed)


def _run(
    count: int, files: _Files, examples: int, steps: int, on_progress: OnProgress
) -> WholeEpochs | None:
    job = build_job(files.trial, files.model, files.graph_path, files.folder)
    teacher = files.teacher
    stored = examples_on_disk(teacher, examples)
    epochs = EpochFiles(
        arrays=dict(write_epoch(teacher, stored, files.folder)),
        examples=max(examples, files.trial.batch_size),
        batch_size=files.trial.batch_size,
        steps=steps,
        count=count,
        seed=files.trial.seed,
    )
    asked = job.model_copy(
        update={"evaluation": None, "reference": None, "sampling": _SHORT, "epochs": epochs}
    )
    return run_trial(asked, files.folder, on_progress).epochs
