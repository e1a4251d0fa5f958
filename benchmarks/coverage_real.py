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
from pathlib import Path

import numpy as np
from coverage_rounds import samples_of_rounds
from wilson import wilson_interval

from epochcost.execute.build import build_job
from epochcost.execute.planning import plan_run
from epochcost.measure.job import SamplingRule
from epochcost.measure.trial import run_trial
from epochcost.plan.make import RunRequest
from epochcost.results.records import Measurement
from epochcost.results.rounds import add_round
from epochcost.specs.loader import load_catalogue
from epochcost.statistics.interval import Bounded
from epochcost.statistics.summary import summarise

ROOT = Path(__file__).parents[1]
Measurer = Callable[[SamplingRule], Measurement]


def against_all_others(
    model: str, batch_size: int, runs: int, budget_seconds: float, rounds: int
) -> None:
    """Measure the short runs, and print how often intervals contain the others' mean."""
    with _measurer(model, batch_size) as measured:
        shorts = _measure(measured, runs, budget_seconds, rounds)
    _show([_mean_step(run) for run in shorts])
    processes = np.array([part.mean() for run in shorts for part in samples_of_rounds(run)])
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
    trial = next(
        trial
        for trial in planned.trials
        if trial.mode == "training" and trial.batch_size == batch_size
    )
    model = catalogue.model(model_id)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        job = build_job(trial, model, catalogue.graph_path(model), folder)
        job = job.model_copy(update={"evaluation": None})

        def measured(rule: SamplingRule) -> Measurement:
            return run_trial(job.model_copy(update={"sampling": rule}), folder, lambda _: None)

        yield measured


def _mean_step(measurement: Measurement) -> Bounded:
    summary = summarise(measurement.samples_seconds, measurement.samples_by_round)
    return Bounded(summary.interval.low, summary.mean, summary.interval.high)


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
