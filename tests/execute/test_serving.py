"""A study's scenarios become stored results, on a real model of the tiny project."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest

from epochcost.execute.assignment import Assignment, Event, Finished
from epochcost.execute.build import build_job
from epochcost.execute.planning import plan_run
from epochcost.execute.run import run_trials
from epochcost.measure.job import ServingFiles
from epochcost.plan.make import Plan, RunRequest
from epochcost.results.store import ResultStore
from epochcost.specs.catalogue import Catalogue
from epochcost.specs.loader import load_catalogue
from sound_results import sound_results
from tiny_project import write_tiny_project

pytest.importorskip("mlperf_loadgen", reason="LoadGen is not built for this machine")
_LOAD = """
scenarios = ["offline", "server"]
modes = ["inference"]
serving = { server_latency_ms = 200, maximum_batch = 6 }
"""


def ignore(_: Event) -> None:
    """Ignore an event of the run."""


@pytest.fixture(name="served")
def served_fixture(tmp_path: Path) -> tuple[Catalogue, Plan]:
    """The tiny project with a study of two scenarios, and its plan."""
    root = write_tiny_project(tmp_path / "project")
    study = root / "specs" / "studies" / "brief.toml"
    study.write_text(study.read_text().replace('models = ["tiny"]', f'models = ["tiny"]{_LOAD}'))
    catalogue = load_catalogue(root)
    return catalogue, plan_run(catalogue, RunRequest(providers=("cpu",)))


def test_a_job_has_a_graph_for_each_size(served: tuple[Catalogue, Plan], tmp_path: Path) -> None:
    """Each batch size has a graph bound to it; all 1,024 examples differ."""
    catalogue, plan = served
    (trial,) = (trial for trial in plan.trials if trial.work.scenario == "server")
    model = catalogue.models["tiny"]
    job = build_job(trial, model, catalogue.graph_path(model), tmp_path)
    assert isinstance(job.serving, ServingFiles)
    assert job.serving.load == trial.work
    shapes = {
        size: onnx.load(path).graph.input[0].type.tensor_type.shape.dim[0].dim_value
        for size, path in job.serving.graphs.items()
    }
    assert shapes == {1: 1, 2: 2, 4: 4, 6: 6}
    examples = np.load(job.batches)["x"]
    assert examples.shape == (1024, 16)
    assert len(np.unique(examples, axis=0)) == len(examples)


@pytest.mark.slow
def test_scenarios_are_measured_stored_and_resumed(
    served: tuple[Catalogue, Plan], tmp_path: Path
) -> None:
    """Both scenarios have a stored result, and a resumed run measures neither again."""
    catalogue, plan = served
    store = ResultStore(tmp_path / "results")
    outcomes = run_trials(Assignment(catalogue, plan, "local", store), ignore)
    assert all(isinstance(outcome, Finished) for outcome in outcomes), outcomes
    results = sound_results(store.folder)
    assert {result.trial.work.scenario for result in results} == {"offline", "server"}
    assert all(result.measurement.served is not None for result in results)
    assert all(path.stat().st_size < 5_000_000 for path in store.folder.glob("*/*.json"))
    again = run_trials(Assignment(catalogue, plan, "local", store, resume=True), ignore)
    assert not any(isinstance(outcome, Finished) for outcome in again)
