"""``bind_dimensions`` gives ONNX Runtime's shapes to nodes whose shapes onnx infers differently."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import helper

from graph_text import model_of_text, run, shape_of
from onnxstep import vjp_graph
from onnxstep.graphs.binding import bind_dimensions


def pool(op_type: str, opset: int, lengths: list[int], **attributes: Any) -> onnx.ModelProto:
    """A model of a single ``op_type`` node over two channels with spatial sizes ``lengths``."""
    graph = helper.make_graph(
        [helper.make_node(op_type, ["x"], ["y"], **attributes)],
        "pool",
        [helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, [1, 2, *lengths])],
        [helper.make_empty_tensor_value_info("y")],
    )
    imports = [helper.make_opsetid("", opset)]
    return helper.make_model(graph, opset_imports=imports, ir_version=10)


def bound_shape(model: onnx.ModelProto) -> tuple[int, ...]:
    """The shape that ``bind_dimensions`` gives the model's single output."""
    [output] = bind_dimensions(model, {}).graph.output
    return tuple(shape_of(output))


@pytest.mark.parametrize("op_type", ["MaxPool", "AveragePool"])
@pytest.mark.parametrize(("length", "kernel"), [(10, 2), (11, 3)])
@pytest.mark.parametrize("opset", [13, 18, 22])
def test_no_window_starts_in_the_padding(
    op_type: str, length: int, kernel: int, opset: int
) -> None:
    """If ceil_mode would add windows of padding only, outputs and gradients omit these windows."""
    extra = {"count_include_pad": 1} if op_type == "AveragePool" else {}
    model = pool(
        op_type,
        opset,
        [length, length],
        kernel_shape=[kernel] * 2,
        strides=[3, 3],
        pads=[1] * 4,
        ceil_mode=1,
        **extra,
    )
    x = np.random.default_rng(0).random((1, 2, length, length), dtype=np.float32)
    [expected] = run(model, {"x": x}).values()
    backward = vjp_graph(model, ["x"])
    got = run(backward, {"x": x, "y_cotangent": np.ones_like(expected)})
    np.testing.assert_allclose(got["y"], expected, rtol=1e-6)
    if op_type == "MaxPool":
        assert got["x_gradient"].sum() == expected.size
    step = np.float32(0.5)
    moved = run(model, {"x": x + step * x})["y"].sum() - expected.sum()
    np.testing.assert_allclose((got["x_gradient"] * step * x).sum(), moved, rtol=1e-3)


def drawn_pool(rng: random.Random) -> onnx.ModelProto:
    """A pool over one to three axes with random attributes."""
    op_type, rank = rng.choice(["AveragePool", "LpPool", "MaxPool"]), rng.choice([1, 2, 2, 3])
    kernel = [rng.choice([1, 2, 3]) for _ in range(rank)]
    attributes: dict[str, Any] = {
        "kernel_shape": kernel,
        "strides": [rng.choice([1, 2, 3, 4]) for _ in range(rank)],
        "dilations": [rng.choice([1, 1, 2]) for _ in range(rank)],
        "ceil_mode": rng.choice([0, 1, 1]),
    }
    if rng.random() < 0.2:
        attributes["auto_pad"] = rng.choice(["SAME_UPPER", "SAME_LOWER", "VALID"])
        pairs = zip(attributes["strides"], kernel, strict=True)
        attributes["strides"] = [min(pair) for pair in pairs]
    else:
        attributes["pads"] = [rng.randrange(kernel[i % rank]) for i in range(2 * rank)]
    if op_type == "AveragePool":
        attributes["count_include_pad"] = rng.choice([0, 1])
    lengths = [rng.randrange(4, 9) for _ in range(rank)]
    return pool(op_type, rng.choice([19, 21, 22]), lengths, **attributes)


def test_drawn_pools_have_the_shapes_and_values_of_the_runtime() -> None:
    """``bind_dimensions`` gives random pooling nodes the output shapes of ONNX Runtime.

    The bound model also computes the same outputs as the original model. Models that ONNX Runtime
    refuses are skipped.
    """
    rng, compared = random.Random(0), 0
    for _ in range(150):
        model = drawn_pool(rng)
        x = np.random.default_rng(1).random(shape_of(model.graph.input[0]), dtype=np.float32)
        try:
            expected = run(model, {"x": x})["y"]
        except onnxruntime.capi.onnxruntime_pybind11_state.Fail:
            continue
        compared += 1
        assert bound_shape(model) == expected.shape, model
        got = run(bind_dimensions(model, {}), {"x": x})["y"]
        np.testing.assert_allclose(got, expected, rtol=1e-5, err_msg=str(model))
    assert compared > 100


@pytest.mark.parametrize("op_type", ["AveragePool", "LpPool", "MaxPool"])
@pytest.mark.parametrize("padding", ["SAME_UPPER", "SAME_LOWER", "VALID"])
def test_padding_by_rule_goes_before_padding_in_numbers(op_type: str, padding: str) -> None:
    """A pool with both auto_pad and pads follows auto_pad, as in ONNX Runtime."""
    window = {"kernel_shape": [3], "strides": [2], "pads": [0, 0]}
    model = pool(op_type, 18, [8], auto_pad=padding, **window)
    x = np.random.default_rng(0).random((1, 2, 8), dtype=np.float32)
    expected = run(model, {"x": x})["y"]
    assert bound_shape(model) == expected.shape
    np.testing.assert_allclose(run(bind_dimensions(model, {}), {"x": x})["y"], expected, rtol=1e-6)


def test_what_onnx_wrote_down_before_is_corrected() -> None:
    """Wrong shapes that onnx inferred and wrote into a file are corrected."""
    model = onnx.shape_inference.infer_shapes(
        model_of_text(
            "g (float[1,2,10] x) => (float[1,2,n] y) { h = MaxPool <kernel_shape = [2], "
            "strides = [3], pads = [1, 1], ceil_mode = 1> (x) y = Relu(h) }"
        )
    )
    assert model.graph.value_info[0].type.tensor_type.shape.dim[2].dim_value == 5
    assert bound_shape(model) == (1, 2, 4)


def test_an_stft_is_one_sided_unless_it_says_otherwise() -> None:
    """An STFT without the attribute onesided is one-sided, unlike in onnx's shape inference."""
    model = model_of_text(
        "g (float[1,128,1] x) => (float[a,b,c,d] y) <int64 step = {8}, int64 length = {16}> "
        "{ y = STFT(x, step, , length) }",
        opset=17,
    )
    x = np.random.default_rng(0).random((1, 128, 1), dtype=np.float32)
    assert bound_shape(model) == run(model, {"x": x})["y"].shape == (1, 15, 9, 2)
