"""Write a case as files: the model's graph, first weights, batches, and the step's job.

The same files feed every contender, so that all start from the same weights and read the same data.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import onnx
from made_trials import made_trial
from numpy.typing import NDArray
from onnx import numpy_helper

from epochcost.execute.build import build_job
from epochcost.execute.job_files import save_arrays
from epochcost.measure.job import Job
from epochcost.measure.runtime import runtime_name
from epochcost.plan.binding import bind_model
from epochcost.plan.trial import SessionSettings, Trial
from epochcost.specs.catalogue import Catalogue
from epochcost.specs.model import Model, Training
from epochcost.specs.training import Constant
from onnxstep.graphs.choices import match_names
from onnxstep.graphs.loading import load_model
from onnxstep.graphs.parameters import data_inputs, materialise, parameters
from steps.cases import Case, Subject
from steps.work import Term, Work, write_work


def prepare(catalogue: Catalogue, case: Case, folder: Path, *, dropout: bool = True) -> None:
    """Write a training case into ``folder``; its losses are comparable without ``dropout``."""
    folder.mkdir(parents=True, exist_ok=True)
    model = declared(catalogue, case.subject)
    graph = load_model(catalogue.graph_path(model))
    if not dropout:
        _remove_dropout(graph)
    source = folder / "model.onnx"
    onnx.save(graph, source)
    forward = bind_model(graph, model, case.batch_size)
    onnx.save(forward, folder / "forward.onnx")
    job = build_job(_trial(model, source, case), model, source, folder)
    (folder / "job.json").write_text(job.model_dump_json(), "utf-8")
    save_arrays(materialise(graph, job.seed), folder / "weights.npz")
    work = _work(model, forward, job, dropout=dropout)
    write_work(replace(work, device=case.device, precision=case.precision))


def prepare_inference(catalogue: Catalogue, case: Case, folder: Path) -> None:
    """Write the files of a case of inference into ``folder``."""
    folder.mkdir(parents=True, exist_ok=True)
    model = declared(catalogue, case.subject)
    source = catalogue.graph_path(model)
    graph = load_model(source)
    forward = bind_model(graph, model, case.batch_size)
    job = build_job(_trial(model, source, case), model, source, folder)
    (folder / "job.json").write_text(job.model_dump_json(), "utf-8")
    weights = materialise(graph, job.seed)
    save_arrays(weights, folder / "weights.npz")
    work = replace(_inputs_and_outputs(model, forward, job), mode="inference")
    onnx.save(_with_weights(forward, weights), work.stored)
    write_work(work)


def _with_weights(graph: onnx.ModelProto, weights: Mapping[str, NDArray[Any]]) -> onnx.ModelProto:
    """The graph with its parameters as initializers."""
    kept = [value for value in graph.graph.input if value.name not in weights]
    stored = {tensor.name for tensor in graph.graph.initializer}
    del graph.graph.input[:]
    graph.graph.input.extend(kept)
    graph.graph.initializer.extend(
        numpy_helper.from_array(array, name)
        for name, array in weights.items()
        if name not in stored
    )
    return graph


def declared(catalogue: Catalogue, subject: Subject) -> Model:
    """The model's spec with the subject's dimensions, at one learning rate for all steps."""
    model = catalogue.model(subject.model)
    training = training_of(model).model_copy(update={"schedule": Constant(name="constant")})
    sizes = {**model.dimensions, **subject.dimensions}
    return model.model_copy(update={"training": training, "dimensions": sizes})


def training_of(model: Model) -> Training:
    """The model's training settings."""
    assert model.training is not None, f"{model.id} is not trained"
    return model.training


def _remove_dropout(graph: onnx.ModelProto) -> None:
    for node in graph.graph.node:
        if node.op_type == "Dropout":
            del node.input[1:], node.output[1:], node.attribute[:]
            node.op_type = "Identity"


def _trial(model: Model, graph: Path, case: Case) -> Trial:
    return made_trial(
        model.id,
        case.batch_size,
        runtime_name(),
        graph,
        mode=case.mode,
        provider=case.device,
        precision=case.precision,
        session=SessionSettings(
            threads=case.threads,
            tf32=case.precision == "tf32",
            cuda_graph=case.device == "cuda",
        ),
    )


def _inputs_and_outputs(model: Model, forward: onnx.ModelProto, job: Job) -> Work:
    """The part of the description that inference and training share."""
    data = data_inputs(forward)
    carried = {state.input: state.output for state in model.carried}
    return Work(
        folder=job.batches.parent,
        model=model.id,
        network=Path(model.graph).stem,
        batch_size=_whole(data[0].shape[0]),
        inputs=tuple(value.name for value in data),
        outputs=tuple(value.name for value in forward.graph.output),
        carried=carried,
        carried_shape=next((d.shape for d in data if d.name in carried), ()),
    )


def _work(model: Model, forward: onnx.ModelProto, job: Job, *, dropout: bool) -> Work:
    training = training_of(model)
    moved = {carried.input for carried in job.carried}
    trained = [parameter.name for parameter in parameters(forward) if parameter.name in moved]
    return replace(
        _inputs_and_outputs(model, forward, job),
        dropout=dropout,
        terms=_terms(training),
        optimizer=_settings(training),
        clip_norm=None if training.clip_norm is None else float(training.clip_norm),
        trained=tuple(trained),
        undecayed=tuple(sorted(match_names("no_weight_decay", training.no_weight_decay, trained))),
    )


def _whole(size: int | str) -> int:
    assert isinstance(size, int), f"the batch is not bound: {size}"
    return size


def _terms(training: Training) -> tuple[Term, ...]:
    """The spec's loss terms, with the targets ``target``, ``target_2``, …."""
    return tuple(
        Term(
            term.loss,
            term.output,
            f"target_{number}" if number > 1 else "target",
            float(term.weight),
        )
        for number, term in enumerate(training.terms, 1)
    )


def _settings(training: Training) -> Mapping[str, Any]:
    settings = training.optimizer.model_dump()
    return {
        name: float(value) if isinstance(value, Decimal) else value
        for name, value in settings.items()
    }
