"""How well the mean step foretells whole epochs: predicted against actual, interleaved.

    python benchmarks/epoch_prediction.py                   three models, 20 repeats; 25 minutes
    python benchmarks/epoch_prediction.py --keep FILE.jsonl --most-seconds 90
    python benchmarks/epoch_prediction.py --repeats 2 --examples 6400

Each repeat is a fresh worker that warms up, samples steps and then really runs an epoch: data read
from files, shuffled, gathered, copied, trained. It is what `epochcost run --validate-epochs` does.
The epoch is foretold twice: by the samples in its pauses, which is what that command reports, and
by as many before it ("before"), to which the machine's own change is added. Samples are so many
that with the warm-up they are at most a tenth of the epoch's steps, but never fewer than the
sampler's own minimum. "unrest" is that change by itself: by how much a tenth of the very epoch is
off the epoch, in the median of its tenths. Repeats go around the models. Epochs are shortened where
the whole would take an hour, and say so. With `--keep` each repeat is added to a file, and a later
call goes on from there.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import fmean, median

from epochcost import __version__
from epochcost.execute.epochs import EpochRequest, epoch_job, epoch_steps
from epochcost.measure.job import Job
from epochcost.measure.runtime import runtime_name
from epochcost.measure.trial import run_trial
from epochcost.plan.digests import graph_digests
from epochcost.plan.make import HostCapabilities, plan_study
from epochcost.plan.trial import Trial
from epochcost.specs.catalogue import Catalogue
from epochcost.specs.loader import load_catalogue
from epochcost.specs.study import Study

ROOT = Path(__file__).parents[1]
# Examples of an epoch here: all of the perceptron's; half a minute of the others on two cores.
EXAMPLES = {"mnist-mlp": 60_000, "mnist-cnn": 38_400, "lstm-text-generation": 76_800}
_BATCH = 128
_ROW = "{:<22} {:>6} {:>8} {:>9} {:>9} {:>8} {:>8} {:>8} {:>8}"


@dataclass(frozen=True)
class Subject:
    """One model, and the job that samples its steps and then runs a whole epoch."""

    model: str
    steps: int
    declared_steps: int
    job: Job
    folder: Path


@dataclass(frozen=True)
class Repeat:
    """One prediction and the epoch that followed it."""

    model: str
    steps: int
    used: int
    before_seconds: float
    predicted_seconds: float
    actual_seconds: float
    unrest: float
    waiting_share: float

    @property
    def error(self) -> float:
        """By how much the prediction is above what happened."""
        return self.predicted_seconds / self.actual_seconds - 1

    @property
    def error_before(self) -> float:
        """The same of the samples before the epoch."""
        return self.before_seconds / self.actual_seconds - 1


class Kept:
    """The repeats so far, in a file that each is added to, or in memory alone."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        exists = path is not None and path.exists()
        lines = path.read_text(encoding="utf-8").splitlines() if exists else []
        self._repeats = [Repeat(**json.loads(line)) for line in lines]

    def add(self, repeat: Repeat) -> None:
        """Keep one for good."""
        self._repeats.append(repeat)
        if self._path is not None:
            with self._path.open("a", encoding="utf-8") as file:
                file.write(json.dumps(asdict(repeat)) + "\n")

    def of(self, subject: Subject) -> list[Repeat]:
        """Those of a model at the length of its epoch."""
        wanted = subject.model, subject.steps
        return [one for one in self._repeats if (one.model, one.steps) == wanted]


def main() -> None:
    """Go around the models and print every repeat, then each model's median error."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=20)
    parser.add_argument("--examples", type=int, help="of every model's epoch")
    parser.add_argument("--models", nargs="+", default=list(EXAMPLES), choices=list(EXAMPLES))
    parser.add_argument("--keep", type=Path, help="a .jsonl of the repeats so far")
    parser.add_argument("--most-seconds", type=float, help="begin no repeat after so long")
    options = parser.parse_args()
    begun, kept = time.perf_counter(), Kept(options.keep)
    catalogue = load_catalogue(ROOT)
    with tempfile.TemporaryDirectory() as name:
        subjects = [
            _subject(catalogue, model, options.examples or EXAMPLES[model], Path(name) / model)
            for model in options.models
        ]
        heads = ("steps", "used", "foretold", "actual", "error", "before", "unrest", "waits")
        print(_ROW.format("model", *heads))
        for subject in _missing(subjects, kept, options.repeats):
            if options.most_seconds and time.perf_counter() - begun > options.most_seconds:
                break
            kept.add(_shown(_repeat(subject)))
    _conclude(subjects, kept)
    print(f"{time.perf_counter() - begun:.0f} s")


def _missing(subjects: list[Subject], kept: Kept, repeats: int) -> Iterator[Subject]:
    """Around the models, those that have fewer repeats than this round would give them."""
    have = {one.model: len(kept.of(one)) for one in subjects}
    for number in range(repeats):
        yield from (one for one in subjects if have[one.model] <= number)


def _subject(catalogue: Catalogue, name: str, examples: int, folder: Path) -> Subject:
    folder.mkdir()
    trial = _trial(catalogue, name)
    asked = EpochRequest(1, examples=examples)
    steps, whole = (epoch_steps(one, trial, catalogue) for one in (asked, EpochRequest(1)))
    assert steps is not None
    assert whole is not None
    return Subject(name, steps, whole, epoch_job(asked, trial, catalogue, folder), folder)


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
    host = HostCapabilities("local", runtime_name(), __version__, {})
    planned = plan_study(catalogue, study, host, graphs=graph_digests(catalogue, {model}))
    (trial,) = planned.trials
    return trial


def _repeat(subject: Subject) -> Repeat:
    measured = run_trial(subject.job, subject.folder, lambda _: None)
    actual = measured.epochs
    assert actual is not None
    mean, parts = fmean(measured.samples_seconds), actual.epochs[0].parts_seconds
    return Repeat(
        model=subject.model,
        steps=subject.steps,
        used=1 + len(measured.warmup_seconds) + (actual.sampled_steps or 0),
        before_seconds=subject.steps * mean,
        predicted_seconds=actual.predicted_seconds(mean),
        actual_seconds=actual.mean_seconds,
        unrest=median(abs(part * len(parts) / sum(parts) - 1) for part in parts),
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
            f"{repeat.error_before:+.1%}",
            f"{repeat.unrest:.1%}",
            f"{repeat.waiting_share:.1%}",
        ),
        flush=True,
    )
    return repeat


def _conclude(subjects: list[Subject], kept: Kept) -> None:
    for subject in subjects:
        shortened = subject.steps < subject.declared_steps
        note = f"; {subject.declared_steps} steps shortened to {subject.steps}" if shortened else ""
        print(f"{subject.model}: {_words(kept.of(subject))}{note}")
    print(f"all: {_words([one for subject in subjects for one in kept.of(subject)])}")


def _words(found: list[Repeat]) -> str:
    if not found:
        return "no repeat yet"
    error = median(abs(one.error) for one in found)
    before = median(abs(one.error_before) for one in found)
    signed = median(one.error for one in found)
    return (
        f"{len(found)} epochs, median absolute error {error:.1%}, with its sign {signed:+.1%}; "
        f"by samples before it {before:.1%}; "
        f"the machine's unrest {median(one.unrest for one in found):.1%}; "
        f"waiting for data {median(one.waiting_share for one in found):.1%}"
    )


if __name__ == "__main__":
    main()
