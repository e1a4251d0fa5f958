"""Counts of operations equal figures computed by hand or published."""

from __future__ import annotations

from pathlib import Path

import pytest
from onnx import TensorProto, helper

from epochcost.graphs.counting import flops
from graph_text import model_of_text
from onnxstep import StepOptions, evaluation_graph, training_step
from onnxstep.errors import ModelError
from onnxstep.graphs.binding import bind_dimensions
from onnxstep.graphs.loading import load_model

MODELS = Path(__file__).parents[2] / "models"


@pytest.mark.parametrize(
    ("graph", "expected"),
    [
        ("g (float[2,3] a, float[3,5] b) => (float[2,5] y) { y = MatMul(a, b) }", 2 * 2 * 3 * 5),
        (
            "g (float[3,2] a, float[5,3] b) => (float[2,5] y) "
            "{ y = Gemm <transA = 1, transB = 1> (a, b) }",
            2 * 2 * 3 * 5,
        ),
        (
            "g (float[1,4,6,6] x, float[8,2,3,3] w) => (float[1,8,4,4] y) "
            "{ y = Conv <group = 2> (x, w) }",
            2 * 8 * 16 * 2 * 9,
        ),
        (
            "g (float[1,4,6,6] x, float[4,2,3,3] w) => (float[1,2,8,8] y) "
            "{ y = ConvTranspose(x, w) }",
            2 * 4 * 36 * 2 * 9,
        ),
        (
            "g (float[7,2,3] x, float[1,20,3] w, float[1,20,5] r) => (float[7,1,2,5] y) "
            "{ y = LSTM <hidden_size = 5> (x, w, r) }",
            2 * 7 * 2 * (20 * 3 + 20 * 5),
        ),
        (
            "g (float[2,3,4] a, float[2,4,5] b) => (float[2,3,5] y) "
            '{ y = Einsum <equation = "bij,bjk->bik"> (a, b) }',
            2 * 2 * 3 * 4 * 5,
        ),
        (
            "g (float[6,2,3,4] a, float[2,4,5] b) => (float[6,2,3,5] y) "
            '{ y = Einsum <equation = "...ij,...jk->...ik"> (a, b) }',
            2 * 6 * 2 * 3 * 4 * 5,
        ),
        (
            "g (float[2,4,5,5] x, float[4,3,3,3] w) => (float[2,6,7,7] y) "
            "{ y = ConvTranspose <group = 2> (x, w) }",
            2 * (2 * 4 * 25) * 3 * 9,
        ),
        (
            "g (float[7,2,3] x, float[2,15,3] w, float[2,15,5] r) => (float[7,2,2,5] y) "
            '{ y = GRU <hidden_size = 5, direction = "bidirectional"> (x, w, r) }',
            2 * 2 * 7 * 2 * (15 * 3 + 15 * 5),
        ),
        (
            "g (float[2,4,6,8] q, float[2,4,7,8] k, float[2,4,7,9] v) => (float[2,4,6,9] y) "
            "{ y = Attention (q, k, v) }",
            2 * 2 * 4 * 6 * 7 * (8 + 9),
        ),
        (
            "g (float[2,6,32] q, float[2,7,32] k, float[2,7,36] v) => (float[2,6,36] y) "
            "{ y = Attention <q_num_heads = 4, kv_num_heads = 4> (q, k, v) }",
            2 * 2 * 4 * 6 * 7 * (8 + 9),
        ),
        (
            "g (float[2,4,1,8] q, float[2,4,1,8] k, float[2,4,1,8] v, float[2,4,9,8] pk, "
            "float[2,4,9,8] pv) => (float[2,4,1,8] y) { y = Attention (q, k, v, , pk, pv) }",
            2 * 2 * 4 * 10 * (8 + 8),
        ),
        ("g (float[9] x) => (float[9] y) { y = Tanh(x) }", 0),
    ],
)
def test_products_count_two_operations_each(graph: str, expected: int) -> None:
    """A product counts two operations for each multiply-add, an elementwise operator none."""
    assert flops(model_of_text(graph, opset=23)) == expected


@pytest.mark.parametrize(
    ("op_type", "shapes", "attributes", "expected"),
    [
        ("FusedMatMul", [(3, 2), (3, 5), (2, 5)], {"transA": 1}, 2 * 2 * 3 * 5),
        (
            "FusedMatMul",
            [(3, 7, 2), (7, 3, 5), (7, 2, 5)],
            {"transA": 1, "transBatchA": 1},
            2 * 7 * 2 * 3 * 5,
        ),
        (
            "MultiHeadAttention",
            [(2, 6, 32), (2, 7, 32), (2, 7, 36), (2, 6, 36)],
            {"num_heads": 4},
            2 * 2 * 4 * 6 * 7 * (8 + 9),
        ),
        (
            "Attention",
            [(2, 6, 10), (10, 96), (96,), (2, 6, 32)],
            {"num_heads": 4},
            2 * 2 * 6 * (10 * 96 + 6 * (32 + 32)),
        ),
    ],
)
def test_contributed_operators(
    op_type: str, shapes: list[tuple[int, ...]], attributes: dict[str, int], expected: int
) -> None:
    """Transposes change the summed axis, and a projection fused into attention counts too."""
    names = [f"t{place}" for place in range(len(shapes))]
    node = helper.make_node(op_type, names[:-1], names[-1:], domain="com.microsoft", **attributes)
    values = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)
        for name, shape in zip(names, shapes, strict=True)
    ]
    model = helper.make_model(helper.make_graph([node], "g", values[:-1], values[-1:]))
    assert flops(model) == expected


def test_a_loop_is_refused() -> None:
    """A graph with a branch or loop is refused: the number of runs of its body is unknown."""
    model = model_of_text(
        "g (float[4] x, bool c) => (float[4] y) { y = If (c) <"
        "then_branch = a () => (float[4] p) { p = Neg(x) }, "
        "else_branch = b () => (float[4] q) { q = Abs(x) }> }"
    )
    with pytest.raises(ModelError, match="expected a graph without If"):
        flops(model)


@pytest.mark.parametrize(
    ("name", "multiply_adds"), [("mnist_mlp", 668_672), ("mnist_cnn", 11_992_448)]
)
def test_the_models_of_the_sources(name: str, multiply_adds: int) -> None:
    """The forward pass has the published count, and a step at most three times as many."""
    model, batch = load_model(MODELS / f"{name}.onnx"), {"batch": 128}
    forward = flops(bind_dimensions(model, batch))
    assert forward == 2 * 128 * multiply_adds
    assert flops(evaluation_graph(model, dimensions=batch)) == forward
    step = flops(training_step(model, StepOptions(dimensions=batch)).model)
    assert 2 * forward < step < 3 * forward


def test_an_open_dimension_is_refused() -> None:
    """A shape with an open dimension is refused."""
    model = model_of_text("g (float[n] x) => (float[n] y) { y = Neg(x) }")
    with pytest.raises(ModelError, match="static"):
        flops(model)


def test_a_sequence_computes_nothing() -> None:
    """A sequence operator counts nothing, and other operators of its graph are counted."""
    bound = bind_dimensions(
        model_of_text(
            "g (float[2,4] x, float[4,4] w) => (float[2,4] y) { u = MatMul(x, w) "
            "s = SplitToSequence <axis = 0> (u) y = ConcatFromSequence <axis = 0> (s) }"
        ),
        {},
    )
    assert flops(bound) == 2 * 2 * 4 * 4


def test_a_damaged_node_is_refused_in_words() -> None:
    """A node whose input no node computes gives a one-line error."""
    bound = bind_dimensions(
        model_of_text(
            'g (float[2,4] x) => (float[2,2] y) { y = Einsum <equation = "ij,kj"> (x, x) }'
        ),
        {},
    )
    bound.graph.node[0].input[1] = "nowhere"
    with pytest.raises(ModelError, match="the inputs of Einsum take a form that is not counted"):
        flops(bound)
