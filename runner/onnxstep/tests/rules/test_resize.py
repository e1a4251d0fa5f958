"""Further tests of Resize: its gradient's nodes, optimization levels, and refusals."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest

from graph_text import Array, model_of_text, random_inputs, session
from onnxstep import StepOptions, training_step, vjp_graph
from onnxstep.errors import ModelError
from onnxstep.graphs.parameters import materialise

FAULTS = Path(__file__).parents[1] / "faults"
PLAIN = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
LEVELS = [
    onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC,
    onnxruntime.GraphOptimizationLevel.ORT_ENABLE_EXTENDED,
    onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL,
]


def run_at(
    level: onnxruntime.GraphOptimizationLevel,
    model: onnx.ModelProto,
    fixed: Mapping[str, Array],
) -> list[Array]:
    """All outputs of ``model`` at optimization ``level``; inputs not in ``fixed`` are random."""
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = level
    return list(session(model, options).run(None, {**random_inputs(model), **fixed}))


@pytest.mark.parametrize("level", LEVELS)
def test_a_step_through_bicubic_positions_runs_at_every_level(
    level: onnxruntime.GraphOptimizationLevel,
) -> None:
    """A step through DINOv2's bicubic Resize gives equal results at all optimization levels."""
    model = onnx.load(FAULTS / "cubic.onnx")
    step = training_step(model, StepOptions(loss="mse")).model
    expected = run_at(PLAIN, step, materialise(model))
    for got, reference in zip(run_at(level, step, materialise(model)), expected, strict=True):
        np.testing.assert_allclose(got, reference, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    "attributes",
    [
        'mode = "cubic"',
        # The dynamo exporter writes the default.
        'mode = "cubic", keep_aspect_ratio_policy = "stretch"',
        "axes = [2, 3]",
    ],
)
@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("inputs_kind", ["scales", "sizes"])
def test_what_breaks_when_transposed_is_kept_from_it(
    attributes: str, channels: int, inputs_kind: str
) -> None:
    """ONNX Runtime's optimizer does not change the gradient of a Resize between two Transposes.

    Otherwise, the optimizer could move a Transpose across the Resize, and ONNX Runtime would fail.
    """
    inputs, factors = {
        "scales": ("(b, , s)", np.array([1, 1, 0.6, 1.5], np.float32)),
        "sizes": ("(b, , , s)", np.array([2, channels, 3, 9])),
    }[inputs_kind]
    model = model_of_text(
        f"g (float[2,5,6,{channels}] x) => (float[2,3,9,{channels}] y) "
        f"{{ a = Relu(x) b = Transpose <perm = [0, 3, 1, 2]> (a) c = Resize <{attributes}> "
        f"{inputs} d = Transpose <perm = [0, 2, 3, 1]> (c) y = Relu(d) }}",
        weights={"s": factors[2:] if "axes" in attributes else factors},
    )
    backward = vjp_graph(model, ["x"])
    expected = run_at(PLAIN, backward, {})
    for got, reference in zip(run_at(LEVELS[-1], backward, {}), expected, strict=True):
        np.testing.assert_allclose(got, reference, rtol=1e-5, atol=1e-6)


def test_repeating_pixels_is_undone_by_pooling() -> None:
    """If Resize repeats pixels, its gradient is an average pool times the number of copies."""
    model = model_of_text(
        "g (float[1,2,3,4] x) => (float[1,2,6,12] y) <float[4] s = {1.0, 1.0, 2.0, 3.0}> "
        '{ y = Resize <coordinate_transformation_mode = "asymmetric", nearest_mode = "floor"> '
        "(x, , s) }",
        opset=19,
    )
    operators = [node.op_type for node in vjp_graph(model, ["x"]).graph.node]
    assert operators == ["Resize", "AveragePool", "Mul"]


@pytest.mark.parametrize(
    "attributes",
    [
        'keep_aspect_ratio_policy = "not_smaller"',
        'coordinate_transformation_mode = "tf_crop_and_resize"',
    ],
)
def test_crops_and_kept_aspect_ratios_are_refused(attributes: str) -> None:
    """The error for a Resize that crops or keeps the aspect ratio names the node."""
    model = model_of_text(
        "g (float[1,1,2,4] x) => (float[1,1,m,n] y) <int64[2] s = {1, 3}, "
        "float[4] r = {0, 0, 1, 1}> "
        f"{{ y = Resize <axes = [2, 3], {attributes}> (x, r, , s) }}",
        opset=19,
    )
    with pytest.raises(ModelError, match=r"node 'y' \(Resize\): crops and kept aspect ratios"):
        vjp_graph(model, ["x"])
