"""Binding dimensions to sizes gives static shapes to ONNX Runtime's own operators, too."""

from __future__ import annotations

import onnx
import pytest
from onnx.helper import make_node, make_opsetid

from graph_text import model_of_text, session, shape_of
from onnxstep.errors import ModelError, ModelWarning
from onnxstep.graphs.binding import bind_dimensions
from onnxstep.graphs.inference import NodeInference
from onnxstep.graphs.tensors import static_shape

BLOCK = """g (float[n,l,8] x, float[8,8] w, float[24] b, float[8] s) => (float[n,l,d] y)
{
    p = com.microsoft.FusedMatMul <transB = 1> (x, w)
    a, keys, values = com.microsoft.MultiHeadAttention <num_heads = 2> (p, p, p, b)
    g = com.microsoft.Gelu (a)
    n1, m, r, total = com.microsoft.SkipLayerNormalization (g, x, s, s)
    shape = Shape <start = 0, end = 2> (total)
    last = Constant <value_ints = [8]> ()
    whole = Concat <axis = 0> (shape, last)
    y = Reshape (n1, whole)
}"""


def _shapes(model: onnx.ModelProto) -> dict[str, list[int]]:
    return {value.name: shape_of(value) for value in [*model.graph.value_info, *model.graph.output]}


def test_shapes_pass_through_contributed_operators() -> None:
    """Binding infers shapes that depend on outputs of ONNX Runtime's own operators."""
    shapes = _shapes(bind_dimensions(model_of_text(BLOCK), {"n": 3, "l": 5}))
    assert shapes["a"] == shapes["n1"] == shapes["total"] == shapes["y"] == [3, 5, 8]
    assert shapes["keys"] == shapes["values"] == [3, 2, 5, 4]
    assert shapes["m"] == [3, 5, 1]


@pytest.mark.parametrize(
    ("inputs", "node"),
    [
        ("float[2,3,4] a, float[2,5,4] b", "FusedMatMul <transB = 1> (a, b)"),
        ("float[3,2,4] a, float[2,4,5] b", "FusedMatMul <transBatchA = 1> (a, b)"),
        ("float[4] a, float[2,4,5] b", "FusedMatMul (a, b)"),
        ("float[2,4] a, float[4] b", "FusedMatMul (a, b)"),
        ("float[2,3,5] a, float[5,12] b, float[12] c", "Attention <num_heads = 2> (a, b, c)"),
        ("float[2,3,5] a, float[5] b", "BiasGelu (a, b)"),
        (
            "uint8[7,16] a, int64[2,3] b, float[7,1] c",
            "GatherBlockQuantized <bits = 4, block_size = 32, quantize_axis = 1> (a, b, c)",
        ),
    ],
)
def test_a_shape_is_that_of_the_runtime(inputs: str, node: str) -> None:
    """The inferred shape of an output equals the shape that ONNX Runtime infers."""
    model = model_of_text(f"g ({inputs}) => (float[r] y) {{ y = com.microsoft.{node} }}")
    model.graph.output[0].type.tensor_type.ClearField("shape")
    [output] = session(model).get_outputs()
    assert _shapes(bind_dimensions(model, {}))["y"] == output.shape


@pytest.mark.parametrize(
    "node",
    ["FusedMatMul (a, a)", "MultiHeadAttention (a, a, a)", "NoSuchOperator (a)", "BiasGelu (n)"],
)
def test_a_contributed_operator_without_a_shape_is_named(node: str) -> None:
    """Binding refuses a node whose output shape cannot be inferred, such as an unknown operator."""
    model = model_of_text(
        f"g (float[2,3] a) => (float[r] y) {{ n = NonZero(a) y = com.microsoft.{node} }}"
    )
    with pytest.raises(ModelError, match=r"expected a shape known before the run"):
        bind_dimensions(model, {})


def test_a_contradicting_declaration_does_not_count() -> None:
    """As in ONNX Runtime, the inferred shape replaces a wrong declared shape, with a warning."""
    model = model_of_text("g (float[2,3] a) => (float y) { y = com.microsoft.QuickGelu (a) }")
    with pytest.warns(ModelWarning, match=r"'y': declared as \(\), computed as \(2, 3\)"):
        bound = bind_dimensions(model, {})
    assert static_shape(bound.graph.output[0].type) == (2, 3)


@pytest.mark.parametrize("op_type", ["LessOrEqual", "GreaterOrEqual"])
def test_an_operator_known_by_its_body_has_a_shape(op_type: str) -> None:
    """``NodeInference`` finds the output type of ``op_type``, which is a function in opset 13."""
    kinds = {name: onnx.helper.make_tensor_type_proto(1, [2, 3]) for name in "ab"}
    node, inference = (
        make_node(op_type, ["a", "b"], ["y"]),
        NodeInference([make_opsetid("", 13)], 8),
    )
    inferred = inference.output_types(node, kinds, {})
    assert inferred == [onnx.helper.make_tensor_type_proto(onnx.TensorProto.BOOL, [2, 3])]
