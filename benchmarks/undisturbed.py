"""Steps beside programs that disturb them, as they were and undisturbed, against a calm machine.

    python benchmarks/undisturbed.py [--model mnist-cnn …] [--seconds 6] [--rounds 1] [--keep FILE]

Each model is measured in a process of its own beside nothing, beside a program that takes a CPU for
40 of every 80 ms (half), one that comes and goes every 0.3 to 2.5 s (bursts) and one that is always
there (always), in turns where there are more ``--rounds``: processes differ undisturbed, too.
Printed are, over the calm mean, the mean as it was and undisturbed with its interval, and how far
that is off; then for combinations of three such rounds how far the slowest is above the fastest, as
they were and corrected, at the median and the 90th percentile. ``--keep`` writes what was measured,
as the tests hold it. Run it on a machine that does nothing else.
"""

from __future__ import annotations

import argparse
import contextlib
import multiprocessing
import os
import random
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping
from itertools import accumulate, pairwise
from pathlib import Path

import numpy as np
from pydantic import TypeAdapter

from epochcost.cli.bundled import own_catalogue
from epochcost.execute.build import build_job
from epochcost.execute.planning import RunRequest, plan_run
from epochcost.measure.environment import detect_environment
from epochcost.measure.job import SamplingRule
from epochcost.measure.trial import run_trial
from epochcost.plan.trial import Trial
from epochcost.results.format import FORMAT_VERSION
from epochcost.results.pace import OwnPace, PaceKey, own_paces
from epochcost.results.records import Measurement, Result
from epochcost.results.rounds import add_round
from epochcost.results.undisturbed import undisturbed, undisturbed_rounds

_MODELS = ("imdb-fasttext", "cifar10-resnet44", "mnist-cnn", "resnet50")
# One training step of these takes longer than a disturbance.
_SLOW = {"resnet50"}
KINDS = ("calm", "half", "bursts", "always")
_COMBINATIONS = (
    ("calm", "half", "bursts"),
    ("calm", "calm", "bursts"),
    ("calm", "half", "half"),
    ("half", "bursts", "bursts"),
)
_ROW = "{:<20} {:<8} {:>9} {:>12} {:>16}"
_SETTLES_SECONDS = 0.5


def _burn(until: float) -> None:
    number = 1
    while time.monotonic() < until:
        for _ in range(20_000):
            number = (number * 1_103_515_245 + 12_345) & 0x7FFFFFFF


def disturb(kind: str) -> None:
    """Take a CPU, for ever or at times, as a program in a group of the scheduler of its own."""
    os.setsid()
    draw = random.Random(1)
    while True:
        on, off = {
            "half": (0.04, 0.04),
            "bursts": (draw.uniform(0.3, 2.5), draw.uniform(0.3, 2.5)),
            "always": (60.0, 0.0),
        }[kind]
        _burn(time.monotonic() + on)
        time.sleep(off)


@contextlib.contextmanager
def disturbed(kind: str) -> Iterator[None]:
    """Another program beside what is measured; none where it is to be calm."""
    if kind == "calm":
        yield
        return
    process = multiprocessing.Process(target=disturb, args=(kind,), daemon=True)
    process.start()
    time.sleep(_SETTLES_SECONDS)
    try:
        yield
    finally:
        process.kill()
        process.join()


def trials(models: list[str]) -> Iterator[Trial]:
    """A training at the smallest batch of each model, or its inference where that takes seconds."""
    planned = plan_run(own_catalogue(), RunRequest(models=tuple(models), providers=("cpu",)))
    for model in models:
        mine = [one for one in planned.trials if one.model == model and not one.variant]
        mode = "inference" if model in _SLOW else "training"
        yield min((one for one in mine if one.mode == mode), key=lambda one: one.batch_size)


def measured(trial: Trial, kind: str, seconds: float) -> Result:
    """One round of a trial beside a disturbance."""
    catalogue = own_catalogue()
    model = catalogue.model(trial.model)
    rule = SamplingRule(relative_half_width=1e-6, minimum_samples=20, budget_seconds=seconds)
    with tempfile.TemporaryDirectory() as name:
        job = build_job(trial, model, catalogue.graph_path(model), Path(name), None)
        job = job.model_copy(update={"sampling": rule, "evaluation": None})
        with disturbed(kind):
            measurement = run_trial(job, Path(name), lambda _: None)
    return Result(
        format_version=FORMAT_VERSION,
        trial_id=trial.id,
        trial=trial,
        hardware="local",
        measurement=measurement.model_copy(update={"software": None}),
        environment=detect_environment(),
    )


def joined(results: list[Result]) -> Result:
    """Rounds of one trial as one result."""
    whole: Measurement | None = None
    for one in results:
        whole = add_round(whole, one.measurement, 0.02)
    return results[0].model_copy(update={"measurement": whole})


def main() -> int:
    """Measure, and print both tables."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--model", nargs="+", default=list(_MODELS))
    parser.add_argument("--seconds", type=float, default=6.0)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--keep", type=Path)
    asked = parser.parse_args()
    rounds = defaultdict[tuple[str, str], list[Result]](list)
    for _ in range(asked.rounds):
        for trial in trials(asked.model):
            for kind in KINDS:
                rounds[trial.model, kind].append(measured(trial, kind, asked.seconds))
    found = {key: joined(several) for key, several in rounds.items()}
    if asked.keep:
        asked.keep.write_bytes(TypeAdapter(list[Result]).dump_json(list(found.values())))
    paces = own_paces(found.values())
    _show_steps(found, paces)
    spreads = [
        _spread(joined([rounds[model, kind][0] for kind in kinds]), paces)
        for model in asked.model
        for kinds in _COMBINATIONS
    ]
    for name, values in zip(("as it was", "undisturbed"), zip(*spreads, strict=True), strict=True):
        median, high = np.quantile(values, (0.5, 0.9))
        print(f"slowest of three rounds over the fastest, {name}: {median:.1%}, p90 {high:.1%}")
    return 0


def _show_steps(found: Mapping[tuple[str, str], Result], paces: Mapping[PaceKey, OwnPace]) -> None:
    """A line for each model and disturbance, then how far those undisturbed are off."""
    print(_ROW.format("model", "beside", "as it was", "undisturbed", "interval"))
    off: list[float] = []
    for (model, kind), one in found.items():
        calm = float(np.mean(found[model, "calm"].measurement.samples_seconds))
        mean = float(np.mean(one.measurement.samples_seconds)) / calm
        told = undisturbed(one, paces)
        step = told.step if told else None
        words = "-" if told is None else "unknown" if step is None else f"{step.mean / calm:.3f}"
        ends = "" if step is None else f"{step.low / calm:.2f} to {step.high / calm:.2f}"
        print(_ROW.format(model, kind, f"{mean:.3f}", words, ends))
        if step is not None and kind != "calm":
            off.append(abs(step.mean / calm - 1))
    if off:
        middle, most = np.median(off), max(off)
        print(f"undisturbed beside others off by {middle:.1%} at the median, {most:.1%} at most")


def _spread(result: Result, paces: Mapping[PaceKey, OwnPace]) -> tuple[float, float]:
    """How far the slowest round is above the fastest, as it was and undisturbed."""
    samples, counts = result.measurement.samples_seconds, result.measurement.samples_by_round
    bounds = accumulate(counts, initial=0)
    plain = [float(np.mean(samples[begin:end])) for begin, end in pairwise(bounds)]
    calm = [one for one in undisturbed_rounds(result, paces) if one is not None]
    return max(plain) / min(plain) - 1, max(calm) / min(calm) - 1


if __name__ == "__main__":
    sys.exit(main())
