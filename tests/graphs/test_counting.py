"""Counts of arithmetic and memory against figures worked out by hand and published ones."""

from __future__ import annotations

from pathlib import Path

import pytest

from epochcost.autodiff import evaluation_graph, training_step
from epochcost.errors import ModelError
from epochcost.graphs.binding import bind_dimensions
from epochcost.graphs.counting import flops, peak_activation_bytes
from epochcost.graphs.loading import load_model
from graph_text import model_of_text

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
        ("g (float[9] x) => (float[9] y) { y = Tanh(x) }", 0),
    ],
)
def test_products_count_two_operations_each(graph: str, expected: int) -> None:
    """Each operator that multiplies counts twice its multiply-adds; elementwise ones nothing."""
    assert flops(model_of_text(graph)) == expected


@pytest.mark.parametrize(
    ("name", "multiply_adds"), [("mnist_mlp", 668_672), ("mnist_cnn", 11_992_448)]
)
def test_the_models_of_the_sources(name: str, multiply_adds: int) -> None:
    """The forward pass is the published count; a step is within three times that, data apart."""
    model, batch = load_model(MODELS / f"{name}.onnx"), {"batch": 128}
    forward = flops(bind_dimensions(model, batch))
    assert forward == 2 * 128 * multiply_adds
    assert flops(evaluation_graph(model, dimensions=batch)) == forward
    step = flops(training_step(model, dimensions=batch).model)
    assert 2 * forward < step < 3 * forward


def test_peak_activations_of_a_chain() -> None:
    """Three tensors of 40 bytes where one operand outlives its successor; in-place where not."""
    kept = model_of_text(
        "g (float[10] x) => (float[10] y) { a = Cos(x) b = Cos(a) c = Cos(b) y = Sum(a, c) }"
    )
    assert peak_activation_bytes(bind_dimensions(kept, {})) == 3 * 40
    chain = model_of_text(
        "g (float[10] x) => (float[10] y) { a = Tanh(x) b = Tanh(a) c = Tanh(b) y = Tanh(c) }"
    )
    assert peak_activation_bytes(bind_dimensions(chain, {})) == 40


def test_views_take_no_memory() -> None:
    """A reshaped tensor is the same memory, alive while either is read."""
    model = model_of_text(
        "g (float[10] x) => (float[2,5] y) <int64[2] s = {2, 5}> "
        "{ a = Cos(x) b = Reshape(a, s) y = Cos(b) }"
    )
    assert peak_activation_bytes(bind_dimensions(model, {})) == 40


def test_an_open_dimension_is_refused() -> None:
    """Without static shapes there is nothing to count."""
    model = model_of_text("g (float[n] x) => (float[n] y) { y = Neg(x) }")
    with pytest.raises(ModelError, match="static"):
        flops(model)
