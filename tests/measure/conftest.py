"""Small graphs, and the jobs that time them."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from epochcost.measure.job import CarriedValue, Evaluation, Job, SamplingRule, WarmUpRule
from serving_jobs import write_serving_job

POOL = np.arange(12, dtype=np.float32).reshape(3, 4) / 10
QUICK = SamplingRule(
    relative_half_width=0.9,
    minimum_samples=5,
    minimum_seconds=0.0,
    minimum_share=0.0,
    budget_seconds=2.0,
)
AT_ONCE = WarmUpRule(minimum_steps=3, minimum_seconds=0.0)


def value(name: str, shape: list[int], kind: int = TensorProto.FLOAT) -> onnx.ValueInfoProto:
    """Declare a tensor."""
    return helper.make_tensor_value_info(name, kind, shape)


def model(
    nodes: list[onnx.NodeProto],
    inputs: list[onnx.ValueInfoProto],
    outputs: list[onnx.ValueInfoProto],
) -> onnx.ModelProto:
    """Make a model that ONNX Runtime accepts."""
    graph = helper.make_graph(nodes, "tiny", inputs, outputs)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)


@pytest.fixture
def counter() -> onnx.ModelProto:
    """A small training step: w_next = w - lr * g, v_next = v + 1, loss = sum of w_next."""
    return model(
        [
            helper.make_node("Mul", ["lr", "g"], ["move"]),
            helper.make_node("Sub", ["w", "move"], ["w_next"]),
            helper.make_node("Constant", [], ["one"], value_float=1.0),
            helper.make_node("Add", ["v", "one"], ["v_next"]),
            helper.make_node("ReduceSum", ["w_next"], ["loss"], keepdims=0),
        ],
        [value("w", [4]), value("v", [2]), value("g", [4]), value("lr", [])],
        [value("w_next", [4]), value("v_next", [2]), value("loss", [])],
    )


@pytest.fixture
def product() -> onnx.ModelProto:
    """A model to serve: y = relu(x @ w)."""
    return model(
        [helper.make_node("MatMul", ["x", "w"], ["p"]), helper.make_node("Relu", ["p"], ["y"])],
        [value("x", [2, 4]), value("w", [4, 3])],
        [value("y", [2, 3])],
    )


@pytest.fixture
def job_of(tmp_path: Path) -> Callable[..., Job]:
    """Write a graph and its arrays and make their job; keywords change the job's fields."""

    def make(
        graph: onnx.ModelProto,
        batches: dict[str, Any],
        initial: dict[str, Any],
        **fields: Any,
    ) -> Job:
        onnx.save(graph, tmp_path / "graph.onnx")
        np.savez(tmp_path / "batches.npz", **batches)
        np.savez(tmp_path / "initial.npz", **initial)
        settings = {
            "mode": "training",
            "provider": "cpu",
            "session": {"threads": 1},
            "graph": tmp_path / "graph.onnx",
            "batches": tmp_path / "batches.npz",
            "initial": tmp_path / "initial.npz",
            "sampling": QUICK,
            "warm_up": AT_ONCE,
        }
        return Job.model_validate(settings | fields)

    return make


@pytest.fixture
def counting(job_of: Callable[..., Job], counter: onnx.ModelProto, tmp_path: Path) -> Job:
    """The counter's job. The evaluation sums w and the held-out batch."""
    evaluation = model(
        [
            helper.make_node("Add", ["w", "g"], ["both"]),
            helper.make_node("ReduceSum", ["both"], ["loss"], keepdims=0),
        ],
        [value("w", [4]), value("g", [4])],
        [value("loss", [])],
    )
    onnx.save(evaluation, tmp_path / "evaluation.onnx")
    np.savez(tmp_path / "held-out.npz", g=np.zeros((2, 4), np.float32))
    return job_of(
        counter,
        {"g": POOL},
        {"w": np.ones(4, np.float32)},
        scalars={"lr": 0.5},
        carried=(
            CarriedValue(input="w", output="w_next"),
            CarriedValue(input="v", output="v_next"),
        ),
        outputs=("loss",),
        evaluation=Evaluation(
            graph=tmp_path / "evaluation.onnx", batches=tmp_path / "held-out.npz", loss="loss"
        ),
    )


@pytest.fixture
def serving_job(tmp_path: Path) -> Callable[..., Job]:
    """Write a model to serve and make its job; keywords change the job's fields."""
    return partial(write_serving_job, tmp_path)
