"""``bind_dimensions`` replaces symbolic dimensions by sizes; errors name the dimension or node."""

from __future__ import annotations

import json
from pathlib import Path

import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graph_text import model_of_text, shape_of
from onnxstep import vjp_graph
from onnxstep.errors import ModelError, ModelWarning
from onnxstep.graphs.binding import bind_dimensions, symbolic_dimensions
from onnxstep.graphs.initial import METADATA_KEY
from onnxstep.graphs.loading import load_model

MODELS = Path(__file__).parents[4] / "models"
TWO = "g (float[batch, steps] x, float[steps, 3] w) => (float[batch, 3] y) { y = MatMul(x, w) }"
FLATTENING = """
g (float[batch, 2, 3] x) => (float[rows, 6] y) {
    shape = Shape <start = 0, end = 1> (x)
    six = Constant <value_ints = [6]> ()
    target = Concat <axis = 0> (shape, six)
    y = Reshape (x, target)
}"""


def shapes(model: onnx.ModelProto) -> dict[str, list[int]]:
    """The static shape of each tensor of the graph by name."""
    values = [*model.graph.input, *model.graph.value_info, *model.graph.output]
    return {value.name: shape_of(value) for value in values}


def test_dimensions_are_listed_once_in_graph_order() -> None:
    """Dimensions are listed once in graph order, even if two inputs share a dimension name."""
    assert symbolic_dimensions(model_of_text(TWO)) == ("batch", "steps")


def test_nameless_dimension_is_called_by_input_and_axis() -> None:
    """A dimension without a name is bound under its input's name and axis, such as ``x[0]``."""
    model = model_of_text("g (float[?, 4] x) => (float[?, 4] y) { y = Relu(x) }")
    model.graph.input[0].type.tensor_type.shape.dim[0].Clear()
    assert symbolic_dimensions(model) == ("x[0]",)
    assert shapes(bind_dimensions(model, {"x[0]": 7}))["y"] == [7, 4]


def test_size_is_written_everywhere_and_the_model_is_left_alone() -> None:
    """Inputs and outputs get static shapes, and the model passed in does not change."""
    model = model_of_text(TWO)
    before = model.SerializeToString()
    bound = bind_dimensions(model, {"batch": 5, "steps": 4})
    assert shapes(bound) == {"x": [5, 4], "w": [4, 3], "y": [5, 3]}
    assert symbolic_dimensions(bound) == ()
    assert model.SerializeToString() == before


def test_shapes_computed_in_the_graph_are_followed() -> None:
    """An output whose shape the graph computes from the batch size gets a static shape."""
    bound = bind_dimensions(model_of_text(FLATTENING), {"batch": 5})
    assert shapes(bound)["y"] == [5, 6]


def test_nested_graphs_are_bound_too() -> None:
    """Both branches of an If get the size of the dimension that they declare."""
    model = model_of_text("""
    g (bool c, float[batch] x) => (float[batch] y) {
        y = If (c) <
            then_branch = yes () => (float[batch] a) { a = Relu(x) },
            else_branch = no () => (float[batch] b) { b = Neg(x) }
        >
    }""")
    bound = bind_dimensions(model, {"batch": 6})
    branches = [attribute.g for attribute in bound.graph.node[0].attribute]
    assert [shape_of(branch.output[0]) for branch in branches] == [[6], [6]]


@pytest.mark.parametrize("name", ["mnist_cnn", "mnist_mlp"])
@settings(max_examples=10, deadline=None)
@given(batch=st.integers(1, 4096))
def test_models_of_this_project_bind_at_any_batch(name: str, batch: int) -> None:
    """At any batch size, every tensor has a shape, and the logits have a row for each example."""
    bound = bind_dimensions(load_model(MODELS / f"{name}.onnx"), {"batch": batch})
    sizes = shapes(bound)
    assert sizes["logits"] == [batch, 10]
    assert {name for node in bound.graph.node for name in node.output} <= sizes.keys()


def test_unknown_dimension_names_the_nearest() -> None:
    """The error for a misspelt dimension suggests the right name."""
    with pytest.raises(ModelError, match="did you mean 'batch'"):
        bind_dimensions(model_of_text(TWO), {"bacth": 5, "steps": 4})


def test_static_model_has_nothing_to_bind() -> None:
    """A model without symbolic dimensions binds without sizes, and giving a size is an error."""
    model = model_of_text("g (float[2] x) => (float[2] y) { y = Relu(x) }")
    assert shapes(bind_dimensions(model, {}))["y"] == [2]
    with pytest.raises(ModelError, match="leave it out"):
        bind_dimensions(model, {"batch": 5})


def test_unbound_dimensions_are_listed_with_an_example() -> None:
    """The error lists dimensions without a size and shows example sizes for all dimensions."""
    with pytest.raises(ModelError) as caught:
        bind_dimensions(model_of_text(TWO), {"batch": 5})
    assert "without a size: 'steps';" in str(caught.value)
    assert "{'batch': 5, 'steps': 32}" in str(caught.value)


@pytest.mark.parametrize("size", [0, -1, True, 2.0, "32", 2**41])
def test_size_must_be_a_positive_integer(size: object) -> None:
    """Sizes other than positive integers are refused instead of converted."""
    with pytest.raises(ModelError, match="positive integer"):
        bind_dimensions(model_of_text(TWO), {"batch": 4, "steps": size})  # type: ignore[dict-item]


def test_the_only_input_may_not_be_empty() -> None:
    """The only input's dimension may not be 0; messages call an unnamed dimension ``x[0]``."""
    with pytest.raises(ModelError, match="positive integer"):
        bind_dimensions(
            model_of_text("g (float[?] x) => (float[?] y) { y = Relu(x) }"), {"x[0]": 0}
        )


def test_parameters_without_values_are_no_inputs_beside_others() -> None:
    """A weightless file's only data input may not be empty either, though parameters are inputs."""
    model = model_of_text("g (float[n] x, float[1] w) => (float[n] y) { y = Mul(x, w) }")
    listed = {"w": {"distribution": "constant", "scale": 1, "seed": 0}}
    onnx.helper.set_model_props(model, {METADATA_KEY: json.dumps(listed)})
    with pytest.raises(ModelError, match="positive integer"):
        bind_dimensions(model, {"n": 0})


def test_an_input_beside_others_may_be_empty() -> None:
    """If binding gives one of two inputs the length 0, it becomes a stored empty tensor.

    Callers feed only the other input, of length 3. A Concat of both has length 3.
    """
    text = "g (float[past] c, float[3] x) => (float[n] y) { y = Concat <axis = 0> (c, x) }"
    bound = bind_dimensions(model_of_text(text), {"past": 0})
    assert [value.name for value in bound.graph.input] == ["x"]
    assert shape_of(bound.graph.output[0]) == [3]


def test_product_of_sizes_has_a_limit() -> None:
    """Two sizes that are each allowed are refused if a tensor would have 2^50 elements."""
    with pytest.raises(ModelError, match="elements"):
        bind_dimensions(model_of_text(TWO), {"batch": 2**30, "steps": 2**20})


def test_shape_that_depends_on_data_is_named() -> None:
    """The error names NonZero, because the number of its results is unknown before a run."""
    model = model_of_text("g (float[batch] x) => (int64[1, n] y) { y = NonZero(x) }")
    with pytest.raises(ModelError, match=r"'y'.*NonZero"):
        bind_dimensions(model, {"batch": 3})


def test_float_values_are_not_taken_for_shapes() -> None:
    """An Add of float tensors that broadcast is not mistaken for a computation of shapes."""
    model = model_of_text(
        "g (double[2] x) => (double[2, 4] y)"
        "{ one = Constant <value_ints = [1]> () column = Unsqueeze(x, one)"
        " both = Concat <axis = 0> (x, x) y = Add(both, column) }"
    )
    assert shapes(bind_dimensions(model, {}))["y"] == [2, 4]


@pytest.mark.parametrize(
    ("op_type", "call"),
    [
        ("ConstantOfShape", "ConstantOfShape(long)"),
        ("Expand", "Expand(one, long)"),
        ("Tile", "Tile(ones, long)"),
        ("Pad", "Pad(ones, ends)"),
        ("OneHot", "OneHot(ones, many, values)"),
        ("Range", "Range(one, many, one)"),
    ],
)
def test_constants_larger_than_any_use_are_refused(op_type: str, call: str) -> None:
    """Operators that create huge outputs from constants are refused without evaluating them."""
    text = (
        "g (float[3] x) => (float[3] y) <int64[1] long = {268435456}, int64 many = {268435456}, "
        "int64[2] ends = {0, 268435456}, int64[1] ones = {1}, int64 one = {1}, "
        f"int64[2] values = {{0, 1}}> {{ t = {call} c = Cast<to = 1>(t) "
        "s = ReduceSum<keepdims = 0>(c) y = Add(x, s) }"
    )
    with pytest.raises(ModelError, match=f"{op_type} makes 268435"):
        bind_dimensions(model_of_text(text), {})


@pytest.mark.parametrize(
    ("work", "blamed"),
    [
        ("".join(f"a{i + 1} = CumSum(a{i}, zero) " for i in range(5)) + "s = Neg(a5)", "CumSum"),
        ('s = Einsum <equation = "ij,jk->ik"> (table, table)', "Einsum"),
        ('s = Einsum <equation = "...j,...j->..."> (table, table)', "Einsum"),
        ("s = MatMul(table, table)", "MatMul"),
        ("s = AveragePool <kernel_shape = [65536]> (row)", "AveragePool"),
    ],
)
def test_long_work_on_constants_is_refused(work: str, blamed: str) -> None:
    """A model that needs over 2^30 operations on constants is refused."""
    model = model_of_text(
        "g (float[3] x) => (float[3] y) <int64[1] long = {134217728}, int64[2] wide = {4096, 4096},"
        " int64[3] line = {1, 1, 131072}, int64 zero = {0}> { a0 = ConstantOfShape(long) "
        f"table = ConstantOfShape(wide) row = ConstantOfShape(line) {work} "
        "r = ReduceSum <keepdims = 0> (s) y = Add(x, r) }"
    )
    with pytest.raises(ModelError, match=rf"\({blamed}\): expected at most 2\*\*30 operations"):
        bind_dimensions(model, {})


def test_a_mask_as_long_as_any_context_is_allowed() -> None:
    """Computing a causal mask [8192, 8192] stays below the limit of 2^30 operations.

    The limit applies to all operations on constants. Here, five operators compute the mask from
    constants.
    """
    model = model_of_text(
        "g (float[8192,8192] x) => (float[8192,8192] y) <int64[2] wide = {8192, 8192}, float low = "
        "{-1}, float zero = {0}> { one = ConstantOfShape(wide) lower = Trilu <upper = 0> (one) "
        "kept = Cast <to = 9> (lower) mask = Where(kept, zero, low) wider = Mul(mask, low) "
        "y = Add(x, wider) }"
    )
    assert len(bind_dimensions(model, {}).graph.node) == 6


def test_an_input_shorter_than_its_window_is_named() -> None:
    """If an input is shorter than a Conv's kernel, the error gives node, input shape and remedy."""
    model = model_of_text(
        "g (float[1,2,t] x, float[3,2,5] w) => (float[1,3,u] y) { c = Conv (x, w) y = Relu (c) }"
    )
    with pytest.raises(ModelError, match=r"node 'c' \(Conv\).*\[1, 2, 3\] is too short.*larger"):
        bind_dimensions(model, {"t": 3})


@pytest.mark.parametrize(
    ("text", "node"),
    [
        (
            "g (float[n,3] x, float[4,2] w) => (float[n,2] y) { a = Relu (x) y = MatMul (a, w) }",
            r"'y' \(MatMul\) of a\[2, 3\], w\[4, 2\]",
        ),
        (
            "g (float[n] x, float[4] b) => (float[m] y) { y = Add(x, b) }",
            r"'y' \(Add\) of x\[2\], b\[4\]",
        ),
    ],
)
def test_shapes_that_do_not_fit_name_their_node(text: str, node: str) -> None:
    """If shapes contradict each other, the error has the node's name and the inputs' shapes."""
    with pytest.raises(ModelError, match=f"node {node}: .*contradict each other.*bind") as caught:
        bind_dimensions(model_of_text(text), {"n": 2})
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("opset", [11, 18])
def test_a_shape_that_its_node_contradicts_is_corrected(opset: int) -> None:
    """As in ONNX Runtime, the inferred shape replaces a wrong declared shape, with a warning."""
    model = model_of_text(
        "g (float[n,3] x, float[3,4] w) => (float y) <float[7] t> "
        "{ t = MatMul (x, w) y = Relu (t) }",
        opset,
    )
    with pytest.warns(ModelWarning, match=r"value 't': declared as \(7,\), computed as \(2, 4\)"):
        bound = bind_dimensions(model, {"n": 2})
    assert shapes(bound)["y"] == shapes(bound)["t"] == [2, 4]
    with pytest.warns(ModelWarning):
        backward = vjp_graph(model, ["w"], {"n": 2})
    assert shapes(backward)["w_gradient"] == [3, 4]


def test_what_no_output_needs_is_not_bound() -> None:
    """Binding removes nodes that no graph output needs, even if their shapes depend on data.

    Binding also removes an entry of ``value_info`` if no node has an output of that name.
    """
    model = model_of_text("g (float[n,2] x) => (float[n,2] y) { places = NonZero(x) y = Neg(x) }")
    stale = onnx.helper.make_tensor_value_info("gone", onnx.TensorProto.FLOAT, ["unk__3", 2])
    model.graph.value_info.append(stale)
    bound = bind_dimensions(model, {"n": 3})
    assert [node.op_type for node in bound.graph.node] == ["Neg"]
    assert not bound.graph.value_info
