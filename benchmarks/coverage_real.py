"""Short real runs against one long one: how often an interval holds the mean that it is about.

Each short run is a fresh worker, as every trial is. The long run must see the same machine, so it
is taken in pieces, one before each short run, each in a fresh worker as well: its mean is that of
the machine over the whole time and over as many processes, and its interval comes from the spread
of the pieces. With ``rounds`` above one a short run is that many workers, spread over the whole
time as ``epochcost run --rounds`` spreads them.

What breaks coverage is told apart: the spread of short means beyond what their intervals say, and
the part of it that neighbouring pieces share (the machine drifts) or do not (processes differ).

``pooled`` takes no pieces: the long run of each short one is then all the others together, which
are as many fresh processes over the same time. It takes half as long.
"""

from __future__ import annotations

import math
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from epochcost.execute.build import build_job
from epochcost.execute.planning import RunRequest, plan_run
from epochcost.measure.job import Job, SamplingRule
from epochcost.measure.trial import run_trial
from epochcost.plan.trial import Trial
from epochcost.specs.loader import load_catalogue
from epochcost.statistics import mean_interval, student_quantile, wilson_interval

ROOT = Path(__file__).parents[1]
_MODEL, _BATCH = "mnist-mlp", 128


@dataclass(frozen=True)
class Short:
    """The samples of one short run, by round."""

    rounds: tuple[tuple[float, ...], ...]

    @property
    def mean(self) -> float:
        """Of all samples."""
        return float(np.mean(np.concatenate(self.rounds)))

    @property
    def bounds(self) -> tuple[float, float]:
        """The interval of the mean."""
        samples = np.concatenate(self.rounds).tolist()
        interval = mean_interval(samples, rounds=[len(one) for one in self.rounds])
        return interval.low, interval.high


def against_a_long_run(runs: int, budget_seconds: float, rounds: int, *, pooled: bool) -> None:
    """Alternate pieces of the long run with short runs, and print what covers what."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        measured = _measurer(_job(folder), folder)
        pieces, shorts = _alternate(measured, runs, budget_seconds, rounds, pooled=pooled)
    if pooled:
        _show_pooled(shorts)
    else:
        _show(pieces, shorts)


def _job(folder: Path) -> Job:
    catalogue = load_catalogue(ROOT)
    planned = plan_run(catalogue, RunRequest(models=(_MODEL,), providers=("cpu",)))
    trial = next(one for one in planned.trials if _wanted(one))
    model = catalogue.model(_MODEL)
    job = build_job(trial, model, catalogue.graph_path(model), folder)
    return job.model_copy(update={"evaluation": None})


def _wanted(trial: Trial) -> bool:
    return trial.mode == "training" and trial.batch_size == _BATCH


Measurer = Callable[[SamplingRule], tuple[float, ...]]


def _measurer(job: Job, folder: Path) -> Measurer:
    def measured(sampling: SamplingRule) -> tuple[float, ...]:
        asked = job.model_copy(update={"sampling": sampling})
        return run_trial(asked, folder, lambda _: None).samples_seconds

    return measured


def _alternate(
    measured: Measurer, runs: int, budget_seconds: float, rounds: int, *, pooled: bool
) -> tuple[list[float], list[Short]]:
    """Means of the pieces in order, and the short runs; one pass over all runs for each round."""
    part = SamplingRule(
        relative_half_width=min(0.5, 0.02 * math.sqrt(rounds)),
        minimum_samples=max(10, math.ceil(30 / rounds)),
        budget_seconds=budget_seconds / rounds,
    )
    # As long as a short run may take at most: it never stops for being precise.
    piece = part.model_copy(update={"relative_half_width": 1e-9})
    pieces: list[float] = []
    taken: list[list[tuple[float, ...]]] = [[] for _ in range(runs)]
    for number in range(rounds):
        for run in range(runs):
            if not pooled:
                pieces.append(float(np.mean(measured(piece))))
            taken[run].append(measured(part))
            if run % 10 == 9:
                print(f"round {number + 1} of {rounds}: {run + 1} of {runs} runs", flush=True)
    return pieces, [Short(tuple(one)) for one in taken]


def _show_pooled(shorts: list[Short]) -> None:
    means = np.array([short.mean for short in shorts])
    others = (means.sum() - means) / (len(means) - 1)
    bounds = [short.bounds for short in shorts]
    processes = [float(np.mean(part)) for short in shorts for part in short.rounds]
    print(f"all runs: {means.mean() * 1e3:.3f} ms in {len(processes)} processes")
    inside = [low <= other <= high for (low, high), other in zip(bounds, others, strict=True)]
    _count("hold the mean of all others", inside)
    halves = [(high - low) / 2 for low, high in bounds]
    print(f"half width of a short run, median: {np.median(halves) / means.mean():.2%}")
    for what, values in (("short runs", means), ("processes", np.array(processes))):
        print(f"spread of {what}: {values.std(ddof=1) / values.mean():.2%} (one deviation)")


def _show(pieces: list[float], shorts: list[Short]) -> None:
    whole, half = float(np.mean(pieces)), _half_width(pieces)
    print(f"the long run: {whole * 1e3:.3f} ms ±{half / whole:.2%} in {len(pieces)} pieces")
    bounds = [short.bounds for short in shorts]
    _count("hold its mean", [low <= whole <= high for low, high in bounds])
    halves = [(high - low) / 2 for low, high in bounds]
    means = np.array([short.mean for short in shorts])
    doubt = [math.hypot(one, half) for one in halves]
    _count("hold it within both doubts", list(np.abs(means - whole) <= doubt))
    print(f"half width of a short run, median: {np.median(halves) / whole:.2%}")
    print(f"spread of short means: {means.std(ddof=1) / whole:.2%} (one standard deviation)")
    if len(pieces) == len(shorts):
        _explain(np.array(pieces), means, bounds, whole)


def _explain(
    pieces: np.ndarray, means: np.ndarray, bounds: list[tuple[float, float]], whole: float
) -> None:
    """Count against the pieces on both sides, which share the machine's drift."""
    after = np.append(pieces[1:], pieces[-1])
    near = (pieces + after) / 2
    shared = float(np.corrcoef(near, means)[0, 1])
    print(f"correlation with the pieces before and after: {shared:.2f} (0: no drift)")
    apart = (means - near) - (means - near).mean()
    print(f"spread about them: {apart.std(ddof=1) / whole:.2%}")
    inside = [low <= one <= high for (low, high), one in zip(bounds, near, strict=True)]
    _count("hold the mean of both", inside)


def _half_width(pieces: list[float]) -> float:
    degrees = len(pieces) - 1
    return student_quantile(0.975, degrees) * float(np.std(pieces, ddof=1)) / math.sqrt(degrees + 1)


def _count(what: str, hits: list[bool]) -> None:
    low, high = wilson_interval(sum(hits), len(hits))
    print(f"{sum(hits)} of {len(hits)} intervals {what} (Wilson {low:.0%} to {high:.0%})")
