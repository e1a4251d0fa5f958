"""A loss of several terms is the weighted sum of the terms, and so is its gradient."""

from __future__ import annotations

import numpy as np
import pytest

from graph_text import model_of_text, run
from onnxstep import StepOptions, Term, evaluation_graph, first_values, training_step
from onnxstep.errors import ModelError
from onnxstep.graphs.parameters import materialise

RNG = np.random.default_rng(5)
X = RNG.standard_normal((8, 4)).astype(np.float32)
TARGET = RNG.integers(0, 3, 8)
TWO_HEADS = """g (float[8,4] x) => (float[8,3] logits, float[8,2] side)
    <float[4,3] w = {0.1,0.2,0.3,0.4,0.5,0.6,0.7,0.8,0.9,1,0.1,0.2},
     float[3,2] v = {0.3,-0.2,0.1,0.5,-0.4,0.2}>
    { h = MatMul(x, w) logits = Tanh(h) side = MatMul(logits, v) }"""
WIDE = RNG.standard_normal((8, 2)).astype(np.float32)
MAIN, SIDE = Term("softmax_cross_entropy", "logits"), Term("mse", "side", weight=0.25)


def moved(terms: list[Term], data: dict) -> dict:
    """The loss of ``terms``, and each trained tensor's change by a step with learning rate 1."""
    model = model_of_text(TWO_HEADS)
    step = training_step(model, StepOptions(loss=terms))
    weights = first_values(step, model)
    got = run(step.model, {"x": X, "learning_rate": np.array(1, np.float32), **data, **weights})
    return {"loss": got["loss"], **{name: got[f"{name}.next"] - weights[name] for name in weights}}


def test_the_terms_of_a_loss_add_up() -> None:
    """Loss and gradients of two terms are weighted sums of each term's loss and gradients."""
    step = training_step(model_of_text(TWO_HEADS), StepOptions(loss=[MAIN, SIDE]))
    assert step.targets == ("target", "target_2")
    assert step.target == "target"
    sum_of_terms = moved([MAIN, SIDE], {"target": TARGET, "target_2": WIDE})
    first = moved([MAIN], {"target": TARGET})
    second = moved([Term("mse", "side")], {"target": WIDE})
    np.testing.assert_allclose(
        sum_of_terms["loss"], first["loss"] + 0.25 * second["loss"], rtol=1e-5
    )
    np.testing.assert_allclose(
        sum_of_terms["w"], first["w"] + 0.25 * second["w"], rtol=1e-4, atol=1e-7
    )
    np.testing.assert_allclose(sum_of_terms["v"], 0.25 * second["v"], rtol=1e-4, atol=1e-7)


def test_the_gradient_of_several_terms_is_their_slope() -> None:
    """The gradient of two terms agrees with the loss's central difference along the gradient."""
    data = {"target": TARGET, "target_2": WIDE}
    gradient = {n: -m for n, m in moved([MAIN, SIDE], data).items() if n != "loss"}
    graph = evaluation_graph(model_of_text(TWO_HEADS), loss=[MAIN, SIDE])
    weights = materialise(model_of_text(TWO_HEADS))

    def loss(size: float) -> float:
        shifted = {n: (weights[n] + size * gradient[n]).astype(np.float32) for n in weights}
        return float(run(graph, {"x": X, **data, **shifted})["loss"])

    slope = (loss(0.01) - loss(-0.01)) / 0.02
    assert slope == pytest.approx(sum((g**2).sum() for g in gradient.values()), rel=1e-2)


def test_two_terms_may_share_an_output() -> None:
    """Two terms of the same output have separate targets, and their gradients add up."""
    pair = [Term("mse", "side"), Term("l1", "side", weight=2.0)]
    sum_of_terms = moved(pair, {"target": WIDE, "target_2": WIDE})
    first = moved(pair[:1], {"target": WIDE})
    second = moved([Term("l1", "side")], {"target": WIDE})
    for name in ("loss", "w", "v"):
        np.testing.assert_allclose(
            sum_of_terms[name], first[name] + 2 * second[name], rtol=1e-4, atol=1e-7
        )


def test_a_loss_needs_no_sizes_of_what_other_outputs_read() -> None:
    """A value whose shape depends on the data is allowed if the loss does not need the value."""
    model = model_of_text(
        "g (float[8,4] x) => (float[8,3] logits, float[2,n] side) "
        "<float[4,3] w = {1, 2, 3, 4, 5, 6, 7, 8, 9, 8, 7, 6}> "
        "{ logits = MatMul(x, w) t = NonZero(x) side = Cast <to = 1> (t) }"
    )
    assert training_step(model, StepOptions(loss=[MAIN])).parameters == ("w",)


def test_no_term_is_no_loss() -> None:
    """An empty list of terms is refused, and so are terms together with the option ``output``."""
    for arguments in ({"loss": []}, {"loss": [MAIN], "output": "logits"}):
        with pytest.raises(ModelError, match="at least one term, each with its own output"):
            training_step(model_of_text(TWO_HEADS), StepOptions(**arguments))
