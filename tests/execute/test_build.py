"""A trial becomes a job whose files fit each other."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import numpy_helper
from threadpoolctl import threadpool_info

from epochcost.execute.build import build_job
from epochcost.execute.job_files import save_graph
from epochcost.execute.planning import plan_run
from epochcost.measure.job import Job
from epochcost.plan.make import RunRequest
from epochcost.specs.loader import load_catalogue
from epochcost.specs.study import Mode
from tiny_project import linear_model, write_tiny_project


@pytest.fixture(name="project")
def project_fixture(tmp_path: Path) -> Path:
    """A tiny project, and a folder for the job's files."""
    (tmp_path / "job").mkdir()
    return write_tiny_project(tmp_path / "project")


def build(project: Path, mode: Mode) -> Job:
    """The job of the project's first trial in ``mode``."""
    catalogue = load_catalogue(project)
    planned = plan_run(catalogue, RunRequest(providers=("cpu",)))
    trial = next(trial for trial in planned.trials if trial.mode == mode)
    model = catalogue.model("tiny")
    return build_job(trial, model, catalogue.graph_path(model), project.parent / "job")


def graph_inputs(path: Path) -> dict[str, list[int]]:
    """The shapes of the inputs of an ONNX file, by name."""
    graph = onnx.load(path).graph
    return {
        value.name: [dim.dim_value for dim in value.type.tensor_type.shape.dim]
        for value in graph.input
    }


def test_a_training_job_feeds_every_input_of_its_step(project: Path) -> None:
    """The step's inputs are data, labels, the learning rate and carried values."""
    job = build(project, "training")
    inputs = graph_inputs(job.graph)
    batches = np.load(job.batches)
    assert {name: list(batches[name].shape[1:]) for name in batches} == {
        "x": inputs["x"],
        "target": inputs["target"],
    }
    assert job.scalars == {"learning_rate": 0.02}
    carried = {value.input for value in job.carried}
    assert carried == {"w", "b", "w.momentum", "b.momentum"}
    assert set(inputs) == {"x", "target", "learning_rate"} | carried
    assert job.initial is None


def test_held_out_batches_fit_the_evaluation_graph(project: Path) -> None:
    """The evaluation graph takes held-out batches and trained parameters, and nothing else."""
    job = build(project, "training")
    assert job.evaluation is not None
    inputs = graph_inputs(job.evaluation.graph)
    held_out = np.load(job.evaluation.batches)
    assert {name: list(held_out[name].shape[1:]) for name in held_out} == {
        "x": inputs["x"],
        "target": inputs["target"],
    }
    assert set(inputs) - set(held_out) == {"w", "b"}


def test_an_inference_job_has_no_labels(project: Path) -> None:
    """Inference feeds inputs and reads outputs; it has no carried values and no evaluation."""
    job = build(project, "inference")
    assert list(np.load(job.batches)) == ["x"]
    assert job.outputs == ("logits",)
    assert job.carried == ()
    assert job.evaluation is None


def test_the_same_trial_is_the_same_work(project: Path, tmp_path: Path) -> None:
    """Building a trial twice gives the same bytes, because its seed draws the data."""
    first = build(project, "training")
    bytes_before = [path.read_bytes() for path in (first.graph, first.batches)]
    for path in (tmp_path / "job").iterdir():
        path.unlink()
    second = build(project, "training")
    assert [path.read_bytes() for path in (second.graph, second.batches)] == bytes_before


def test_weights_in_the_file_are_where_training_starts(project: Path) -> None:
    """Weights stored in an ONNX file are the first values of the training, whatever their names."""
    model = linear_model()
    weights = {"file": np.ones((3, 16), np.float32), "b": np.zeros(3, np.float32)}
    model.graph.node[0].input[1] = "file"
    del model.graph.input[1:]
    del model.metadata_props[:]
    model.graph.initializer.extend(
        numpy_helper.from_array(values, name) for name, values in weights.items()
    )
    onnx.save(model, project / "models" / "tiny.onnx")
    job = build(project, "training")
    assert job.initial is not None
    stored = np.load(job.initial)
    assert set(stored.files) == set(weights)
    assert all(np.array_equal(stored[name], values) for name, values in weights.items())


def test_one_thread_of_blas_draws_the_data(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """BLAS has one thread while the job is built, and all its threads again afterwards."""
    before, seen = _blas_threads(), []

    def noted(graph: onnx.ModelProto, path: Path) -> Path:
        seen.append(_blas_threads())
        return save_graph(graph, path)

    monkeypatch.setattr("epochcost.execute.step.save_graph", noted)
    build(project, "training")
    assert {max(threads) for threads in seen} == {1}
    assert _blas_threads() == before


def _blas_threads() -> list[int]:
    found = threadpool_info()
    return [one["num_threads"] for one in found if one["user_api"] == "blas"]
