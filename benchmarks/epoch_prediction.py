"""Error of an epoch's time predicted from the mean step, against `epochcost train`.

    python benchmarks/epoch_prediction.py                   three models, 10 repeats
    python benchmarks/epoch_prediction.py --models digits-cnn --repeats 2

Each repeat samples steps in a fresh worker, as `epochcost run` does, and then trains one epoch on
the model's data set, as `epochcost train` does, without the evaluation. Models alternate. The data
sets need no download.
"""

from __future__ import annotations

import argparse
import tempfile
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, median

from epochcost import __version__
from epochcost.execute.build import build_job
from epochcost.execute.training import PreparedTraining, TrainingRequest, prepare, run_repeat
from epochcost.measure.job import Job
from epochcost.measure.runtime import runtime_name
from epochcost.measure.trial import run_trial
from epochcost.plan.digests import graph_digests
from epochcost.plan.make import HostCapabilities, plan_study
from epochcost.plan.trial import Trial
from epochcost.specs.catalogue import Catalogue
from epochcost.specs.loader import load_catalogue
from epochcost.specs.study import Study
from epochcost.train.loop import Recipe

ROOT = Path(__file__).parents[1]
_MODELS = ("digits-cnn", "markov-gru", "cifar10-resnet8")
_BATCH = 32
_ROW = "{:<16} {:>6} {:>10} {:>10} {:>8} {:>8}"


@dataclass(frozen=True)
class Subject:
    """One model with the job that samples its steps and the training of one epoch."""

    model: str
    job: Job
    training: PreparedTraining
    folder: Path


@dataclass(frozen=True)
class Comparison:
    """A predicted epoch, and the epoch that was trained afterwards."""

    steps: int
    predicted_seconds: float
    actual_seconds: float
    waiting_share: float

    @property
    def error(self) -> float:
        """Relative error of the prediction, positive if it is too high."""
        return self.predicted_seconds / self.actual_seconds - 1


def main() -> None:
    """Run all models in turn and print every repeat, then each model's median error."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=10)
    parser.add_argument("--models", nargs="+", default=_MODELS, choices=_MODELS)
    options = parser.parse_args()
    catalogue = load_catalogue(ROOT)
    with tempfile.TemporaryDirectory() as name:
        subjects = [_subject(catalogue, model, Path(name) / model) for model in options.models]
        compared: dict[str, list[Comparison]] = {model: [] for model in options.models}
        print(_ROW.format("model", "steps", "predicted", "actual", "error", "waits"))
        for number in range(options.repeats):
            for subject in subjects:
                comparison = _compare(subject, number)
                compared[subject.model].append(comparison)
                _show(subject.model, comparison)
    for model, comparisons in compared.items():
        error = median(abs(comparison.error) for comparison in comparisons)
        signed = median(comparison.error for comparison in comparisons)
        print(f"{model}: median absolute error {error:.1%}, with its sign {signed:+.1%}")


def _subject(catalogue: Catalogue, name: str, folder: Path) -> Subject:
    folder.mkdir()
    model, trial = catalogue.model(name), _trial(catalogue, name)
    training = model.training
    assert training is not None
    assert model.dataset is not None
    dataset = catalogue.datasets[model.dataset]
    request = TrainingRequest(model, training, dataset, _BATCH, "cpu", trial.session)
    recipe = Recipe(training.schedule, training.optimizer.learning_rate, 1, 1)
    job = build_job(trial, model, catalogue.graph_path(model), folder)
    plain = job.model_copy(update={"evaluation": None})
    return Subject(name, plain, prepare(request, recipe, catalogue, ROOT / "data"), folder)


def _trial(catalogue: Catalogue, model: str) -> Trial:
    """The trial of the model's training at the benchmark's batch size."""
    study = Study.model_validate(
        {
            "id": "prediction",
            "name": "Prediction",
            "models": [model],
            "modes": ["training"],
            "providers": ["cpu"],
            "training_batch_sizes": [_BATCH],
        }
    )
    host = HostCapabilities("local", runtime_name(), __version__)
    planned = plan_study(catalogue, study, host, graphs=graph_digests(catalogue, {model}))
    (trial,) = planned.trials
    return trial


def _compare(subject: Subject, number: int) -> Comparison:
    measured = run_trial(subject.job, subject.folder, lambda _: None)
    with tempfile.TemporaryDirectory(dir=subject.folder) as state:
        epoch = run_repeat(subject.training, number, Path(state), lambda *_: None, lambda: False)
    assert epoch is not None
    return Comparison(
        steps=epoch.steps,
        predicted_seconds=epoch.steps * fmean(measured.samples_seconds),
        actual_seconds=epoch.step_seconds,
        waiting_share=epoch.waiting_seconds / epoch.step_seconds,
    )


def _show(model: str, comparison: Comparison) -> None:
    print(
        _ROW.format(
            model,
            comparison.steps,
            f"{comparison.predicted_seconds:.2f} s",
            f"{comparison.actual_seconds:.2f} s",
            f"{comparison.error:+.1%}",
            f"{comparison.waiting_share:.1%}",
        ),
        flush=True,
    )


if __name__ == "__main__":
    main()
