"""Everything that only a GPU can show, as one Markdown table, in under five minutes.

    python benchmarks/cuda_proof.py [--device 0] [--models mnist-mlp …] [--seconds 1.5]
                                    [--provider cuda]

Run it with an interpreter that has epochcost and `requirements/gpu.txt`. For each model, at a small
and a large batch: where the nodes of a training step ran; how far its gradients are from the CPU's
(the same step graph on both, Dropout off, plain SGD with rate 1, so that an update is a gradient;
the largest difference of any parameter over the largest gradient of that parameter); and the mean
step as every trial times it, without the copy of the batch, as a CUDA graph, and as one without the
copy. ± is half the 95 % interval. Then, for each model at the large batch, the step in fp32, TF32,
fp16 and bf16: its mean, and how far its first loss is from that of the fp32 step. Last: a step
under a memory limit that it cannot keep.

`--provider cpu` rehearses it on a machine without a GPU; its figures mean nothing. Without a usable
GPU the script says in one line what is missing and ends with exit code 3.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import onnx

from epochcost.errors import CapabilityError, EpochcostError
from epochcost.execute.build import build_job
from epochcost.execute.planning import RunRequest, gpu_descriptions, plan_run, require_device
from epochcost.graphs.loading import load_model
from epochcost.measure.gpus import shown_gpus
from epochcost.measure.job import Job, SamplingRule
from epochcost.measure.memory import tells_out_of_memory
from epochcost.measure.runtime import require_cuda, runtime_name
from epochcost.measure.session import open_session
from epochcost.measure.stepping import Stepper, graph_inputs, initial_parameters
from epochcost.measure.trial import run_trial
from epochcost.plan.trial import SessionSettings
from epochcost.results.records import Measurement
from epochcost.results.rounds import summary_of
from epochcost.specs.catalogue import Catalogue
from epochcost.specs.loader import load_catalogue
from epochcost.specs.study import Precision, Provider
from epochcost.specs.training import Sgd
from epochcost.units import seconds

ROOT = Path(__file__).parents[1]
MODELS = ("mnist-mlp", "mnist-cnn", "cifar10-resnet44", "nanogpt-characters")
BATCHES = (8, 128)
LIMIT_BYTES = 2**20
PRECISIONS: tuple[Precision, ...] = ("fp32", "tf32", "fp16", "bf16")
HEADERS = ("model", "batch", "nodes", "gradient", "step", "no copy", "graph", "graph, no copy")


@dataclass(frozen=True)
class Proof:
    """What is asked of the machine."""

    catalogue: Catalogue
    provider: Provider
    device: int
    budget_seconds: float

    def job(
        self,
        name: str,
        batch_size: int,
        folder: Path,
        *,
        plain: bool = False,
        precision: Precision = "fp32",
    ) -> Job:
        """A training step of a model of the catalogue; ``plain``: its update is its gradient."""
        plan = plan_run(self.catalogue, RunRequest(models=(name,), providers=("cpu",), quick=True))
        drawn = next(trial for trial in plan.trials if trial.mode == "training")
        fields = {"device": self.device, "tf32": precision == "tf32"}
        session = drawn.session.model_copy(update=fields)
        changes = {"batch_size": batch_size, "provider": self.provider, "session": session}
        trial = drawn.model_copy(update={**changes, "precision": precision})
        model = self.catalogue.model(name)
        if plain:
            changed = {"optimizer": Sgd(name="sgd", learning_rate=Decimal(1)), "clip_norm": None}
            training = model.training.model_copy(update=changed)
            model = model.model_copy(update={"training": training})
        return build_job(trial, model, self.catalogue.graph_path(model), folder)

    def timed(self, job: Job, **changes: Any) -> Measurement:
        """The measurement of a job, in a worker of its own."""
        sampling = SamplingRule(
            relative_half_width=0.01, minimum_seconds=0.3, budget_seconds=self.budget_seconds
        )
        settings = job.session.model_copy(update=changes.pop("session", {}))
        fields = {"sampling": sampling, "session": settings, "evaluation": None, **changes}
        with tempfile.TemporaryDirectory() as folder:
            return run_trial(job.model_copy(update=fields), Path(folder), lambda _: None)


def without_dropout(path: Path) -> None:
    """Let a step graph keep every unit, so that it does the same on every device."""
    model = load_model(path)
    for node in model.graph.node:
        if node.op_type == "Dropout":
            del node.input[2:]
    onnx.save(model, path)


def updates(job: Job, provider: Provider, settings: SessionSettings) -> dict[str, Any]:
    """What one step of a job takes off each carried value."""
    parameters = initial_parameters(job)
    session = open_session(job.graph, provider, settings)
    inputs = graph_inputs(job, parameters, session.get_inputs())
    step = Stepper(session, provider, "training", inputs, job.carried, settings)
    step()
    after = step.carried_values()
    return {name: inputs.constants[name] - value for name, value in after.items()}


def gradient_difference(job: Job, provider: Provider) -> float:
    """The largest difference between a provider and the CPU, over the largest of that gradient."""
    without_dropout(job.graph)
    ours = updates(job, provider, job.session)
    reference = updates(job, "cpu", SessionSettings())
    return max(
        float(np.abs(ours[name] - value).max() / np.abs(value).max())
        for name, value in reference.items()
        if value.dtype.kind == "f" and np.abs(value).max() > 0
    )


def mean_step(measured: Measurement) -> str:
    """The mean with its interval."""
    summary = summary_of(measured)
    return f"{seconds(summary.mean)} ± {summary.relative_half_width:.1%}"


def cell(proof: Proof, job: Job, **changes: Any) -> str:
    """The mean step of one variant, or why there is none."""
    try:
        return mean_step(proof.timed(job, **changes))
    except EpochcostError as error:
        return f"failed: {str(error).splitlines()[0][:120]}"


def row(proof: Proof, name: str, batch_size: int) -> tuple[str, ...]:
    """All figures of one model at one batch size."""
    with tempfile.TemporaryDirectory() as one, tempfile.TemporaryDirectory() as other:
        job = proof.job(name, batch_size, Path(one))
        try:
            measured = proof.timed(job)
            placement = measured.placement.nodes_by_provider
            nodes = ", ".join(f"{sum(n.values())} {by[:4]}" for by, n in sorted(placement.items()))
            plain = proof.job(name, batch_size, Path(other), plain=True)
            gradient = f"{gradient_difference(plain, proof.provider):.1e}"
        except EpochcostError as error:
            return (name, str(batch_size), f"failed: {str(error).splitlines()[0][:120]}")
        captured = {"cuda_graph": True}
        return (
            name,
            str(batch_size),
            nodes,
            gradient,
            mean_step(measured),
            cell(proof, job, input_copy="excluded"),
            cell(proof, job, session=captured),
            cell(proof, job, session=captured, input_copy="excluded"),
        )


def precise(proof: Proof, name: str, precision: Precision) -> str:
    """The step of a model in a precision and its first loss, or why there is none."""
    with tempfile.TemporaryDirectory() as folder:
        try:
            measured = proof.timed(proof.job(name, BATCHES[-1], Path(folder), precision=precision))
        except EpochcostError as error:
            return f"refused: {str(error).splitlines()[0][:160]} | "
    if measured.agreement is None:
        return f"{mean_step(measured)} | "
    return f"{mean_step(measured)} | {measured.agreement.outputs[0].relative_to_norm or 0.0:.1e}"


def precisions(proof: Proof, models: list[str]) -> None:
    """Print the steps of each model in each precision."""
    print(f"\n| model | precision | step | first loss off by |\n|{' --- |' * 4}")
    for name in models:
        for precision in PRECISIONS:
            print(f"| {name} | {precision} | {precise(proof, name, precision)} |", flush=True)


def limited(proof: Proof) -> str:
    """What happens to a step that has too little memory on the device."""
    with tempfile.TemporaryDirectory() as folder:
        job = proof.job("mnist-cnn", 128, Path(folder))
        try:
            proof.timed(job, session={"device_memory_limit_bytes": LIMIT_BYTES})
        except EpochcostError as error:
            words = str(error).splitlines()[0]
            known = "known as" if tells_out_of_memory(str(error)) else "NOT KNOWN as"
            return f"{known} short: {words}"
    return "NOT refused" if proof.provider == "cuda" else "no limit on the CPU"


def table(proof: Proof, models: list[str]) -> None:
    """Print the table row by row, then other precisions and the memory limit."""
    print(f"| {' | '.join(HEADERS)} |\n|{' --- |' * len(HEADERS)}")
    for name in models:
        for batch_size in BATCHES:
            cells = row(proof, name, batch_size)
            print(f"| {' | '.join((*cells, *[''] * (len(HEADERS) - len(cells))))} |", flush=True)
    precisions(proof, models)
    print(f"\nArena of {LIMIT_BYTES} bytes: {limited(proof)}")


def main() -> int:
    """Print the proof; 3 where there is no GPU to prove anything on."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", type=int, default=0, help="the GPU by CUDA's number")
    parser.add_argument("--models", nargs="+", default=list(MODELS))
    parser.add_argument("--seconds", type=float, default=1.5, help="of timing for each figure")
    parser.add_argument("--provider", choices=("cuda", "cpu"), default="cuda")
    asked = parser.parse_args()
    begun = time.monotonic()
    try:
        if asked.provider == "cuda":
            require_cuda()
            require_device(asked.device)
        proof = Proof(load_catalogue(ROOT), asked.provider, asked.device, asked.seconds)
        where = gpu_descriptions(shown_gpus())[asked.device :][:1] or [
            "no GPU: a rehearsal on the CPU"
        ]
        print(f"{where[0]}; {runtime_name()}\n")
        table(proof, asked.models)
    except CapabilityError as error:
        print(str(error).splitlines()[0], file=sys.stderr)
        return error.exit_code
    print(f"\n{time.monotonic() - begun:.0f} s in all")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
