"""A graph converted to fp16 or bf16 keeps fp32 inputs and outputs, and gives similar results."""

from __future__ import annotations

import json
from collections.abc import Mapping

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

from graph_text import Array, model_of_text, run
from onnxstep.errors import ModelError
from onnxstep.graphs.binding import bind_dimensions
from onnxstep.graphs.parameters import materialise
from onnxstep.graphs.precision import in_half_precision

FP16, BF16, FP32 = TensorProto.FLOAT16, TensorProto.BFLOAT16, TensorProto.FLOAT


def bound(
    text: str, opset: int = 18, weights: Mapping[str, Array] | None = None
) -> onnx.ModelProto:
    """The model of ``text``, with a static shape for every tensor."""
    return bind_dimensions(model_of_text(text, opset, weights=weights), {})


def types(graph: onnx.ModelProto) -> dict[str, int]:
    """The element type of every declared value by name."""
    values = [*graph.graph.input, *graph.graph.output, *graph.graph.value_info]
    return {value.name: value.type.tensor_type.elem_type for value in values}


def produced(graph: onnx.ModelProto, operator: str) -> list[int]:
    """The element type of the first output of each node of the type ``operator``."""
    value_types = types(graph)
    return [value_types[node.output[0]] for node in graph.graph.node if node.op_type == operator]


@pytest.fixture
def perceptron() -> onnx.ModelProto:
    """A perceptron with two layers of stored weights and a softmax."""
    rng = np.random.default_rng(0)
    shapes = {"w": (8, 16), "b": (16,), "v": (16, 4)}
    return bound(
        "g (float[3,8] x) => (float[3,4] y) { hidden = Gemm(x, w, b) active = Relu(hidden) "
        "logits = MatMul(active, v) y = Softmax(logits) }",
        weights={name: rng.standard_normal(shape).astype("f4") for name, shape in shapes.items()},
    )


@pytest.mark.parametrize("half", [FP16, BF16])
def test_only_the_inside_becomes_half(perceptron: onnx.ModelProto, half: int) -> None:
    """Inputs and outputs stay fp32, while weights and intermediate values get the type ``half``."""
    got = in_half_precision(perceptron, half)
    onnx.checker.check_model(got, full_check=True)
    value_types = types(got)
    assert (value_types["x"], value_types["y"]) == (FP32, FP32)
    assert {tensor.data_type for tensor in got.graph.initializer} == {half}
    assert produced(got, "Gemm") == produced(got, "MatMul") == produced(got, "Softmax") == [half]


def test_no_weight_is_cast_while_the_graph_runs(perceptron: onnx.ModelProto) -> None:
    """The graph casts only its input and its output, and no weight."""
    got = in_half_precision(perceptron, FP16)
    casts = [list(node.input) for node in got.graph.node if node.op_type == "Cast"]
    assert casts == [["x"], ["y_float16"]]


def test_half_computes_nearly_the_same(perceptron: onnx.ModelProto) -> None:
    """On the reference evaluator, results in fp16 and fp32 differ by less than 0.01."""
    x = np.random.default_rng(1).standard_normal((3, 8)).astype("f4")
    exact = ReferenceEvaluator(perceptron).run(None, {"x": x})[0]
    half = ReferenceEvaluator(in_half_precision(perceptron, FP16)).run(None, {"x": x})[0]
    assert half.dtype == np.float32
    assert 0 < np.max(np.abs(half - exact)) < 0.01


@pytest.mark.parametrize("half", [FP16, BF16])
def test_listed_parameters_are_drawn_in_half(half: int) -> None:
    """Parameters listed in the metadata become ``half``, with initial values rounded from fp32."""
    plain = bound("g (float[2,4] x, float[4,3] w) => (float[2,3] y) { y = MatMul(x, w) }")
    listed = {"w": {"distribution": "uniform", "scale": 0.5, "seed": 3}}
    helper.set_model_props(plain, {"epochcost.parameters": json.dumps(listed)})
    got = in_half_precision(plain, half)
    assert types(got)["w"] == half
    drawn, exact = materialise(got, 7)["w"], materialise(plain, 7)["w"]
    np.testing.assert_array_equal(drawn, exact.astype(drawn.dtype))


def test_wide_arithmetic_stays_in_fp32() -> None:
    """A norm is computed in fp32 between casts, as the sum of its squares may exceed 65504."""
    plain = bound(
        "g (float[1,64] x) => (float[1,1] y) "
        "{ r = Relu(x) n = ReduceL2 <keepdims = 1> (r) y = Abs(n) }"
    )
    got = in_half_precision(plain, FP16)
    assert produced(got, "ReduceL2") == [FP32]
    assert produced(got, "Relu") == produced(got, "Abs") == [FP16]
    x = np.full((1, 64), 100, "f4")
    assert ReferenceEvaluator(got).run(None, {"x": x})[0] == pytest.approx(800)


@pytest.mark.parametrize(("opset", "expected"), [(18, FP32), (22, BF16)])
def test_an_operator_that_knows_no_bfloat16_stays_in_fp32(opset: int, expected: int) -> None:
    """Conv supports bfloat16 at opset 22, and stays fp32 at opset 18."""
    plain = bound(
        "g (float[1,1,5,5] x) => (float[1,2,3,3] z) { y = Conv(x, w) z = Abs(y) }",
        opset,
        {"w": np.ones((2, 1, 3, 3), "f4")},
    )
    got = in_half_precision(plain, BF16)
    assert produced(got, "Conv") == [expected]
    assert produced(got, "Abs") == [BF16]


def test_scales_that_must_be_fp32_stay() -> None:
    """Resize's scales stay fp32, as ONNX requires for every data type."""
    plain = bound(
        "g (float[1,1,2,2] x) => (float[1,1,4,4] y) <float[4] scales = {1, 1, 2, 2}> "
        '{ y = Resize <mode = "nearest"> (x, , scales) }'
    )
    got = in_half_precision(plain, FP16)
    assert [tensor.data_type for tensor in got.graph.initializer] == [FP32]


def test_constants_and_casts_become_half() -> None:
    """Float constants and casts to float become fp16, and integers stay."""
    plain = bound(
        "g (int64[2] i) => (float[2] y) { two = Constant <value_float = 2.0> () "
        "shape = Constant <value = int64[1] {2}> () "
        "twos = ConstantOfShape <value = float[1] {2}> (shape) "
        "f = Cast <to = 1> (i) p = Mul(f, two) y = Add(p, twos) }"
    )
    got = in_half_precision(plain, FP16)
    assert types(got)["i"] == TensorProto.INT64
    assert produced(got, "Mul") == produced(got, "Add") == [FP16]
    result = ReferenceEvaluator(got).run(None, {"i": np.array([3, 4])})[0]
    np.testing.assert_array_equal(result, np.array([8, 10], "f4"))


def test_numbers_beyond_the_range_become_the_largest() -> None:
    """In a mask, -3.4e38 becomes -65504, the lowest fp16 number, and -infinity stays."""
    mask = np.array([np.finfo("f4").min, -np.inf, 1], "f4")
    plain = bound("g (float[3] x) => (float[3] y) { y = Add(x, mask) }", weights={"mask": mask})
    (stored,) = in_half_precision(plain, FP16).graph.initializer
    np.testing.assert_array_equal(
        numpy_helper.to_array(stored), np.array([-65504, -np.inf, 1], "f2")
    )


def test_a_graph_with_branches_is_refused_by_name() -> None:
    """A graph with a branch is refused, because nested graphs would stay fp32."""
    plain = bound(
        "g (float[2] x, bool c) => (float[2] y) { "
        "y = If(c) <then_branch = t () => (float[2] u) { u = Relu(x) }, "
        "else_branch = e () => (float[2] v) { v = Abs(x) }> }"
    )
    with pytest.raises(ModelError, match="branches and loops, got 'If'"):
        in_half_precision(plain, FP16)


@pytest.mark.parametrize("reduction", ["add", "max"])
def test_a_scatter_that_reduces_stays_in_fp32(reduction: str) -> None:
    """ONNX Runtime runs a scatter with a reduction on the CPU, because the scatter stays fp32."""
    graph = bound(
        "g (float[3] x) => (float[3] y) <int64[2,1] i = {0, 0}, float[2] u = {1, 2}> "
        f'{{ y = ScatterND <reduction = "{reduction}"> (x, i, u) }}'
    )
    x = np.array([0.5, 1, 2], np.float32)
    expected = [3.5 if reduction == "add" else 2, 1, 2]
    np.testing.assert_array_equal(run(in_half_precision(graph, FP16), {"x": x})["y"], expected)
