"""Real steps of every model of the catalogue on this machine: memory, step time, learning.

    python benchmarks/every_model.py [--seconds 20] [--smallest | --batch N] [--rate R] [MODEL …]

A model trains at its source's batch size, the first of its list, or else at the largest smaller
size of the list whose memory estimate fits. With --smallest it trains at the smallest size. If no
size fits, the line has the estimate. --batch is for models whose steps would take minutes. The
learning rate is the optimizer's, or --rate, without the schedule's warm-up, which would last longer
than these few steps. The held-out loss is printed before and after training. Serving is timed at a
batch of 1. Peaks of memory are of the worker process. Lines are Markdown.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path

from epochcost import __version__
from epochcost.errors import EpochcostError
from epochcost.execute.build import build_job
from epochcost.execute.sizing import size_of
from epochcost.measure.job import Job, WarmUpRule
from epochcost.measure.job import SamplingRule as JobSampling
from epochcost.measure.memory import memory_limit_bytes
from epochcost.measure.runtime import runtime_name
from epochcost.measure.trial import run_trial
from epochcost.plan.digests import graph_digests, work_sha256
from epochcost.plan.trial import Trial
from epochcost.results.records import Measurement
from epochcost.specs.catalogue import Catalogue
from epochcost.specs.loader import load_catalogue
from epochcost.specs.model import Model
from epochcost.specs.study import Mode
from epochcost.specs.training import Constant
from epochcost.units import memory, seconds
from onnxstep.graphs.loading import load_model

ROOT = Path(__file__).parents[1]
SEED = 20161101
HEADER = (
    "| model | training at batch | estimate | peak | step | steps | held-out loss "
    "| one inference |\n"
    "|---|--:|--:|--:|--:|--:|--:|--:|"
)


@dataclass(frozen=True)
class Asked:
    """Options of the command line: seconds of a trial, batch size and learning rate."""

    seconds: float
    batch_size: int | None
    rate: Decimal | None


@dataclass(frozen=True)
class Fit:
    """The batch size to train at, None if no size fits, and the memory estimate."""

    batch_size: int | None
    needed_bytes: int


def fit(model: Model, graph_path: Path, only: int | None) -> Fit:
    """The source's batch size, or the largest smaller one that fits in memory."""
    assert model.training is not None
    source, *others = (only,) if only else model.training.batch_sizes
    smaller = sorted((size for size in others if size < source), reverse=True)
    graph = load_model(graph_path)
    for batch_size in (source, *smaller):
        size = size_of(model, graph, {"training": [batch_size]})
        footprint = size.footprint("training", batch_size)
        if footprint is None:
            raise EpochcostError(size.uncounted[0].reason)
        needed = footprint.memory_bytes("cpu")
        if needed <= memory_limit_bytes():
            return Fit(batch_size, needed)
    return Fit(None, needed)


def measure(
    catalogue: Catalogue, model: Model, mode: Mode, batch_size: int, budget_seconds: float
) -> Measurement:
    """Run a short trial; a slow model takes at least three steps after its first."""
    trial = Trial(
        model=model.id,
        mode=mode,
        provider="cpu",
        batch_size=batch_size,
        seed=SEED,
        runtime=runtime_name(),
        producer=__version__,
        graph_sha256=graph_digests(catalogue, [model.id])[model.id],
        spec_sha256=work_sha256(model, mode),
        relative_half_width=Decimal("0.05"),
        minimum_samples=10,
        budget_seconds=Decimal(budget_seconds),
    )
    with tempfile.TemporaryDirectory() as folder:
        job = build_job(trial, model, catalogue.graph_path(model), Path(folder))
        return run_trial(_steady(job, budget_seconds), Path(folder), lambda _: None)


def _steady(job: Job, budget_seconds: float) -> Job:
    """The same job without an early end, so that fast models take many steps."""
    sampling = JobSampling(
        relative_half_width=0.001,
        minimum_samples=10,
        minimum_seconds=budget_seconds,
        budget_seconds=budget_seconds,
    )
    return job.model_copy(update={"sampling": sampling, "warm_up": WarmUpRule(minimum_steps=1)})


def without_schedule(model: Model, rate: Decimal | None) -> Model:
    """The model trained at this constant rate, or at the optimizer's if ``rate`` is None."""
    assert model.training is not None
    optimizer = model.training.optimizer
    if rate is not None:
        optimizer = optimizer.model_copy(update={"learning_rate": rate})
    changes = {"schedule": Constant(name="constant"), "optimizer": optimizer}
    training = model.training.model_copy(update=changes)
    return model.model_copy(update={"training": training})


def line(catalogue: Catalogue, model: Model, settings: Asked) -> str:
    """One row of the table."""
    cells = [model.id, *_training(catalogue, model, settings)]
    return "| " + " | ".join([*cells, _serving(catalogue, model)]) + " |"


def _training(catalogue: Catalogue, model: Model, settings: Asked) -> Iterator[str]:
    if model.training is None:
        yield from ("not trained", "", "", "", "", "")
        return
    size = fit(model, catalogue.graph_path(model), settings.batch_size)
    estimate = memory(size.needed_bytes)
    if size.batch_size is None:
        there = memory(memory_limit_bytes())
        yield from (f"does not fit: {there} here", estimate, "", "", "", "")
        return
    trained = without_schedule(model, settings.rate)
    measured = measure(catalogue, trained, "training", size.batch_size, settings.seconds)
    before, after = measured.held_out_loss_before, measured.held_out_loss_after
    yield str(size.batch_size)
    yield estimate
    yield memory(measured.peak_memory_bytes or 0)
    yield seconds(statistics.median(measured.samples_seconds))
    yield str(measured.steps_taken)
    yield f"{before:.4g} to {after:.4g}"


def _serving(catalogue: Catalogue, model: Model) -> str:
    if model.inference is None:
        return "not served"
    measured = measure(catalogue, model, "inference", min(model.inference.batch_sizes), 2)
    return seconds(statistics.median(measured.samples_seconds))


def main() -> None:
    """Print a line for each model."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("models", nargs="*")
    parser.add_argument("--seconds", type=float, default=20)
    size = parser.add_mutually_exclusive_group()
    size.add_argument("--smallest", action="store_true")
    size.add_argument("--batch", type=int)
    parser.add_argument("--rate", type=Decimal)
    settings = parser.parse_args()
    catalogue = load_catalogue(ROOT)
    print(HEADER, flush=True)
    begun = time.monotonic()
    for name in settings.models or sorted(catalogue.models):
        model = catalogue.model(name)
        if model.graph is None:
            print(f"| {name} | no graph: priced from its FLOPs | | | | | | |", flush=True)
            continue
        try:
            smallest = settings.smallest and model.training and min(model.training.batch_sizes)
            trial_settings = Asked(settings.seconds, smallest or settings.batch, settings.rate)
            print(line(catalogue, model, trial_settings), flush=True)
        except EpochcostError as error:
            print(f"| {name} | failed: {error} | | | | | | |", flush=True)
    print(f"\n{time.monotonic() - begun:.0f} s in all", flush=True)


if __name__ == "__main__":
    main()
