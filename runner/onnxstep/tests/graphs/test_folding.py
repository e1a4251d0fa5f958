"""Folding evaluates nodes that depend only on shapes or small constants; results stay the same."""

from __future__ import annotations

import numpy as np
import onnx
import pytest

from graph_text import model_of_text, run, shape_of
from onnxstep.graphs.binding import bind_dimensions
from onnxstep.graphs.folding import MAX_FOLDED_ELEMENTS, fold_constants


def operators(model: onnx.ModelProto) -> list[str]:
    """The operators of a model in order, without Constant nodes."""
    return [node.op_type for node in model.graph.node if node.op_type != "Constant"]


def test_a_shape_computed_at_run_time_becomes_a_number() -> None:
    """The nodes that compute a Reshape's shape disappear, and results stay equal."""
    model = model_of_text(
        "g (float[batch,6] x) => (float[n,m] y) <int64[1] zero = {0}, int64[1] last = {-1}, "
        "int64[1] two = {2}> { s = Shape(x) b = Gather(s, zero) d = Mul(b, two) "
        "t = Concat <axis = 0> (d, last) y = Reshape(x, t) }"
    )
    bound = bind_dimensions(model, {"batch": 4})
    assert operators(bound) == ["Reshape"]
    x = np.arange(24, dtype=np.float32).reshape(4, 6)
    np.testing.assert_array_equal(run(bound, {"x": x})["y"], run(model, {"x": x})["y"])
    assert shape_of(bound.graph.output[0]) == [8, 3]


def test_places_in_a_constant_mask_become_numbers() -> None:
    """If a constant mask selects elements of an input, their indices become a constant.

    PyTorch exports the selection as NonZero, Transpose, Squeeze and Gather. Only the Gather
    remains, and its output has a known size.
    """
    model = model_of_text(
        "g (float[2,3] x) => (float[2,n] y) <bool[3] mask = {1, 0, 1}, int64[1] one = {1}> "
        "{ i = NonZero(mask) t = Transpose(i) s = Squeeze(t, one) y = Gather <axis = 1> (x, s) }"
    )
    bound = bind_dimensions(model, {}, plain_sequences=True)
    assert operators(bound) == ["Gather"]
    assert shape_of(bound.graph.output[0]) == [2, 2]
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    np.testing.assert_array_equal(run(bound, {"x": x})["y"], x[:, [0, 2]])


def test_a_constant_is_cast_like_an_input() -> None:
    """A CastLike of a constant is folded, although its second operand is an input of the model.

    Only the type of the second operand matters, and the type is known.
    """
    model = model_of_text(
        "g (float[2] x) => (float[2] y) <int64[1] two = {2}> "
        "{ c = Constant <value = int64 {3}> () f = CastLike(c, x) e = Expand(f, two) "
        "y = Add(x, e) }"
    )
    folded = fold_constants(model)
    assert operators(folded) == ["Add"]
    assert list(run(folded, {"x": np.ones(2, np.float32)})["y"]) == [4, 4]


def test_parameters_are_no_constants() -> None:
    """A node that reads a float initializer stays, because the initializer may be trained."""
    model = model_of_text(
        "g (float[2] x) => (float[2] y) <float[2] w = {1, 2}> { v = Exp(w) y = Mul(x, v) }"
    )
    assert operators(fold_constants(model)) == ["Exp", "Mul"]


def test_part_of_a_shape() -> None:
    """Folding Size, and Shape with start and end, keeps the result that ONNX defines."""
    model = model_of_text(
        "g (float[2,3,5] x) => (int64[1] y) "
        "{ s = Shape <start = -2, end = -1> (x) n = Size(x) y = Add(s, n) }"
    )
    assert run(fold_constants(model), {"x": np.zeros((2, 3, 5), np.float32)})["y"] == [33]


@pytest.mark.parametrize(
    "body",
    [
        "y = RandomUniform <shape = [2]> ()",
        f"s = Constant <value = int64[1] {{{MAX_FOLDED_ELEMENTS + 1}}}> () "
        "z = ConstantOfShape(s) y = Add(z, x)",
        "h = Constant <value = int64[1] {1099511627776}> () z = ConstantOfShape(h) y = Add(z, x)",
        "k = Constant <value = int64[2] {1, 1}> () z = local.own(k) y = Add(z, x)",
        'k = Constant <value_ints = [1, 1]> () z = Einsum <equation = "i,i->i"> (k, k) '
        "y = Add(z, x)",
        'k = Constant <value_strings = ["aab"]> () '
        'm = RegexFullMatch <pattern = "(a+)+"> (k) z = Cast <to = 1> (m) y = Add(z, x)',
    ],
)
def test_what_is_random_large_slow_or_unknown_stays(body: str) -> None:
    """Random, large and slow nodes, and calls of local functions, are not evaluated."""
    text = f"g (float[1] x) => (float[n] y) {{ {body} }}"
    functions = '<domain: "local", opset_import: ["" : 21]> own (a) => (b) { b = Neg(a) }'
    model = model_of_text(text, functions=functions)
    assert operators(fold_constants(model)) == operators(model)


@pytest.mark.parametrize(("rank", "expected"), [(2, 4.0), (3, 2.0)])
def test_a_branch_whose_condition_is_known_is_taken(rank: int, expected: float) -> None:
    """If an If's condition depends only on the rank of x, the chosen branch replaces the If."""
    shape = ",".join("1" * rank)
    model = model_of_text(
        f"g (float[{shape}] x) => (float[n] y) <int64[1] two = {{2}}, int64[1] flat = {{-1}}> "
        "{ s = Shape(x) r = Shape(s) c = Equal(r, two) "
        "a = If(c) <then_branch = t () => (float[n] p) <float[1] k = {4}> { p = Identity(k) }, "
        "else_branch = e () => (float[n] p) <float[1] k = {2}> { p = Identity(k) }> "
        "b = Reshape(x, flat) y = Mul(a, b) }"
    )
    assert operators(fold_constants(model)) == ["Reshape", "Mul"]
    x = np.ones([1] * rank, np.float32)
    assert run(fold_constants(model), {"x": x})["y"] == [expected]


def test_an_output_keeps_its_node() -> None:
    """A node that computes a graph output stays, even if its value is constant."""
    model = model_of_text("g (float[2,3] x) => (int64[2] y) { y = Shape(x) }")
    assert operators(fold_constants(model)) == ["Shape"]


def test_a_node_that_cannot_be_evaluated_stays() -> None:
    """An impossible Reshape, from one element to four, stays, as do the nodes that depend on it."""
    model = model_of_text(
        "g (int64[1] x) => (int64[1] y) <int64[1] a = {1}, int64[2] b = {2, 2}> "
        "{ c = Reshape(a, b) d = Cast <to = 7> (c) y = Add(d, x) }"
    )
    assert operators(fold_constants(model)) == ["Reshape", "Cast", "Add"]


def test_names_do_not_grow_with_branches_that_hide_each_other() -> None:
    """If 29 nested Ifs reuse a value name, folding gives no value a name of 500 characters.

    Folding replaces an If by the nodes of a branch, and appends one suffix to the names in the
    branch. So each level of nesting lengthens a name by one suffix.
    """
    branch = "{ o = Relu(x) }"
    for _ in range(29):
        then_branch, else_branch = (
            f"t () => (float[3] o) {branch}",
            "e () => (float[3] o) { o = Neg(x) }",
        )
        branch = f"{{ o = If(c) <then_branch = {then_branch}, else_branch = {else_branch}> }}"
    model = model_of_text(f"g (float[3] x) => (float[3] o) <bool c = {{1}}> {branch}")
    names = [name for node in fold_constants(model).graph.node for name in node.output]
    assert max(map(len, names)) < 500
