"""Unusual files load: sizes of -1, and weights in Constant nodes or among the inputs."""

from __future__ import annotations

import numpy as np
import onnx
import pytest

from graph_text import model_of_text, shape_of
from onnxstep import vjp_graph
from onnxstep.errors import ModelError, ModelWarning
from onnxstep.graphs.binding import bind_dimensions, symbolic_dimensions
from onnxstep.graphs.loading import load_model_bytes
from onnxstep.graphs.parameters import materialise, parameters
from onnxstep.graphs.precision import in_half_precision

WEIGHTS = (
    "w = Constant <value = float[2] {3, 4}> () two = Constant <value = float {2}> () "
    "a = Mul(x, w) b = Mul(a, two) "
)


def loaded(model: onnx.ModelProto) -> onnx.ModelProto:
    """The model as the loader returns it."""
    return load_model_bytes(model.SerializeToString())


def test_weights_in_constant_nodes_are_parameters() -> None:
    """Constants with several floats are parameters if the file has no float initializer."""
    model = loaded(model_of_text(f"g (float[n,2] x) => (float[n,2] y) {{ {WEIGHTS} y = Neg(b) }}"))
    assert [parameter.name for parameter in parameters(model)] == ["w"]
    np.testing.assert_array_equal(materialise(model)["w"], [3, 4])
    assert [node.output[0] for node in model.graph.node] == ["two", "a", "b", "y"]


def test_constants_beside_initializers_stay() -> None:
    """If a file has float initializers, its Constant nodes do not become parameters."""
    model = loaded(
        model_of_text(
            "g (float[n,2] x) => (float[n,2] y) <float[2] v = {1, 2}> "
            f"{{ {WEIGHTS} y = Mul(b, v) }}"
        )
    )
    assert [parameter.name for parameter in parameters(model)] == ["v"]


def test_what_is_declared_of_constants_is_not_believed() -> None:
    """A constant vector of length 1 keeps its shape although it is declared as a scalar."""
    model = model_of_text(
        "g (float[n,2] x) => (float[n,1] y) "
        "{ one = Constant <value_ints = [1]> () y = ReduceSum(x, one) }"
    )
    scalar = onnx.helper.make_tensor_value_info("one", onnx.TensorProto.INT64, [])
    model.graph.value_info.append(scalar)
    bound = bind_dimensions(loaded(model), {"n": 3})
    assert shape_of(bound.graph.output[0]) == [3, 1]


@pytest.mark.parametrize("declared", ["element type", "nothing"])
def test_an_output_without_a_shape_is_inferred(declared: str) -> None:
    """An output's missing shape or type is inferred, even if an intermediate value has no type."""
    model = model_of_text("g (float[n,2] x) => (float[n,2] y) { a = Neg(x) y = Relu(a) }")
    if declared == "nothing":
        model.graph.output[0].ClearField("type")
    else:
        model.graph.output[0].type.tensor_type.ClearField("shape")
    model.graph.value_info.add(name="a")
    [output] = bind_dimensions(loaded(model), {"n": 3}).graph.output
    assert output.type.tensor_type.elem_type == onnx.TensorProto.FLOAT
    assert shape_of(output) == [3, 2]


def test_a_shape_that_depends_on_dimensions_waits_for_them() -> None:
    """An output of unknown rank is accepted, and gets its shape when dimensions get their sizes."""
    model = model_of_text(
        "g (float[n,2] x) => (float[n] y) { s = Shape(x) z = ConstantOfShape(s) y = Add(z, x) }"
    )
    model.graph.output[0].type.tensor_type.ClearField("shape")
    [output] = bind_dimensions(loaded(model), {"n": 3}).graph.output
    assert shape_of(output) == [3, 2]


def test_an_input_without_a_type_is_named() -> None:
    """An input without a type is refused, and the error names the input."""
    model = model_of_text("g (float[n,2] x) => (float[n,2] y) { y = Neg(x) }")
    model.graph.input[0].ClearField("type")
    with pytest.raises(ModelError, match=r"input 'x': expected an element type and a shape"):
        loaded(model)


def test_minus_one_is_an_open_dimension() -> None:
    """A dimension of size -1 can be bound like any symbolic dimension."""
    model = model_of_text("g (float[n,2] x) => (float[n,2] y) { y = Neg(x) }")
    for value in [*model.graph.input, *model.graph.output]:
        value.type.tensor_type.shape.dim[0].dim_value = -1
    assert symbolic_dimensions(loaded(model)) == ("x[0]",)


def test_what_only_the_checker_demands_is_completed() -> None:
    """The loader adds a missing graph name and opset import, and replaces an old IR version."""
    model = onnx.parser.parse_model(
        '<ir_version: 3, opset_import: ["" : 13, "com.microsoft" : 1]> '
        "g (float[2] x) => (float[2] y) <float[2] w = {3, 4}> "
        "{ a = Mul(x, w) y = com.microsoft.Gelu(a) }"
    )
    model.graph.name = ""
    del model.opset_import[1]
    read = loaded(model)
    onnx.checker.check_model(read)
    assert [parameter.name for parameter in parameters(read)] == ["w"]


def test_unsorted_nodes_are_sorted() -> None:
    """The loader sorts the nodes of a graph and of its branches, with a warning."""
    model = model_of_text(
        "g (float[2] x, bool c) => (float[2] y) "
        "{ a = Neg(x) y = If (c) <then_branch = t () => (float[2] u) { s = Neg(a) u = Relu(s) }, "
        "else_branch = e () => (float[2] v) { v = Identity(a) }> }"
    )
    branch = model.graph.node[1].attribute[0].g
    for graph in (branch, model.graph):
        nodes = [onnx.NodeProto.FromString(node.SerializeToString()) for node in graph.node]
        del graph.node[:]
        graph.node.extend(reversed(nodes))
    with pytest.warns(ModelWarning, match="not in topological order"):
        read = loaded(model)
    assert [node.op_type for node in read.graph.node] == ["Neg", "If"]


def test_a_circle_of_nodes_is_refused() -> None:
    """A graph with a cycle is refused by onnx's checker."""
    model = model_of_text("g (float[2] x) => (float[2] y) { a = Neg(x) y = Relu(a) }")
    model.graph.node[0].input[0] = "y"
    with pytest.raises(ModelError, match="topologically sorted"):
        loaded(model)


def test_empty_scales_beside_sizes_are_left_out() -> None:
    """A Resize of opset 11 that has empty scales beside its sizes has a gradient."""
    model = loaded(
        model_of_text(
            "g (float[1,1,2,2] x, float[0] r, float[0] s) => (float[1,1,4,4] y) "
            "<int64[4] n = {1, 1, 4, 4}> { y = Resize(x, r, s, n) }",
            opset=11,
        )
    )
    assert vjp_graph(model, ["x"]).graph.output[-1].name == "x_gradient"


@pytest.mark.parametrize("ir_version", [3, 8])
def test_initializers_among_the_inputs_are_not_fed(ir_version: int) -> None:
    """An initializer that is also listed as a graph input is a parameter, not data to feed.

    The copy that ``in_half_precision`` returns stores the initializer, and lists only x as an
    input.
    """
    model = model_of_text(
        "g (float[2] x, float[2] w) => (float[2] y) <float[2] v = {1, 2}> "
        "{ a = Mul(x, w) y = Mul(a, v) }"
    )
    model.graph.initializer[0].name = "w"
    model.graph.node[1].input[1] = "w"
    model.ir_version = ir_version
    kept = loaded(model)
    assert [parameter.name for parameter in parameters(kept)] == ["w"]
    half = in_half_precision(bind_dimensions(kept, {}), onnx.TensorProto.FLOAT16)
    assert [value.name for value in half.graph.input] == ["x"]
    assert [tensor.name for tensor in half.graph.initializer] == ["w"]


def test_a_value_of_a_branch_without_a_type_is_left_out() -> None:
    """In the branches of an If, the loader removes declarations of values that have no type."""
    model = model_of_text(
        "g (float[2] x, bool c) => (float[2] y) "
        "{ y = If (c) <then_branch = t () => (float[2] u) { u = Relu(x) }, "
        "else_branch = e () => (float[2] v) { v = Identity(x) }> }"
    )
    model.graph.node[0].attribute[0].g.value_info.add(name="x")
    assert not loaded(model).graph.node[0].attribute[0].g.value_info
