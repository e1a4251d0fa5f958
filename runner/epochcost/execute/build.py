"""From a trial to a worker's job: the graph to time and the data to feed it, as files in a folder.

Of a trial under LoadGen these are a graph for each batch size, and examples. Nothing is executed
here. How the graph is differentiated is known in ``autodiff``, what the data
look like in ``train``.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from epochcost.errors import ModelError
from epochcost.execute.job_files import (
    fp32_reference,
    graph_in_precision,
    require_half,
    save_arrays,
    save_graph,
    save_stored_weights,
    step_precision,
)
from epochcost.execute.requests import request_files
from epochcost.execute.runtimes import interpreter, require_readable
from epochcost.execute.step import build_step, in_place_inputs, loss_terms
from epochcost.measure.job import (
    CarriedValue,
    Evaluation,
    Job,
    JobFiles,
    SamplingRule,
    ServingFiles,
)
from epochcost.measure.pinning import choose_pinning
from epochcost.plan.binding import bind_model, carried_state
from epochcost.plan.trial import Trial
from epochcost.plan.work import Load, Requests
from epochcost.results.records import Pinning
from epochcost.specs.model import Model, Training
from epochcost.specs.study import MOST_SAMPLES, Provider
from epochcost.train.batches import (
    POOL_BYTES,
    TRAINING_STREAM,
    example_fields,
    held_out_batches,
    save_batches,
    step_targets,
    training_batches,
)
from epochcost.train.schedule import Horizon, learning_rates
from epochcost.train.teacher import Teacher
from onnxstep import Precision, TrainingStep, evaluation_graph
from onnxstep.graphs.counting import flops
from onnxstep.graphs.loading import load_model


@dataclass(frozen=True)
class _BoundTrial:
    """What a trial is about: its model's graph, bound to the trial, and where its files go."""

    trial: Trial
    model: Model
    graph: onnx.ModelProto
    carried: tuple[CarriedValue, ...]
    folder: Path
    room_bytes: int | None


def build_job(
    trial: Trial, model: Model, graph_path: Path, folder: Path, room_bytes: int | None = None
) -> Job:
    """Write what a trial needs into ``folder`` and return the job that names it.

    Raises MemoryError where its batches do not fit in ``room_bytes``, and ModelError where the
    graph cannot be read, bound or differentiated, does not fit the spec, or is not the file that
    the trial was planned for.
    """
    # A second thread of BLAS would wait in a loop between the small products that draw the data, on
    # the CPU on which a worker may be loading its libraries.
    with threadpool_limits(1, user_api="blas"):
        return _job(trial, model, graph_path, folder, room_bytes)


def _job(trial: Trial, model: Model, graph_path: Path, folder: Path, room_bytes: int | None) -> Job:
    planned = _planned_graph(trial, graph_path)
    if isinstance(trial.work, Requests):
        return make_job(trial, request_files(trial, trial.work, model, planned, folder))
    if isinstance(trial.work, Load):
        return serving_job(trial, trial.work, model, planned, folder)
    graph = bind_model(planned, model, trial.batch_size, trial.work)
    work = _BoundTrial(trial, model, graph, _carried_state(graph, model), folder, room_bytes)
    if trial.mode == "training" and model.training is not None:
        return make_job(trial, _training(work, model.training))
    return make_job(trial, _inference(work))


def _planned_graph(trial: Trial, path: Path) -> onnx.ModelProto:
    graph = load_model(path)
    require_readable(graph, path, trial.runtime)
    if hashlib.sha256(path.read_bytes()).hexdigest() != trial.graph_sha256:
        raise ModelError(f"{path}: the file changed after the run was planned; run again")
    return graph


def _carried_state(graph: onnx.ModelProto, model: Model) -> tuple[CarriedValue, ...]:
    # A step writes behind what the cache holds, where nothing was.
    cache = model.decoder is not None
    return tuple(
        CarriedValue(input=state.input, output=state.output, in_place=cache)
        for state in carried_state(graph, model)
    )


def _inference(work: _BoundTrial) -> JobFiles:
    trial, folder = work.trial, work.folder
    teacher = Teacher(example_fields(work.graph, work.model, trial.batch_size), (), trial.seed)
    state = {carried.output for carried in work.carried}
    cache = {carried.input: carried.output for carried in work.carried if carried.in_place}
    plain = save_graph(work.graph, folder / "inference.onnx")
    pool = training_batches(teacher, trial.batch_size, work.room_bytes)
    batches = save_batches(pool, folder / "batches.npz")
    return JobFiles(
        graph=graph_in_precision(trial, work.graph, plain, batches, cache),
        batches=batches,
        reference=fp32_reference(trial, work.graph, plain, batches),
        carried=work.carried,
        outputs=tuple(o.name for o in work.graph.graph.output if o.name not in state),
    )


def _training(work: _BoundTrial, training: Training) -> JobFiles:
    trial, folder = work.trial, work.folder
    fields = example_fields(work.graph, work.model, trial.batch_size)
    step = _step(work, training, step_precision(trial))
    require_half(step.model, trial)
    targets = step_targets(step, work.graph, work.model, training, trial.batch_size)
    teacher = Teacher(fields, targets, trial.seed)
    graph = save_graph(step.model, folder / "step.onnx")
    pool = training_batches(teacher, trial.batch_size, work.room_bytes)
    batches = save_batches(pool, folder / "batches.npz")
    scalars, series = _rates(work, training, step)
    return JobFiles(
        graph=graph,
        batches=batches,
        reference=fp32_reference(trial, step.model, _plain_step(work, training, graph), batches),
        initial=save_stored_weights(work.graph, folder / "initial.npz"),
        carried=carried_values(step, trial.provider),
        outputs=(step.loss,),
        evaluation=_evaluation(work, training, teacher),
        scalars=scalars,
        series=series,
    )


def make_job(trial: Trial, files: JobFiles) -> Job:
    """The job of a trial.

    Raises CapabilityError where a trial has to be pinned and cannot be, or its runtime is not
    prepared.
    """
    return Job(
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
        graph=files.graph,
        batches=files.batches,
        reference=files.reference,
        carried=files.carried,
        outputs=files.outputs,
        initial=files.initial,
        scalars=files.scalars,
        series=files.series,
        evaluation=files.evaluation,
        serving=files.serving,
    )


def trial_pinning(trial: Trial) -> Pinning | None:
    """The CPUs of its worker, None for all; raises CapabilityError as ``make_job``."""
    return None if trial.vcpus is None else choose_pinning(trial.vcpus, trial.session.threads)


# As many as MLPerf keeps of ImageNet for ResNet-50 (loadgen/mlperf.conf), or what fits in the pool.
_MOST_EXAMPLES = 1024
_FEWEST_EXAMPLES = 8


def serving_job(
    trial: Trial, load: Load, model: Model, graph: onnx.ModelProto, folder: Path
) -> Job:
    """Write graphs and examples into ``folder``; ``graph`` is the model's, not yet bound.

    Raises ModelError where the graph cannot be bound or does not fit the spec.
    """
    sizes = powers_of_two(trial.batch_size)
    graphs = {size: bind_model(graph, model, size) for size in sizes}
    teacher = Teacher(example_fields(graphs[1], model, 1), (), trial.seed)
    room = POOL_BYTES // max(1, teacher.example_bytes)
    count = max(_FEWEST_EXAMPLES, min(_MOST_EXAMPLES, room))
    examples = teacher.draw(TRAINING_STREAM, 0, count).inputs
    plain = {
        size: save_graph(each, folder / f"serving-{size}.onnx") for size, each in graphs.items()
    }
    firsts = {size: _first_batch(examples, size, folder) for size in sizes}
    files = {
        size: graph_in_precision(trial, graphs[size], plain[size], firsts[size]) for size in sizes
    }
    largest = trial.batch_size
    built = JobFiles(
        graph=files[largest],
        reference=fp32_reference(trial, graphs[largest], plain[largest], firsts[largest]),
        batches=save_arrays(examples, folder / "examples.npz"),
        carried=_carried_state(graphs[1], model),
        serving=ServingFiles(load=load, graphs=files),
    )
    return make_job(trial, built)


def _first_batch(examples: Mapping[str, NDArray[Any]], size: int, folder: Path) -> Path:
    """A pool ``[1, size, ...]`` of the first examples, over again where they are too few."""
    first = {
        name: np.resize(values, (1, size, *values.shape[1:])) for name, values in examples.items()
    }
    return save_arrays(first, folder / f"first-{size}.npz")


def powers_of_two(largest: int) -> tuple[int, ...]:
    """The batch sizes to have graphs for: powers of two below ``largest``, and that itself."""
    return (*(2**power for power in range(largest.bit_length()) if 2**power < largest), largest)


def carried_values(step: TrainingStep, provider: Provider) -> tuple[CarriedValue, ...]:
    """What a step hands to the next, overwritten in place where the provider can."""
    places = in_place_inputs(step, provider)
    return tuple(
        CarriedValue(input=c.input, output=c.output, fill=c.fill, in_place=c.input in places)
        for c in step.carried
    )


def _step(work: _BoundTrial, training: Training, precision: Precision) -> TrainingStep:
    trial = work.trial
    return build_step(work.graph, work.model, training, trial.provider, trial.seed, precision)


def _plain_step(work: _BoundTrial, training: Training, graph: Path) -> Path:
    """The file of the same step in fp32, which that of a trial in another is compared with."""
    if step_precision(work.trial) == "fp32":
        return graph
    return save_graph(_step(work, training, "fp32").model, work.folder / "step-fp32.onnx")


def _rates(
    work: _BoundTrial, training: Training, step: TrainingStep
) -> tuple[dict[str, float], Path | None]:
    """The learning rate: one number where it stays the same, else a file with each step's."""
    epoch_steps = max(1, training.examples_per_epoch // work.trial.batch_size)
    rates = learning_rates(
        training.schedule,
        training.optimizer.learning_rate,
        Horizon(epoch_steps, epoch_steps * training.epochs),
        # Warm-up steps of the measurement beyond them keep the last rate.
        MOST_SAMPLES,
    )
    if np.all(rates == rates[0]):
        return {step.learning_rate: float(training.optimizer.learning_rate)}, None
    return {}, save_arrays({step.learning_rate: rates}, work.folder / "series.npz")


def _evaluation(work: _BoundTrial, training: Training, teacher: Teacher) -> Evaluation:
    with_loss = evaluation_graph(
        work.graph, loss=loss_terms(training), batch_statistics=True, freeze=training.freeze
    )
    batches = held_out_batches(teacher, work.trial.batch_size, flops(with_loss))
    return Evaluation(
        graph=save_graph(with_loss, work.folder / "evaluation.onnx"),
        batches=save_batches(batches, work.folder / "held-out.npz"),
        loss="loss",
        carried=work.carried,
    )
