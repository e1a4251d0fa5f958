"""A worker's times under a test clock, and its proofs before a CUDA graph is captured."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from epochcost.measure import stepping, worker
from epochcost.measure.job import Job, Message, PlacementError, SamplingRule
from epochcost.measure.stepping import Stepper
from epochcost.plan.trial import SessionSettings
from epochcost.results.records import Measurement

RUN_SECONDS = 1.0


class Clock:
    """A clock that only the steps move."""

    now = 0.0

    def __call__(self) -> float:
        """The current time."""
        return self.now


@pytest.fixture
def measured(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[[Job], Measurement]:
    """Measure a job whose runs take a known time."""
    clock = Clock()

    class Timed(Stepper):
        def __call__(self) -> None:
            super().__call__()
            clock.now += RUN_SECONDS

    def measure(job: Job) -> Measurement:
        heard: list[Message] = []
        return worker.measure(job, tmp_path, heard.append, clock)

    monkeypatch.setattr(stepping, "Stepper", Timed)
    return measure


def long_budget(job: Job, **fields: object) -> Job:
    """The job with a budget for ten slow steps."""
    sampling = SamplingRule(
        relative_half_width=0.9, minimum_samples=5, minimum_seconds=0, budget_seconds=10_000
    )
    return job.model_copy(update={"sampling": sampling, **fields})


def test_a_step_for_a_cuda_graph_is_proved_without_one(
    measured: Callable[[Job], Measurement], counting: Job
) -> None:
    """A first session proves the placement without a CUDA graph. A second takes the steps."""
    job = long_budget(counting)
    settings = SessionSettings(threads=1, cuda_graph=True)
    captured = measured(job.model_copy(update={"session": settings}))
    plain = measured(job)
    assert captured.placement == plain.placement
    assert captured.steps_taken == plain.steps_taken - 1


def branching() -> onnx.ModelProto:
    """A model to serve with a branch on its input: y = x or -x."""
    info = helper.make_tensor_value_info
    branches = {
        name: helper.make_graph(
            [helper.make_node(operator, ["x"], [name])], name, [], [info(name, 1, [2])]
        )
        for name, operator in (("then_branch", "Identity"), ("else_branch", "Neg"))
    }
    nodes = [
        helper.make_node("ReduceMax", ["x"], ["most"], keepdims=0),
        helper.make_node("Cast", ["most"], ["is"], to=TensorProto.BOOL),
        helper.make_node("If", ["is"], ["y"], **branches),
    ]
    graph = helper.make_graph(nodes, "branching", [info("x", 1, [2])], [info("y", 1, [2])])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)


def test_control_flow_in_a_cuda_graph_is_refused_after_the_proof(
    measured: Callable[[Job], Measurement], job_of: Callable[..., Job]
) -> None:
    """The refusal names the operator and the key of the study, before ONNX Runtime captures."""
    job = job_of(branching(), {"x": np.ones((1, 2), "f4")}, {}, mode="inference")
    assert measured(job).steps_taken > 0
    settings = SessionSettings(threads=1, cuda_graph=True)
    with pytest.raises(PlacementError, match=r"CUDA graph: .* got If: set graphs = false"):
        measured(job.model_copy(update={"session": settings}))
