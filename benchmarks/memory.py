"""Memory of a training step, estimated and measured, and the savings of recomputation.

    python benchmarks/memory.py --keep FILE.jsonl [--gib 4] [--rematerialise] [MODEL …]
    python benchmarks/memory.py --keep FILE.jsonl --table

Each model runs at three batch sizes, each twice the one before; the largest stays within ``--gib``
of estimated memory and ``--gflops`` a step. A fresh process loads the step and its first values,
and then takes steps. The measurement is the process's peak resident memory minus its memory after
loading. The estimate is that of ``epochcost plan``: activations, the second set of carried values,
and a batch. ``--rematerialise`` also runs steps with recomputed segments, at one batch size a
model, and times them. Times mean something on an idle machine only. Cases in FILE are not repeated.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import groupby
from pathlib import Path

import onnx
import psutil
from made_trials import made_trial

from epochcost.errors import EpochcostError
from epochcost.execute.build import build_job
from epochcost.execute.job_files import save_graph
from epochcost.execute.sizing import Footprint, size_of
from epochcost.execute.step import step_options
from epochcost.graphs.counting import flops
from epochcost.graphs.peak_memory import peak_activation_bytes
from epochcost.graphs.profile import PASSES_PER_STEP
from epochcost.measure.job import Job
from epochcost.measure.memory import peak_memory_bytes
from epochcost.measure.runtime import runtime_name
from epochcost.measure.session import open_session
from epochcost.measure.stepping import Stepper, graph_inputs, initial_parameters
from epochcost.plan.binding import bind_model
from epochcost.plan.trial import SessionSettings
from epochcost.specs.catalogue import Catalogue
from epochcost.specs.loader import load_catalogue
from epochcost.specs.model import Model
from onnxstep import training_step
from onnxstep.graphs.loading import load_model
from onnxstep.passes.recompute import Rematerialisation

ROOT = Path(__file__).parents[1]
MIB = 2**20
STEPS, THREADS = 3, 1
# Pages of code that the first step loads: 0.9 to 1.4 MiB of ONNX Runtime's and at most 0.3 of other
# libraries' in two models. ``execute.sizing.PROCESS_BYTES`` includes them for a whole process.
CODE_BYTES = 3 * MIB // 2
HEADER = "| model | batches | measured, MiB | estimate over measured |\n| --- | --- | --- | --- |"


@dataclass(frozen=True)
class Case:
    """A model at one batch size: bytes of the step and of the whole process, seconds of a step."""

    model: str
    batch_size: int
    rematerialise: Rematerialisation
    estimated_bytes: int
    measured_bytes: int
    process_estimated_bytes: int
    process_measured_bytes: int
    step_seconds: float

    @property
    def key(self) -> tuple[str, int, str]:
        """The parts that identify the case."""
        return self.model, self.batch_size, self.rematerialise

    @property
    def ratio(self) -> float:
        """The estimated bytes over the measured bytes."""
        return self.estimated_bytes / self.measured_bytes


def step_bytes(footprint: Footprint) -> int:
    """Estimated bytes of steps in addition to their first values."""
    tensors = footprint.activation_bytes + footprint.second_set_bytes + footprint.exchanged_bytes
    return tensors + CODE_BYTES


def footprints(model: Model, path: Path, gib: float, gflops: float) -> dict[int, Footprint]:
    """Footprints at three batch sizes within the limits; none if one example exceeds a limit."""
    assert model.training is not None
    largest = max(model.training.batch_sizes)
    graph = load_model(path)
    while largest:
        fits = (
            _counted(model, graph, [largest])[largest].memory_bytes("cpu") <= gib * 2**30
            and PASSES_PER_STEP * flops(bind_model(graph, model, largest)) <= gflops * 1e9
        )
        if fits:
            break
        largest //= 2
    batch_sizes = sorted({largest // 4, largest // 2, largest} - {0})
    return _counted(model, graph, batch_sizes)


def _counted(
    model: Model, graph: onnx.ModelProto, batch_sizes: Sequence[int]
) -> dict[int, Footprint]:
    size = size_of(model, graph, {"training": batch_sizes})["training"]
    if isinstance(size, str):
        raise EpochcostError(size)
    return size


def measured(
    catalogue: Catalogue,
    model: Model,
    batch_size: int,
    footprint: Footprint,
    rematerialise: Rematerialisation,
) -> Case:
    """Run the job's steps in a fresh process."""
    path, settings = catalogue.graph_path(model), SessionSettings(threads=THREADS)
    trial = made_trial(model.id, batch_size, runtime_name(), path, session=settings, seed=1)
    with tempfile.TemporaryDirectory() as folder:
        job = build_job(trial, model, path, Path(folder))
        if rematerialise != "none":
            graph = bind_model(load_model(path), model, batch_size)
            options = step_options(model, model.training, "cpu", trial.seed)
            step = training_step(graph, replace(options, rematerialise=rematerialise))
            save_graph(step.model, job.graph)
            activations = peak_activation_bytes(step.model)
            footprint = replace(footprint, activation_bytes=activations)
        file = Path(folder) / "job.json"
        file.write_bytes(job.model_dump_json().encode())
        command = [sys.executable, __file__, "--child", str(file)]
        values = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
    return Case(
        model=model.id,
        batch_size=batch_size,
        rematerialise=rematerialise,
        estimated_bytes=step_bytes(footprint),
        process_estimated_bytes=footprint.memory_bytes("cpu"),
        **values,
    )


def take_steps(file: Path) -> None:
    """In the fresh process, load the job, take steps, and print the memory of both."""
    job = Job.model_validate_json(file.read_bytes())
    parameters = initial_parameters(job)
    session = open_session(job.graph, job.provider, job.session)
    inputs = graph_inputs(job, parameters, session.get_inputs())
    stepper = Stepper(session, job.provider, job.mode, inputs, job.carried, job.session)
    loading_peak = peak_memory_bytes() or 0
    Path("/proc/self/clear_refs").write_text("5")  # reset the high-water mark to the current memory
    loaded = psutil.Process().memory_info().rss
    seconds = []
    for _ in range(STEPS):
        start = time.perf_counter()
        stepper()
        seconds.append(time.perf_counter() - start)
    peak = peak_memory_bytes() or 0
    values = {
        "measured_bytes": peak - loaded,
        "process_measured_bytes": max(peak, loading_peak),
        "step_seconds": statistics.median(seconds[1:]),
    }
    print(json.dumps(values), flush=True)
    os._exit(0)  # skip the teardown


def stored_cases(file: Path) -> list[Case]:
    """The cases that earlier runs stored in the file."""
    lines = file.read_text().splitlines() if file.exists() else []
    return [Case(**json.loads(line)) for line in lines]


def table(cases: list[Case]) -> Iterator[str]:
    """Lines of Markdown: each model with its batch sizes, then the largest differences."""
    yield HEADER
    plain = sorted(
        (case for case in cases if case.rematerialise == "none"), key=lambda case: case.key
    )
    for model, group in groupby(plain, key=lambda case: case.model):
        of = list(group)
        columns = (
            [f"{case.batch_size}" for case in of],
            [f"{case.measured_bytes / MIB:,.0f}" for case in of],
            [f"{case.ratio:.2f}" for case in of],
        )
        yield f"| {model} | {' | '.join('; '.join(column) for column in columns)} |"
    ratios = [case.ratio for case in plain]
    within = sum(abs(ratio - 1) <= 0.15 for ratio in ratios)
    ends = f"from {min(ratios):.2f} to {max(ratios):.2f}"
    yield f"\n{within} of {len(ratios)} within 15 %; all {ends}."


def savings(cases: list[Case]) -> Iterator[str]:
    """Memory, activations and time of steps that were measured with and without recomputation."""
    by_key = {case.key: case for case in cases}
    for model, batch_size, rematerialise in sorted(by_key):
        if rematerialise == "none":
            continue
        again = by_key[model, batch_size, rematerialise]
        plain = by_key[model, batch_size, "none"]
        yield (
            f"{model} {batch_size}: {plain.measured_bytes / MIB:,.0f} to "
            f"{again.measured_bytes / MIB:,.0f} MiB, estimated "
            f"{plain.estimated_bytes / MIB:,.0f} to {again.estimated_bytes / MIB:,.0f}; "
            f"{again.step_seconds / plain.step_seconds:.2f} times the time"
        )


def run(catalogue: Catalogue, options: argparse.Namespace) -> None:
    """Measure the missing cases, each appended to the file at once."""
    measured_keys = {case.key for case in stored_cases(options.keep)}
    kinds: tuple[Rematerialisation, ...] = ("none", "sqrt") if options.rematerialise else ("none",)
    for name in options.models or sorted(catalogue.models):
        model = catalogue.model(name)
        if model.training is None or model.graph is None:
            continue
        counted = footprints(model, catalogue.graph_path(model), options.gib, options.gflops)
        sizes = [*counted.items()]
        for batch_size, footprint in sizes[-1:] if options.rematerialise else sizes:
            for kind in kinds:
                if (name, batch_size, kind) not in measured_keys:
                    case = measured(catalogue, model, batch_size, footprint, kind)
                    with options.keep.open("a") as lines:
                        lines.write(json.dumps(asdict(case)) + "\n")


def main() -> None:
    """Measure, or print the tables, as the command line says."""
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("models", nargs="*")
    arguments.add_argument("--keep", type=Path)
    arguments.add_argument("--gib", type=float, default=4)
    arguments.add_argument("--gflops", type=float, default=150)
    arguments.add_argument("--rematerialise", action="store_true")
    arguments.add_argument("--table", action="store_true")
    arguments.add_argument("--child", type=Path)
    options = arguments.parse_args()
    if options.child:
        take_steps(options.child)
    elif not options.keep:
        arguments.error("expected --keep FILE")
    elif options.table:
        cases = stored_cases(options.keep)
        if not cases:
            arguments.error(f"{options.keep}: expected stored cases, found none")
        print("\n".join([*table(cases), *savings(cases)]))
    else:
        run(load_catalogue(ROOT), options)


if __name__ == "__main__":
    main()
