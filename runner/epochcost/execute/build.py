"""Build a trial's job for a worker: the graph to time and its data, as files in a folder."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
from threadpoolctl import threadpool_limits

from epochcost.errors import ModelError
from epochcost.execute.engines import interpreter
from epochcost.execute.job_files import (
    bound_state,
    cache_names,
    fp32_reference,
    graph_in_precision,
    save_arrays,
    save_graph,
    save_stored_weights,
)
from epochcost.execute.loads import load_files
from epochcost.execute.requests import request_files
from epochcost.execute.step import (
    carried_values,
    fp32_step_path,
    step_in_precision,
    write_evaluation,
)
from epochcost.measure.job import Job, JobFiles, SamplingRule
from epochcost.measure.pinning import choose_pinning
from epochcost.plan.binding import bind_model
from epochcost.plan.trial import Trial
from epochcost.plan.work import Load, Requests
from epochcost.results.records import Pinning
from epochcost.specs.model import Model, Training
from epochcost.specs.study import MOST_SAMPLES
from epochcost.train.batches import example_fields, step_targets, training_pool
from epochcost.train.schedule import trial_rates
from epochcost.train.teacher import Teacher
from onnxstep.graphs.loading import load_model
from onnxstep.passes.gelu import with_halving_last

# A function that draws a trial's batches and saves them.
SavePool = Callable[[Teacher], Path]


def build_job(
    trial: Trial, model: Model, graph_path: Path, folder: Path, room_bytes: int | None = None
) -> Job:
    """Write the files of a trial into ``folder`` and return the job that names them.

    Raises MemoryError if the batches exceed ``room_bytes`` (None: no limit), and ModelError if the
    graph is unusable or has changed since planning. Raises CapabilityError if the engine or the
    pinning is unavailable.
    """
    # A second BLAS thread would wait in a busy loop between small products, on a CPU on which
    # a worker may be loading its libraries.
    with threadpool_limits(1, user_api="blas"):
        graph = _planned_graph(trial, graph_path)
        match trial.work:
            case Load() as load:
                files = load_files(trial, load, model, graph, folder)
            case Requests() as requests:
                files = request_files(trial, requests, model, graph, folder)
            case _:
                files = _step_files(trial, model, graph, folder, room_bytes)
    return _job(trial, files)


def _job(trial: Trial, files: JobFiles) -> Job:
    return Job(
        **dict(files),
        mode=trial.mode,
        provider=trial.provider,
        runtime=trial.runtime,
        python=interpreter(trial),
        session=trial.session,
        pinning=trial_pinning(trial),
        seed=trial.seed,
        precision=trial.precision,
        sampling=SamplingRule(
            relative_half_width=float(trial.relative_half_width),
            minimum_samples=trial.minimum_samples,
            budget_seconds=float(trial.budget_seconds),
        ),
    )


def trial_pinning(trial: Trial) -> Pinning | None:
    """CPUs for a trial's worker, None for all; raises CapabilityError if there are too few."""
    return None if trial.vcpus is None else choose_pinning(trial.vcpus, trial.session.threads)


def _planned_graph(trial: Trial, path: Path) -> onnx.ModelProto:
    graph = load_model(path)
    if hashlib.sha256(path.read_bytes()).hexdigest() != trial.graph_sha256:
        raise ModelError(f"{path}: the file changed after the run was planned; run again")
    return graph


def _step_files(
    trial: Trial, model: Model, graph: onnx.ModelProto, folder: Path, room_bytes: int | None
) -> JobFiles:
    bound = bind_model(graph, model, trial.batch_size, trial.work)

    def save_pool(teacher: Teacher) -> Path:
        pool = training_pool(teacher, trial.batch_size, room_bytes)
        return save_arrays(pool, folder / "batches.npz")

    if trial.mode == "training" and model.training is not None:
        return _training(trial, model, model.training, bound, folder, save_pool)
    return _inference(trial, model, bound, folder, save_pool)


def _inference(
    trial: Trial, model: Model, bound: onnx.ModelProto, folder: Path, save_pool: SavePool
) -> JobFiles:
    graph = with_halving_last(bound)
    plain = save_graph(graph, folder / "inference.onnx")
    batches = save_pool(Teacher(example_fields(graph, model, trial.batch_size), (), trial.seed))
    carried = bound_state(bound, model)
    state = {each.output for each in carried}
    return JobFiles(
        graph=graph_in_precision(trial, graph, plain, cache_names(bound, model)),
        batches=batches,
        reference=fp32_reference(trial, graph, plain, batches),
        carried=carried,
        outputs=tuple(o.name for o in graph.graph.output if o.name not in state),
    )


def _training(
    trial: Trial,
    model: Model,
    training: Training,
    bound: onnx.ModelProto,
    folder: Path,
    save_pool: SavePool,
) -> JobFiles:
    carried = bound_state(bound, model)
    step = step_in_precision(trial, bound, model, training)
    path = save_graph(step.model, folder / "step.onnx")
    plain = fp32_step_path(trial, bound, model, training, path)
    fields = example_fields(bound, model, trial.batch_size)
    targets = step_targets(step, bound, model, training, trial.batch_size)
    teacher = Teacher(fields, targets, trial.seed)
    batches = save_pool(teacher)
    evaluation = write_evaluation(bound, training, teacher, trial.batch_size, folder)
    rates = trial_rates(training, trial.batch_size, MOST_SAMPLES)
    constant, rate = bool(np.all(rates == rates[0])), step.learning_rate
    return JobFiles(
        graph=path,
        batches=batches,
        reference=fp32_reference(trial, step.model, plain, batches),
        initial=save_stored_weights(bound, folder / "initial.npz"),
        carried=carried_values(step, trial.provider),
        outputs=(step.loss,),
        evaluation=evaluation.model_copy(update={"carried": carried}),
        scalars={rate: float(training.optimizer.learning_rate)} if constant else {},
        series=None if constant else save_arrays({rate: rates}, folder / "series.npz"),
    )
