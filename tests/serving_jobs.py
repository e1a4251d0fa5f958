"""A small model to serve under LoadGen: y = relu(x w), at batch sizes 1, 2 and 4."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper

from epochcost.measure.job import Job, SamplingRule, ServingFiles, WarmUpRule
from epochcost.plan.work import Load

MakeServingJob = Callable[..., Job]
EXAMPLES = np.arange(40, dtype=np.float32).reshape(10, 4) / 10 - 2
WEIGHT = np.linspace(-1, 1, 12, dtype=np.float32).reshape(4, 3)


def product_of(size: int) -> onnx.ModelProto:
    """The model at one batch size."""
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["x", "w"], ["p"]), helper.make_node("Relu", ["p"], ["y"])],
        "served",
        [
            helper.make_tensor_value_info("x", TensorProto.FLOAT, [size, 4]),
            helper.make_tensor_value_info("w", TensorProto.FLOAT, [4, 3]),
        ],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [size, 3])],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)


def write_serving_job(
    folder: Path,
    load: Load | None = None,
    graphs: dict[int, onnx.ModelProto] | None = None,
    **fields: Any,
) -> Job:
    """Write the model's files; keywords change the job's fields."""
    files = {}
    for size, graph in (graphs or {size: product_of(size) for size in (1, 2, 4)}).items():
        files[size] = folder / f"serving-{size}.onnx"
        onnx.save(graph, files[size])
    np.savez(folder / "examples.npz", x=EXAMPLES)
    np.savez(folder / "initial.npz", w=WEIGHT)
    settings: dict[str, Any] = {
        "mode": "inference",
        "provider": "cpu",
        "session": {"threads": 1},
        "graph": files[max(files)],
        "batches": folder / "examples.npz",
        "initial": folder / "initial.npz",
        "serving": ServingFiles(load=load or Load(scenario="offline"), graphs=files),
        "sampling": SamplingRule(minimum_samples=10, budget_seconds=0.5),
        "warm_up": WarmUpRule(minimum_steps=3, minimum_seconds=0.0),
    }
    return Job.model_validate(settings | fields)
