"""Shapes interpolated at a batch size equal those of the graph built for that batch size."""

from __future__ import annotations

from pathlib import Path

import pytest

from epochcost.graphs.counting import BatchInterpolation, flops, static_shapes
from epochcost.graphs.peak_memory import peak_activation_bytes
from graph_text import model_of_text
from onnxstep import StepOptions, training_step
from onnxstep.graphs.binding import bind_dimensions
from onnxstep.graphs.loading import load_model

MODELS = Path(__file__).parents[2] / "models"


@pytest.mark.parametrize("name", ["mnist_mlp", "mnist_cnn"])
def test_a_step_between_two_batch_sizes(name: str) -> None:
    """Operations and memory equal those of the step that is built for the batch size."""
    model = load_model(MODELS / f"{name}.onnx")
    steps = {
        batch: training_step(model, StepOptions(dimensions={"batch": batch})).model
        for batch in (8, 24, 32)
    }
    shapes = BatchInterpolation(steps[8], 8, steps[32], 32).shapes(24)
    assert shapes is not None
    assert flops(steps[32], shapes) == flops(steps[24])
    assert peak_activation_bytes(steps[32], shapes) == peak_activation_bytes(steps[24])


def test_products_of_batches_are_not_taken_for_lines() -> None:
    """A product of all pairs of examples is counted right: each of its dimensions is linear."""
    model = model_of_text(
        "g (float[batch,4] x) => (float[batch,batch] y) "
        "{ t = Transpose <perm = [1, 0]> (x) y = MatMul(x, t) }"
    )
    bound = {batch: bind_dimensions(model, {"batch": batch}) for batch in (2, 8)}
    shapes = BatchInterpolation(bound[2], 2, bound[8], 8).shapes(5)
    assert shapes is not None
    assert shapes["y"] == (5, 5)
    assert flops(bound[8], shapes) == 2 * 5 * 5 * 4


def test_other_nodes_are_not_interpolated() -> None:
    """There are no interpolated shapes if the nodes depend on the batch size."""
    smaller = model_of_text("g (float[2] x) => (float[2] y) { y = Neg(x) }")
    larger = model_of_text("g (float[4] x) => (float[4] y) { y = Abs(x) }")
    between = BatchInterpolation(smaller, 2, larger, 4)
    assert between.shapes(3) is None
    assert between.shapes(4) == static_shapes(larger)


def test_equal_constants_may_be_one() -> None:
    """Constants that share a name at one batch size, because they are equal there, are matched."""
    smaller = model_of_text(
        "g (float[2] x) => (float[2] y) <float a = {2}, float b = {4}> "
        "{ p = Mul(x, a) y = Mul(p, b) }"
    )
    larger = model_of_text(
        "g (float[4] x) => (float[4] y) <float a = {4}> { p = Mul(x, a) y = Mul(p, a) }"
    )
    shapes = BatchInterpolation(
        bind_dimensions(smaller, {}), 2, bind_dimensions(larger, {}), 4
    ).shapes(3)
    assert shapes is not None
    assert shapes["p"] == (3,)


def test_a_dimension_off_the_line_is_not_guessed() -> None:
    """A dimension that grows by 2 for 3 more examples cannot be interpolated."""
    smaller = model_of_text("g (float[2] x) => (float[2] y) { y = Neg(x) }")
    larger = model_of_text("g (float[4] x) => (float[4] y) { y = Neg(x) }")
    assert BatchInterpolation(smaller, 1, larger, 4).shapes(2) is None
