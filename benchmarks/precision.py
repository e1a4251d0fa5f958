"""Precisions in which each model runs on this machine, and the difference from fp32.

    python benchmarks/precision.py [--mode training] [--models gpt2,mnist-mlp]
                                   [--precisions fp16,bf16]

Prints a Markdown row for each model and precision. Times are rough, from one second of steps. In
training, the first losses are compared. Run it in the folder that has specs/ and models/. The whole
catalogue takes half an hour.
"""

from __future__ import annotations

import argparse
import hashlib
import statistics
import tempfile
from decimal import Decimal
from pathlib import Path

from epochcost.errors import EpochcostError
from epochcost.execute.build import build_job
from epochcost.measure.runtime import runtime_name
from epochcost.measure.trial import run_trial
from epochcost.plan.trial import Trial
from epochcost.results.records import Agreement, Measurement
from epochcost.specs.catalogue import Catalogue
from epochcost.specs.loader import load_catalogue
from epochcost.specs.model import Model

BATCH_SIZE = 4


def trial_of(catalogue: Catalogue, name: str, mode: str, precision: str, provider: str) -> Trial:
    """A trial of about a second: inference of a small batch, or training on it."""
    graph = catalogue.graph_path(catalogue.model(name)).read_bytes()
    return Trial.model_validate(
        {
            "model": name,
            "mode": mode,
            "provider": provider,
            "precision": precision,
            "batch_size": BATCH_SIZE,
            "threads": 0,
            "seed": 0,
            "runtime": runtime_name(),
            "producer": "benchmark",
            "graph_sha256": hashlib.sha256(graph).hexdigest(),
            "spec_sha256": "0",
            "relative_half_width": Decimal("0.1"),
            "minimum_samples": 10,
            "budget_seconds": Decimal(1),
        }
    )


def measured(catalogue: Catalogue, trial: Trial) -> Measurement:
    """Run one trial in a temporary folder; raises EpochcostError if it is refused."""
    model = catalogue.model(trial.model)
    with tempfile.TemporaryDirectory() as folder:
        job = build_job(trial, model, catalogue.graph_path(model), Path(folder))
        return run_trial(job, Path(folder), lambda _: None)


def row(catalogue: Catalogue, trial: Trial) -> str:
    """Render the result of a trial as a row of the table."""
    try:
        result = measured(catalogue, trial)
    except EpochcostError as error:
        reason = str(error).removeprefix("worker: ").removeprefix(f"{trial.precision}: ")
        return f"| {trial.model} | {trial.precision} | refused: {reason.split(';')[0]} | |"
    milliseconds = 1000 * statistics.median(result.samples_seconds)
    return (
        f"| {trial.model} | {trial.precision} | {milliseconds:.3g} ms | {far(result.agreement)} |"
    )


def far(agreement: Agreement | None) -> str:
    """Relative difference of the first output from the output in fp32."""
    if agreement is None:
        return ""
    first = agreement.outputs[0]
    return "" if first.relative_to_norm is None else f"{first.relative_to_norm:.2g}"


def does(model: Model, mode: str) -> bool:
    """Whether the model has a graph, and is trained or served as the mode requires."""
    return model.graph is not None and (mode == "inference" or model.training is not None)


def main() -> None:
    """Print the table, row by row."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--models", default="")
    parser.add_argument("--mode", choices=("inference", "training"), default="inference")
    parser.add_argument("--precisions", default="")
    parser.add_argument("--provider", default="cpu")
    options = parser.parse_args()
    catalogue = load_catalogue(Path())
    precisions = "fp32,fp16,bf16"
    every = [model.id for model in catalogue.models.values() if does(model, options.mode)]
    print("| model | precision | batch of 4 | relative to fp32 |")
    print("| --- | --- | --- | --- |")
    for name in options.models.split(",") if options.models else sorted(every):
        for precision in (options.precisions or precisions).split(","):
            trial = trial_of(catalogue, name, options.mode, precision, options.provider)
            print(row(catalogue, trial), flush=True)


if __name__ == "__main__":
    main()
