"""Shapes between two batch sizes, against those of the graph built there."""

from __future__ import annotations

from pathlib import Path

import pytest

from graph_text import model_of_text
from onnxstep import StepOptions, training_step
from onnxstep.graphs.binding import bind_dimensions
from onnxstep.graphs.counting import BatchInterpolation, flops, static_shapes
from onnxstep.graphs.loading import load_model
from onnxstep.graphs.peak_memory import peak_activation_bytes

MODELS = Path(__file__).parents[4] / "models"


@pytest.mark.parametrize("name", ["mnist_mlp", "mnist_cnn"])
def test_a_step_between_two_batch_sizes(name: str) -> None:
    """Arithmetic and memory are those of the step built at that batch, to the byte."""
    model = load_model(MODELS / f"{name}.onnx")
    steps = {
        batch: training_step(model, StepOptions(dimensions={"batch": batch})).model
        for batch in (8, 24, 32)
    }
    known = BatchInterpolation(steps[8], 8, steps[32], 32).shapes(24)
    assert known is not None
    assert flops(steps[32], known) == flops(steps[24])
    assert peak_activation_bytes(steps[32], known) == peak_activation_bytes(steps[24])


def test_products_of_batches_are_not_taken_for_lines() -> None:
    """Every image against every other grows with the square, which each dimension tells apart."""
    model = model_of_text(
        "g (float[batch,4] x) => (float[batch,batch] y) "
        "{ t = Transpose <perm = [1, 0]> (x) y = MatMul(x, t) }"
    )
    bound = {batch: bind_dimensions(model, {"batch": batch}) for batch in (2, 8)}
    known = BatchInterpolation(bound[2], 2, bound[8], 8).shapes(5)
    assert known is not None
    assert known["y"] == (5, 5)
    assert flops(bound[8], known) == 2 * 5 * 5 * 4


def test_other_nodes_are_not_interpolated() -> None:
    """A graph that changes its form with the batch has only the sizes it was built at."""
    one = model_of_text("g (float[2] x) => (float[2] y) { y = Neg(x) }")
    other = model_of_text("g (float[4] x) => (float[4] y) { y = Abs(x) }")
    between = BatchInterpolation(one, 2, other, 4)
    assert between.shapes(3) is None
    assert between.shapes(4) == static_shapes(other)


def test_equal_constants_may_be_one() -> None:
    """A constant that another happens to equal at one batch size has two names at the other."""
    one = model_of_text(
        "g (float[2] x) => (float[2] y) <float a = {2}, float b = {4}> "
        "{ p = Mul(x, a) y = Mul(p, b) }"
    )
    other = model_of_text(
        "g (float[4] x) => (float[4] y) <float a = {4}> { p = Mul(x, a) y = Mul(p, a) }"
    )
    known = BatchInterpolation(bind_dimensions(one, {}), 2, bind_dimensions(other, {}), 4).shapes(3)
    assert known is not None
    assert known["p"] == (3,)


def test_a_dimension_off_the_line_is_not_guessed() -> None:
    """Two elements more for three examples more say nothing of one example more."""
    one = model_of_text("g (float[2] x) => (float[2] y) { y = Neg(x) }")
    other = model_of_text("g (float[4] x) => (float[4] y) { y = Neg(x) }")
    assert BatchInterpolation(one, 1, other, 4).shapes(2) is None
