"""Checks of a device, each a process that prints rows and that ``cuda_proof`` starts.

python benchmarks/cuda_checks.py device [--provider cuda]
python benchmarks/cuda_checks.py placement MODEL …
python benchmarks/cuda_checks.py losses MODEL …
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from steps import rounds
from steps.cases import OURS, SUBJECTS, Case
from steps.prepared import prepared

from epochcost.errors import CapabilityError, EpochcostError
from epochcost.execute.build import build_job
from epochcost.execute.planning import gpu_descriptions, plan_run, require_device
from epochcost.measure.gpus import shown_gpus
from epochcost.measure.job import Job
from epochcost.measure.placement import ExecutedNode, executed_nodes
from epochcost.measure.runtime import require_cuda, runtime_name
from epochcost.measure.session import open_session
from epochcost.measure.stepping import Stepper, constant_weights, graph_inputs, initial_parameters
from epochcost.plan.make import RunRequest
from epochcost.plan.trial import Trial
from epochcost.plan.work import Phase
from epochcost.results.records import EXECUTION_PROVIDERS
from epochcost.specs.catalogue import Catalogue
from epochcost.specs.loader import load_catalogue

ROOT = Path(__file__).parents[1]
# Later losses of some models differ by chance: on the CPU, weights changed by 1e-7 change the 50th
# loss of mnist-cnn by 9 %, the tenth by less than 0.1 %.
_LOSSES = 10
# Steps alternate between two CUDA graphs.
_RECORDED_AND_REPLAYED = 4


def _device(options: argparse.Namespace) -> Iterator[str]:
    if options.provider == "cpu":
        yield f"no GPU: a rehearsal on the CPU; {runtime_name()}"
        return
    require_cuda()
    require_device(0)
    yield f"{gpu_descriptions(shown_gpus())[0]}; {runtime_name()}"


def _placement(options: argparse.Namespace) -> Iterator[str]:
    """Rows with the nodes that run on the CPU, for each kind of graph of a model."""
    catalogue = load_catalogue(ROOT)
    count = 0
    for name, trial in _trials(catalogue, options.model).items():
        moved = trial.model_copy(update={"provider": options.provider})
        if isinstance(trial.work, Phase) and options.provider == "cuda":
            # CUDA's attention with a cache has no fp32 kernel.
            moved = moved.model_copy(update={"precision": "fp16"})
        with tempfile.TemporaryDirectory() as folder:
            cells = _placed(catalogue, moved, Path(folder))
        yield f"| {options.model} | {name} | {' | '.join(cells)} |"
        count += 1
    if not count:
        yield f"| {options.model} | no room for any of its graphs | | | | |"


def _trials(catalogue: Catalogue, model: str) -> dict[str, Trial]:
    """For each mode or phase, the trial with the smallest batch size in a plan for this CPU."""
    plan = plan_run(catalogue, RunRequest(models=(model,), providers=("cpu",), quick=True))
    # On a machine with many CPUs, the only trials of some models are limited to a few of them.
    trials = [trial.model_copy(update={"vcpus": None}) for trial in plan.trials]
    plain = [trial for trial in trials if not trial.variant or isinstance(trial.work, Phase)]
    smallest: dict[str, Trial] = {}
    for trial in sorted(plain, key=lambda trial: trial.batch_size):
        if trial.work.scenario == "batch" and trial.precision == "fp32":
            name = trial.work.name if isinstance(trial.work, Phase) else trial.mode
            smallest.setdefault(name, trial)
    return smallest


def _placed(catalogue: Catalogue, trial: Trial, folder: Path) -> tuple[str, ...]:
    model = catalogue.model(trial.model)
    job = build_job(trial, model, catalogue.graph_path(model), folder)
    nodes = _executed(job, folder)
    provider = EXECUTION_PROVIDERS[job.provider]
    misplaced = [node for node in nodes if node.provider != provider]
    listed = ", ".join(sorted({node.operator for node in misplaced})) or "none"
    most = max((node.size_bytes for node in misplaced), default=0)
    on_cpu = f"{len(misplaced)}: {listed}" if misplaced else "none"
    return str(len(nodes) - len(misplaced)), on_cpu, str(most), _recorded(job)


def _executed(job: Job, folder: Path) -> tuple[ExecutedNode, ...]:
    parameters = initial_parameters(job)
    weights = constant_weights(job, parameters)
    session = open_session(
        job.graph, job.provider, job.session, profile=folder / "profile", weights=weights
    )
    inputs = graph_inputs(job, parameters, session.get_inputs())
    Stepper(session, job.provider, job.mode, inputs, job.carried, job.session)()
    return executed_nodes(session)


def _recorded(job: Job) -> str:
    """Whether a CUDA graph can record and replay the step: yes, or the first line of the reason."""
    settings = job.session.model_copy(update={"cuda_graph": job.provider == "cuda"})
    parameters = initial_parameters(job)
    weights = constant_weights(job, parameters)
    try:
        session = open_session(job.graph, job.provider, settings, weights=weights)
        inputs = graph_inputs(job, parameters, session.get_inputs())
        step = Stepper(session, job.provider, job.mode, inputs, job.carried, settings)
        for _ in range(_RECORDED_AND_REPLAYED):
            step()
    except Exception as error:  # ONNX Runtime's exceptions have no narrower base class
        return str(error).splitlines()[0].replace("|", "/")
    return "yes"


def _losses(options: argparse.Namespace) -> Iterator[str]:
    """Compare ten steps of one graph, its weights and batches on the device and on the CPU."""
    subject = next(subject for subject in SUBJECTS if subject.model == options.model)
    batch = min(subject.batch_sizes)
    ours, reference = (
        np.array(_first(Case(subject, batch, 0, provider)))
        for provider in (options.provider, "cpu")
    )
    # NaN if any loss is NaN, unlike the built-in max.
    difference = np.max(abs(ours - reference) / abs(reference))
    cells = f"{ours[0]:.5g} | {ours[-1]:.5g} | {reference[-1]:.5g} | {difference:.1e}"
    yield f"| {options.model} | {batch} | {cells} |"


def _first(case: Case) -> list[float]:
    folder = prepared(ROOT, ROOT / ".cache" / "steps", case, dropout=False)
    python = Path(sys.executable)
    answer = rounds.first_answer(python, OURS, folder, 0, "--losses", str(_LOSSES))
    return list(answer["losses"])


_CHECKS = {"device": _device, "placement": _placement, "losses": _losses}


def main() -> int:
    """Print the rows of a check, or one line that says why there are none."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("check", choices=_CHECKS)
    parser.add_argument("model", nargs="?")
    parser.add_argument("--provider", choices=("cpu", "cuda"), default="cuda")
    options = parser.parse_args()
    try:
        for row in _CHECKS[options.check](options):
            print(row, flush=True)
    except (EpochcostError, rounds.StoppedError) as error:
        print(str(error).splitlines()[0], file=sys.stderr)
        return error.exit_code if isinstance(error, CapabilityError) else 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
