"""How well the mean step foretells whole epochs: predicted against actual, interleaved.

    python benchmarks/epoch_prediction.py                   three models, 20 repeats; 25 minutes
    python benchmarks/epoch_prediction.py --repeats 2 --examples 6400

Each repeat measures a model in a fresh worker, and then really runs an epoch in another fresh
worker: data read from files, shuffled, gathered, copied, trained. The prediction is the mean of the
first samples, so many that with the warm-up they are at most a tenth of the epoch's steps, but
never fewer than the sampler's own minimum. Repeats go around the models, so that a machine that
changes changes for all. Epochs are shortened where the whole would take an hour, and say so.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from epochcost import __version__
from epochcost.execute.epochs import EpochsAsked, epoch_job, epoch_steps
from epochcost.measure.environment import runtime_name
from epochcost.measure.job import Job, Sampling, WarmUp
from epochcost.measure.trial import run_trial
from epochcost.plan.digests import graph_digests
from epochcost.plan.make import Host, plan_study
from epochcost.plan.trial import Trial
from epochcost.specs.catalogue import Catalogue
from epochcost.specs.loader import load_catalogue
from epochcost.specs.study import Study
from epochcost.statistics import summarise

ROOT = Path(__file__).parents[1]
# Examples of an epoch here: all of the perceptron's; half a minute of the others on two cores.
EXAMPLES = {"mnist-mlp": 60_000, "mnist-cnn": 38_400, "lstm-text-generation": 76_800}
_BATCH = 128
_MOST_SHARE = 0.1
# Enough for the share of each epoch here; what is taken beyond it is not used.
_SAMPLING = Sampling(budget_seconds=12, minimum_seconds=0, minimum_share=0)
_ROW = "{:<22} {:>6} {:>8} {:>9} {:>9} {:>8} {:>7} {:>8}"


@dataclass(frozen=True)
class Subject:
    """One model: the job that measures a step, and the one that runs whole epochs."""

    model: str
    steps: int
    declared_steps: int
    step: Job
    epoch: Job
    folder: Path


@dataclass(frozen=True)
class Repeat:
    """One prediction and the epoch that followed it."""

    model: str
    steps: int
    used: int
    predicted_seconds: float
    actual_seconds: float
    inside: bool
    waiting_share: float

    @property
    def error(self) -> float:
        """By how much the prediction is above what happened."""
        return self.predicted_seconds / self.actual_seconds - 1


def main() -> None:
    """Go around the models and print every repeat, then each model's median error."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=20)
    parser.add_argument("--examples", type=int, help="of every model's epoch")
    parser.add_argument("--models", nargs="+", default=list(EXAMPLES), choices=list(EXAMPLES))
    options = parser.parse_args()
    catalogue = load_catalogue(ROOT)
    begun = time.perf_counter()
    with tempfile.TemporaryDirectory() as name:
        subjects = [
            _subject(catalogue, model, options.examples or EXAMPLES[model], Path(name) / model)
            for model in options.models
        ]
        print(_ROW.format("model", "steps", "used", "foretold", "actual", "error", "in ±", "waits"))
        found = [_shown(_repeat(one)) for _ in range(options.repeats) for one in subjects]
    _conclude(subjects, found)
    print(f"{time.perf_counter() - begun:.0f} s")


def _subject(catalogue: Catalogue, name: str, examples: int, folder: Path) -> Subject:
    folder.mkdir()
    trial = _trial(catalogue, name)
    asked = EpochsAsked(1, examples=examples)
    steps, whole = (epoch_steps(one, trial, catalogue) for one in (asked, EpochsAsked(1)))
    assert steps is not None
    assert whole is not None
    epoch = epoch_job(asked, trial, catalogue, folder)
    step = epoch.model_copy(update={"epochs": None, "sampling": _SAMPLING, "warm_up": WarmUp()})
    return Subject(name, steps, whole, step, epoch, folder)


def _trial(catalogue: Catalogue, model: str) -> Trial:
    """The model's training at the batch, whether or not a study names it."""
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
    host = Host("local", runtime_name(), __version__, {})
    planned = plan_study(catalogue, study, host, graphs=graph_digests(catalogue, {model}))
    (trial,) = planned.trials
    return trial


def _repeat(subject: Subject) -> Repeat:
    measured = run_trial(subject.step, subject.folder, lambda _: None)
    actual = run_trial(subject.epoch, subject.folder, lambda _: None).epochs
    assert actual is not None
    before = len(measured.warmup_seconds) + 1
    most = max(int(subject.steps * _MOST_SHARE) - before, _SAMPLING.minimum_samples)
    summary = summarise(measured.samples_seconds[:most])
    step = actual.mean_seconds / subject.steps
    return Repeat(
        model=subject.model,
        steps=subject.steps,
        used=before + summary.count,
        predicted_seconds=subject.steps * summary.mean,
        actual_seconds=actual.mean_seconds,
        inside=summary.interval.low <= step <= summary.interval.high,
        waiting_share=actual.waiting_share,
    )


def _shown(repeat: Repeat) -> Repeat:
    print(
        _ROW.format(
            repeat.model,
            repeat.steps,
            f"{repeat.used} {repeat.used / repeat.steps:.0%}",
            f"{repeat.predicted_seconds:.2f} s",
            f"{repeat.actual_seconds:.2f} s",
            f"{repeat.error:+.1%}",
            "yes" if repeat.inside else "no",
            f"{repeat.waiting_share:.1%}",
        ),
        flush=True,
    )
    return repeat


def _conclude(subjects: list[Subject], found: list[Repeat]) -> None:
    for subject in subjects:
        of_model = [one for one in found if one.model == subject.model]
        shortened = subject.steps < subject.declared_steps
        note = f"; {subject.declared_steps} steps shortened to {subject.steps}" if shortened else ""
        print(f"{subject.model}: {_words(of_model)}{note}")
    print(f"all: {_words(found)}")


def _words(found: list[Repeat]) -> str:
    error = median(abs(one.error) for one in found)
    inside = sum(one.inside for one in found)
    signed = median(one.error for one in found)
    return (
        f"median absolute error {error:.1%}, with its sign {signed:+.1%}; "
        f"{inside} of {len(found)} epochs within the interval; "
        f"waiting for data {median(one.waiting_share for one in found):.1%}"
    )


if __name__ == "__main__":
    main()
