"""From a trial to a worker's job: the graph to time and the data to feed it, as files in a folder.

Nothing is executed here. How the graph is differentiated is known in ``autodiff``, what the data
look like in ``train``.
"""

from __future__ import annotations

import hashlib
import zipfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray

from epochcost.autodiff import TrainingStep, evaluation_graph, training_step
from epochcost.errors import ModelError
from epochcost.execute.optimizers import update_rule
from epochcost.graphs.binding import bind_dimensions, symbolic_dimensions
from epochcost.graphs.loading import load_model
from epochcost.graphs.parameters import materialise, parameters, state
from epochcost.measure.job import Carried, Evaluation, Job, Sampling
from epochcost.plan.trial import Trial
from epochcost.specs.model import Model, Training
from epochcost.train.batches import (
    example_fields,
    held_out_batches,
    teacher_of,
    training_batches,
)
from epochcost.train.teacher import Batch, Teacher


def build_job(trial: Trial, model: Model, graph_path: Path, folder: Path) -> Job:
    """Write what a trial needs into ``folder`` and return the job that names it.

    Raises ModelError where the graph cannot be read, bound or differentiated, does not fit the
    spec, or is not the file that the trial was planned for.
    """
    graph = _bound(_planned_graph(trial, graph_path), trial.batch_size)
    fields = example_fields(graph, model, trial.batch_size)
    teacher = teacher_of(fields, model, trial.seed)
    if trial.mode == "training" and model.training is not None:
        return _training_job(trial, model.training, graph, teacher, folder)
    return _inference_job(trial, graph, teacher, folder)


def _planned_graph(trial: Trial, path: Path) -> onnx.ModelProto:
    graph = load_model(path)
    if hashlib.sha256(path.read_bytes()).hexdigest() != trial.graph_sha256:
        raise ModelError(f"{path}: the file changed after the run was planned; run again")
    return graph


def _bound(graph: onnx.ModelProto, batch_size: int) -> onnx.ModelProto:
    """The graph at one batch size; a lone symbolic dimension is the batch, whatever its name."""
    names = symbolic_dimensions(graph)
    name = names[0] if len(names) == 1 else "batch"
    return bind_dimensions(graph, {name: batch_size} if names else {})


def _inference_job(trial: Trial, graph: onnx.ModelProto, teacher: Teacher, folder: Path) -> Job:
    return Job(
        mode="inference",
        provider=trial.provider,
        threads=trial.threads,
        graph=_save_graph(graph, folder / "inference.onnx"),
        batches=_save_batches(
            training_batches(teacher, trial.batch_size), None, folder / "batches.npz"
        ),
        seed=trial.seed,
        outputs=tuple(output.name for output in graph.graph.output),
        sampling=_sampling(trial),
    )


def _training_job(
    trial: Trial, training: Training, graph: onnx.ModelProto, teacher: Teacher, folder: Path
) -> Job:
    rule = update_rule(training.optimizer)
    step = training_step(
        graph,
        loss=training.loss,
        output=training.output,
        optimizer=rule,
        seed=trial.seed,
        provider=trial.provider,
    )
    _require_a_label_per_example(step, trial.batch_size)
    return Job(
        mode="training",
        provider=trial.provider,
        threads=trial.threads,
        graph=_save_graph(step.model, folder / "step.onnx"),
        batches=_save_batches(
            training_batches(teacher, trial.batch_size), step.target, folder / "batches.npz"
        ),
        initial=_save_stored_weights(graph, folder / "initial.npz"),
        seed=trial.seed,
        scalars={step.learning_rate: float(training.optimizer.learning_rate)},
        carried=tuple(Carried(input=c.input, output=c.output) for c in step.carried),
        outputs=(step.loss,),
        evaluation=_evaluation(trial, training, graph, teacher, folder),
        sampling=_sampling(trial),
    )


def _evaluation(
    trial: Trial, training: Training, graph: onnx.ModelProto, teacher: Teacher, folder: Path
) -> Evaluation:
    with_loss = evaluation_graph(graph, loss=training.loss, output=training.output)
    batches = held_out_batches(teacher, trial.batch_size)
    return Evaluation(
        graph=_save_graph(with_loss, folder / "evaluation.onnx"),
        batches=_save_batches(batches, "target", folder / "held-out.npz"),
        loss="loss",
    )


def _sampling(trial: Trial) -> Sampling:
    return Sampling(
        relative_half_width=float(trial.relative_half_width),
        minimum_samples=trial.minimum_samples,
        budget_seconds=float(trial.budget_seconds),
    )


def _require_a_label_per_example(step: TrainingStep, batch_size: int) -> None:
    (target,) = (value for value in step.model.graph.input if value.name == step.target)
    shape = [dim.dim_value for dim in target.type.tensor_type.shape.dim]
    if shape != [batch_size]:
        raise ModelError(
            f"output to train on: demanded scores of shape [{batch_size}, classes], one label for "
            f"each example; got an output that wants labels of shape {shape}"
        )


def _save_graph(graph: onnx.ModelProto, path: Path) -> Path:
    path.write_bytes(graph.SerializeToString())
    return path


def _save_stored_weights(graph: onnx.ModelProto, path: Path) -> Path | None:
    """The values that an ordinary file holds; None for a weightless one: the worker draws them."""
    held = (*parameters(graph), *state(graph))
    stored = {tensor.name for tensor in held if tensor.initial is None}
    if not stored:
        return None
    values = materialise(graph)
    return _save_arrays({name: values[name] for name in sorted(stored)}, path)


def _save_batches(batches: Iterable[Batch], target: str | None, path: Path) -> Path:
    """An array ``[pool, batch, ...]`` for each input, and for the labels under ``target``."""
    drawn = tuple(batches)
    arrays = {name: np.stack([batch.inputs[name] for batch in drawn]) for name in drawn[0].inputs}
    if target is not None:
        arrays[target] = np.stack([batch.labels for batch in drawn])
    return _save_arrays(arrays, path)


def _save_arrays(arrays: Mapping[str, NDArray[Any]], path: Path) -> Path:
    """An .npz with members of any name; ``numpy.savez`` trips over one called ``file``."""
    with zipfile.ZipFile(path, "w") as archive:
        for name, values in arrays.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                np.lib.format.write_array(member, values, allow_pickle=False)
    return path
