"""A model's training step, and its carried values written in place."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from epochcost import __version__
from epochcost.execute.build import build_job
from epochcost.execute.step import in_place_inputs, step_options
from epochcost.measure.job import Job
from epochcost.measure.runtime import runtime_name
from epochcost.measure.session import open_session
from epochcost.measure.stepping import Stepper, graph_inputs, initial_parameters
from epochcost.plan.binding import bind_model
from epochcost.plan.digests import graph_sha256, work_sha256
from epochcost.plan.trial import SessionSettings, Trial
from epochcost.specs.loader import load_catalogue
from onnxstep import training_step
from onnxstep.graphs.loading import load_model

ROOT = Path(__file__).parents[2]
MODELS = (
    "mnist-mlp",
    "mnist-cnn",
    "lstm-text-generation",
    pytest.param("lstm-char-cnn-small", marks=pytest.mark.slow),
)


def training_job(name: str, folder: Path) -> Job:
    """The training job of a model at a batch of four, as a run builds it."""
    catalogue = load_catalogue(ROOT)
    model = catalogue.model(name)
    trial = Trial(
        model=name,
        mode="training",
        provider="cpu",
        batch_size=4,
        session=SessionSettings(threads=1),
        seed=1,
        runtime=runtime_name(),
        producer=__version__,
        graph_sha256=graph_sha256(catalogue, name),
        spec_sha256=work_sha256(model, "training"),
        relative_half_width=Decimal("0.05"),
        minimum_samples=10,
        budget_seconds=Decimal(60),
    )
    return build_job(trial, model, catalogue.graph_path(model), folder)


def carried_after(job: Job, steps: int) -> Mapping[str, NDArray[Any]]:
    """The carried values after ``steps`` steps of a job with one thread."""
    session = open_session(job.graph, "cpu", job.session)
    inputs = graph_inputs(job, initial_parameters(job), session.get_inputs())
    step = Stepper(session, "cpu", "training", inputs, job.carried)
    for _ in range(steps):
        step()
    return step.carried_values()


@pytest.mark.parametrize("name", MODELS)
def test_steps_in_place_are_the_same_steps(name: str, tmp_path: Path) -> None:
    """Values that are overwritten equal, bit for bit, values that are kept in two sets."""
    job = training_job(name, tmp_path)
    assert any(value.in_place for value in job.carried)
    apart = tuple(value.model_copy(update={"in_place": False}) for value in job.carried)
    found = carried_after(job, 4)
    expected = carried_after(job.model_copy(update={"carried": apart}), 4)
    assert found.keys() == expected.keys()
    unequal = [each for each in expected if not np.array_equal(found[each], expected[each])]
    assert not unequal


def test_only_the_cpu_overwrites() -> None:
    """On CUDA, where in-place steps were never tried, a step writes a second set of values."""
    catalogue = load_catalogue(ROOT)
    model = catalogue.model("mnist-mlp")
    assert model.training is not None
    graph = bind_model(load_model(catalogue.graph_path(model)), model, 4)
    step = training_step(graph, step_options(model, model.training, "cpu"))
    assert not in_place_inputs(step, "cuda")
    assert in_place_inputs(step, "cpu")
