"""How often a short run's interval contains the mean of all other real runs.

A short run is ``rounds`` fresh workers, spread over the whole time as by ``epochcost run
--rounds``. The reference is the mean of all other runs, which are as many fresh processes in the
same period.
"""

from __future__ import annotations

import contextlib
import math
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import accumulate, pairwise
from pathlib import Path

import numpy as np
from pydantic import TypeAdapter
from wilson import wilson_interval

from epochcost.execute.build import build_job
from epochcost.execute.planning import plan_run
from epochcost.measure.job import SamplingRule
from epochcost.measure.trial import run_trial
from epochcost.plan.make import RunRequest
from epochcost.plan.trial import Trial
from epochcost.results.records import Measurement
from epochcost.results.rounds import add_round
from epochcost.specs.loader import load_catalogue
from epochcost.statistics import Bounded, summarise

ROOT = Path(__file__).parents[1]
Measurer = Callable[[SamplingRule], Measurement]


@dataclass(frozen=True)
class Asked:
    """The training of a model that is measured, and the settings of its short runs."""

    model: str
    batch_size: int
    runs: int
    budget_seconds: float
    rounds: int
    keep: Path | None


def against_all_others(settings: Asked) -> None:
    """Measure the short runs, and print how often intervals contain the others' mean."""
    with _measurer(settings.model, settings.batch_size) as measured:
        shorts = _measure(measured, settings.runs, settings.budget_seconds, settings.rounds)
    if settings.keep:
        settings.keep.write_bytes(TypeAdapter(list[Measurement]).dump_json(shorts))
    _show([mean_step(run) for run in shorts])
    processes = np.array([mean for run in shorts for mean in _round_means(run)])
    spread = processes.std(ddof=1) / processes.mean()
    print(f"spread of {len(processes)} processes: {spread:.2%} (one deviation)")


def _measure(
    measured: Measurer, runs: int, budget_seconds: float, rounds: int
) -> list[Measurement]:
    """Measure the short runs. Each round is one pass over all runs."""
    rule = SamplingRule(
        relative_half_width=min(0.5, 0.02 * math.sqrt(rounds)),
        minimum_samples=max(10, math.ceil(30 / rounds)),
        budget_seconds=budget_seconds / rounds,
    )
    shorts: dict[int, Measurement] = {}
    for number in range(rounds):
        for run in range(runs):
            shorts[run] = add_round(shorts.get(run), measured(rule), rule.relative_half_width)
            if run % 10 == 9:
                print(f"round {number + 1} of {rounds}: {run + 1} of {runs} runs", flush=True)
    return list(shorts.values())


@contextlib.contextmanager
def _measurer(model_id: str, batch_size: int) -> Iterator[Measurer]:
    catalogue = load_catalogue(ROOT)
    planned = plan_run(catalogue, RunRequest(models=(model_id,), providers=("cpu",)))
    trial = next(trial for trial in planned.trials if _is_training_at(trial, batch_size))
    model = catalogue.model(model_id)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        job = build_job(trial, model, catalogue.graph_path(model), folder)
        job = job.model_copy(update={"evaluation": None})

        def measured(rule: SamplingRule) -> Measurement:
            return run_trial(job.model_copy(update={"sampling": rule}), folder, lambda _: None)

        yield measured


def _is_training_at(trial: Trial, batch_size: int) -> bool:
    return trial.mode == "training" and trial.batch_size == batch_size


def mean_step(measurement: Measurement) -> Bounded:
    """The mean step of a measurement, with its interval."""
    summary = summarise(measurement.samples_seconds, measurement.samples_by_round)
    return Bounded(summary.interval.low, summary.mean, summary.interval.high)


def _round_means(measurement: Measurement) -> Iterator[float]:
    for begin, end in pairwise(accumulate(measurement.samples_by_round, initial=0)):
        yield float(np.mean(measurement.samples_seconds[begin:end]))


def _show(runs: list[Bounded]) -> None:
    means = np.array([run.mean for run in runs])
    means_of_others = (means.sum() - means) / (len(means) - 1)
    hits = sum(
        run.low <= mean_of_others <= run.high
        for run, mean_of_others in zip(runs, means_of_others, strict=True)
    )
    low, high = wilson_interval(hits, len(runs))
    half = np.median([(run.high - run.low) / 2 for run in runs]) / means.mean()
    print(
        f"mean {means.mean() * 1e3:.3f} ms; {hits} of {len(runs)} intervals hold the mean "
        f"of all others (Wilson {low:.0%} to {high:.0%}); half width {half:.1%} at the median; "
        f"runs differ by {means.std(ddof=1) / means.mean():.1%} (one deviation)"
    )
