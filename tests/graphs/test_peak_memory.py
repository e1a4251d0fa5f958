"""The estimated memory of a run agrees with ONNX Runtime's profile."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest

from epochcost.graphs.peak_memory import execution_plan, peak_activation_bytes
from graph_text import model_of_text
from onnxstep import StepOptions, training_step
from onnxstep.errors import ModelError
from onnxstep.graphs.binding import bind_dimensions
from onnxstep.graphs.loading import load_model

MODELS = Path(__file__).parents[2] / "models"
BLOCK = 2**16 * 4  # bytes of a tensor of 65,536 floats


def events(model: onnx.ModelProto, folder: Path, *, optimised: bool = True) -> list[dict]:
    """The profile's entry for each node, in execution order."""
    options = onnxruntime.SessionOptions()
    options.enable_mem_pattern = options.enable_mem_reuse = False
    options.enable_profiling, options.profile_file_prefix = True, str(folder / "profile")
    if not optimised:
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    feeds = {
        info.name: np.ones(info.shape, np.int64 if "int64" in info.type else np.float32)
        for info in session.get_inputs()
    }
    session.run(None, feeds)
    profile = json.loads(Path(session.end_profiling()).read_text())
    return [e["args"] for e in profile if e["name"].endswith("_kernel_time")]


def run_of(nodes: str) -> onnx.ModelProto:
    """A model that computes r from x and w by ``nodes`` and returns the sum of r.

    Each tensor but the sum is one block.
    """
    return bind_dimensions(
        model_of_text(
            "g (float[256,256] x, float[256,256] w) => (float y) "
            f"{{ {nodes} y = ReduceSum <keepdims = 0> (r) }}"
        ),
        {},
    )


@pytest.mark.parametrize(
    ("nodes", "blocks"),
    [
        ("a = Cos(x) b = Cos(a) c = Cos(b) r = Sum(a, c)", 3),
        ("a = Cos(x) b = Tanh(a) r = Relu(b)", 1),
        ("a = Cos(x) b = Tanh(a) r = Add(a, b)", 3),
        ("a = Cos(x) r = Add(a, x)", 2),
        ("a = Cos(x) b = Flatten(a) c = Tanh(b) r = Flatten(c)", 1),
    ],
    ids=["chain", "in-place", "read-later", "sum", "views"],
)
def test_it_is_what_the_profile_has(nodes: str, blocks: float, tmp_path: Path) -> None:
    """The blocks in use at once equal ONNX Runtime's. The estimate adds the arena's margin."""
    model = run_of(nodes)
    assert 1.2 * blocks * BLOCK <= peak_activation_bytes(model) < 1.2 * blocks * BLOCK + 8192
    peak = max(int(e["mem_in_use_peak"]) for e in events(model, tmp_path, optimised=False))
    assert blocks * BLOCK <= peak < blocks * BLOCK + 4096


def test_constants_are_folded() -> None:
    """Values that a session computes when it is created do not count for a run."""
    model = bind_dimensions(
        model_of_text(
            "g (float[8] x) => (float[8] y) <float[1] one = {1}, int64[1] s = {8}> "
            "{ e = Expand(one, s) a = Sin(x) y = Add(a, e) }"
        ),
        {},
    )
    assert [node.op_type for node in execution_plan(model).nodes] == ["Sin", "Add"]


def test_a_step_runs_in_the_order_of_the_runtime(tmp_path: Path) -> None:
    """The operators of a real training step are in the order of the profile.

    Optimization is off, so that no node is fused or folded and both lists can be compared.
    """
    step = training_step(
        load_model(MODELS / "mnist_mlp.onnx"), StepOptions(dimensions={"batch": 8})
    ).model
    ran = [e["op_name"] for e in events(step, tmp_path, optimised=False)]
    counted = [node.op_type for node in execution_plan(step).nodes]
    assert [op for op in ran if op in {"Gemm", "MatMul", "Relu", "Sub"}] == [
        op for op in counted if op in {"Gemm", "MatMul", "Relu", "Sub"}
    ]


def test_a_sequence_has_no_size() -> None:
    """A value that is a sequence is refused."""
    model = bind_dimensions(
        model_of_text(
            "g (float[2,4] x) => (float[2,4] y) "
            "{ s = SplitToSequence <axis = 0> (x) y = ConcatFromSequence <axis = 0> (s) }"
        ),
        {},
    )
    with pytest.raises(ModelError, match="value 's': expected a tensor"):
        peak_activation_bytes(model)
