"""The loss scale grows and shrinks, and a step with infinite gradients skips the update."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper

from graph_text import model_of_text, run, session
from onnxstep import LossScaling, StepOptions, training_step
from onnxstep.builder import Builder
from onnxstep.forward import Forward, close_model
from onnxstep.mixed_precision import all_finite
from reference_steps import Stepping, batches, perceptron

# This scale makes the first fp16 gradients overflow; after a few halvings they do not.
TOO_LARGE = LossScaling(initial=2.0**24)
HALF: dict[str, Any] = {"optimizer": "adam", "precision": "fp16"}


def stepping(rate: float = 0.002, **options: Any) -> Stepping:
    """The perceptron's training step with ``options``, started from its initial weights."""
    return Stepping(training_step(perceptron(), StepOptions(**options)), perceptron(), rate)


def test_an_overflow_is_skipped() -> None:
    """After an overflow, weights, moments and step count keep every bit, and the scale halves."""
    step = stepping(**HALF, loss_scaling=TOO_LARGE)
    before = dict(step.carried)
    loss = step(next(batches(perceptron())))
    assert np.isfinite(loss)
    assert step.carried["loss_scale"] == 2.0**23
    assert step.carried["loss_scale.good_steps"] == 0
    assert "step_count" in before
    assert "w.second_moment" in before
    for name in before.keys() - {"loss_scale"}:
        np.testing.assert_array_equal(step.carried[name], before[name], err_msg=name)


def test_training_goes_on_after_overflows() -> None:
    """A few of 60 steps skip the update, and the other losses are within 2 % of fp32 losses."""
    step, exact = stepping(**HALF, loss_scaling=TOO_LARGE), stepping(optimizer="adam")
    skipped, differences = 0, []
    for batch in itertools.islice(batches(perceptron()), 60):
        scale = float(step.carried["loss_scale"])
        loss = step(batch)
        if step.carried["loss_scale"] < scale:
            skipped += 1
        else:
            differences.append(loss / exact(batch) - 1)
    assert 4 < skipped < 12
    assert step.carried["step_count"] == 60 - skipped
    assert np.abs(differences).max() < 0.02


def test_good_steps_let_the_scale_grow() -> None:
    """After three steps with finite gradients, the scale doubles and ``good_steps`` is 0 again."""
    step = stepping(**HALF, loss_scaling=LossScaling(initial=8.0, growth_interval=3))
    scales = []
    for batch in itertools.islice(batches(perceptron()), 7):
        step(batch)
        scales.append(
            (float(step.carried["loss_scale"]), int(step.carried["loss_scale.good_steps"]))
        )
    assert scales == [(8, 1), (8, 2), (16, 0), (16, 1), (16, 2), (32, 0), (32, 1)]


def test_the_scale_never_becomes_infinite() -> None:
    """A loss scale of 2^127 does not grow after a finite gradient, since 2^128 exceeds float32."""
    step = stepping(rate=0.0, loss_scaling=LossScaling(initial=2.0**127, growth_interval=1))
    batch = next(batches(perceptron()))
    step.carried |= {name: np.zeros_like(step.carried[name]) for name in ("w", "b", "v", "c")}
    step({"x": np.zeros_like(batch["x"]), "target": batch["target"]})
    assert step.carried["loss_scale"] == 2.0**127
    assert step.carried["loss_scale.good_steps"] == 0


def test_a_power_of_two_changes_nothing_in_fp32() -> None:
    """Steps in fp32 with and without a loss scale agree in every bit."""
    with_scale = stepping(optimizer="momentum", loss_scaling=LossScaling(initial=1024.0))
    without_scale = stepping(optimizer="momentum")
    for batch in itertools.islice(batches(perceptron()), 3):
        assert with_scale(batch) == without_scale(batch)
    for name, value in without_scale.carried.items():
        np.testing.assert_array_equal(with_scale.carried[name], value)


@pytest.mark.parametrize("product", ["Mul(a, one)", "Mul(one, a)", "Div(a, one)", "Pow(a, one)"])
def test_a_product_with_one_is_left_out(product: str) -> None:
    """ONNX Runtime would not load a step that unscales the gradient of a product with 1."""
    one = np.ones(1, np.float32)
    weights = {"w": np.full((2, 2), 0.5, np.float32), "one": one}
    text = f"g (float[2,2] x) => (float[2,2] y) {{ a = Add(x, w) y = {product} }}"
    model = model_of_text(text, weights=weights)
    options = StepOptions(loss="mse", wrt=["w"], loss_scaling=LossScaling())
    built = training_step(model, options)
    step = Stepping(built, model, rate=1.0, evaluator=session(built.model))
    zeros = np.zeros((2, 2), np.float32)
    assert step({"x": zeros, "target": zeros}) == 0.25
    np.testing.assert_allclose(step.carried["w"], 0.25)


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_what_has_the_range_of_fp32_is_not_scaled(precision: str) -> None:
    """By default, steps in fp32 and bf16 have no loss scale and skip no update."""
    step = training_step(perceptron(), StepOptions(precision=precision))  # type: ignore[arg-type]
    assert step.state == ()
    assert not [node for node in step.model.graph.node if node.op_type == "Where"]


def test_an_overflow_in_a_micro_batch_skips_the_update() -> None:
    """An overflow in a micro-batch skips the update, and the sums of gradients are still reset."""
    parts = training_step(
        perceptron(8), StepOptions(precision="fp16", micro_batches=2, loss_scaling=TOO_LARGE)
    )
    assert parts.accumulation is not None
    step = Stepping(parts, perceptron(8))
    before = step.carried["w"]
    data = batches(perceptron(8))
    step.accumulate(parts.accumulation, next(data))
    assert not np.all(np.isfinite(step.carried["w.gradient_sum"]))
    step(next(data))
    np.testing.assert_array_equal(step.carried["w"], before)
    assert not np.any(step.carried["w.gradient_sum"])
    assert step.carried["loss_scale"] == 2.0**23


@pytest.mark.parametrize(
    ("number", "finite"),
    [(3.0e4, True), (1e18, True), (np.inf, False), (-np.inf, False), (np.nan, False)],
)
def test_one_bad_number_is_found(number: float, finite: bool) -> None:
    """``all_finite`` detects a single infinite or NaN element and accepts large numbers."""
    op = Builder([helper.make_opsetid("", 18)], 8)
    gradients = {
        "a": op.input("a", (2, 3), TensorProto.FLOAT),
        "b": op.input("b", (), TensorProto.FLOAT),
    }
    answer = all_finite(op, gradients)
    model = close_model(Forward(op, (), (), {}), list(gradients.values()), [answer], "finite")
    a = np.ones((2, 3), np.float32)
    a[1, 2] = number
    assert run(model, {"a": a, "b": np.array(2, np.float32)})[answer.name] == finite
