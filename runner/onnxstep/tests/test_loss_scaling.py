"""The scale of the loss: how it moves, and what a gradient that is not finite leaves alone."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from onnx import TensorProto, helper

from graph_text import run
from onnxstep import LossScaling, StepOptions, training_step
from onnxstep.builder import Builder
from onnxstep.mixed_precision import all_finite
from reference_steps import Stepping, batches, perceptron

# So large that the first gradients of fp16 overflow: a few halvings later they do not.
TOO_LARGE = LossScaling(initial=2.0**24)


def stepping(scaling: LossScaling | None, optimizer: str = "adam", **settings: object) -> Stepping:
    """A perceptron in fp16."""
    said = {"precision": "fp16", "loss_scaling": scaling, **settings}
    return Stepping(
        training_step(perceptron(), StepOptions(optimizer=optimizer, **said)), perceptron(), 0.002
    )  # type: ignore[arg-type]


def test_an_overflow_is_skipped() -> None:
    """Weights, moments and the count of steps stay bit by bit; the scale halves."""
    step = stepping(TOO_LARGE)
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
    """Of 60 steps the first few are skipped; the losses of the others are those in fp32."""
    step, given = stepping(TOO_LARGE), itertools.islice(batches(perceptron()), 60)
    exact = Stepping(
        training_step(perceptron(), StepOptions(optimizer="adam")), perceptron(), 0.002
    )
    skipped, differences = 0, []
    for batch in given:
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
    """After three good steps in a row it doubles, and the count begins again."""
    step = stepping(LossScaling(initial=8.0, growth_interval=3))
    seen = []
    for batch in itertools.islice(batches(perceptron()), 7):
        step(batch)
        seen.append((float(step.carried["loss_scale"]), int(step.carried["loss_scale.good_steps"])))
    assert seen == [(8, 1), (8, 2), (16, 0), (16, 1), (16, 2), (32, 0), (32, 1)]


def test_the_scale_never_becomes_infinite() -> None:
    """At the largest power of two of float32 it stays, however many steps are good."""
    scaling = LossScaling(initial=2.0**127, growth_interval=1)
    step = Stepping(
        training_step(perceptron(), StepOptions(precision="fp32", loss_scaling=scaling)),
        perceptron(),
        0.0,
    )
    batch = next(batches(perceptron()))
    step.carried |= {name: np.zeros_like(step.carried[name]) for name in ("w", "b", "v", "c")}
    step({"x": np.zeros_like(batch["x"]), "target": batch["target"]})
    assert step.carried["loss_scale"] == 2.0**127
    assert step.carried["loss_scale.good_steps"] == 0


def test_a_power_of_two_changes_nothing_in_fp32() -> None:
    """Scaled and unscaled steps agree bit by bit."""
    scaling = LossScaling(initial=1024.0)
    scaled = training_step(perceptron(), StepOptions(optimizer="momentum", loss_scaling=scaling))
    plain = training_step(perceptron(), StepOptions(optimizer="momentum"))
    one, other = Stepping(scaled, perceptron()), Stepping(plain, perceptron())
    for batch in itertools.islice(batches(perceptron()), 3):
        assert one(batch) == other(batch)
    for name, value in other.carried.items():
        np.testing.assert_array_equal(one.carried[name], value)


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_what_has_the_range_of_fp32_is_not_scaled(precision: str) -> None:
    """Nothing more is carried, and nothing is skipped."""
    step = training_step(perceptron(), StepOptions(precision=precision))  # type: ignore[arg-type]
    assert step.state == ()
    assert not [node for node in step.model.graph.node if node.op_type == "Where"]


def test_an_overflow_in_a_micro_batch_skips_the_update() -> None:
    """The sums are emptied all the same, so that the next batch begins afresh."""
    parts = training_step(
        perceptron(8), StepOptions(precision="fp16", micro_batches=2, loss_scaling=TOO_LARGE)
    )
    assert parts.accumulation is not None
    step = Stepping(parts, perceptron(8))
    before = step.carried["w"]
    given = batches(perceptron(8))
    step.accumulate(parts.accumulation, next(given))
    assert not np.all(np.isfinite(step.carried["w.gradient_sum"]))
    step(next(given))
    np.testing.assert_array_equal(step.carried["w"], before)
    assert not np.any(step.carried["w.gradient_sum"])
    assert step.carried["loss_scale"] == 2.0**23


@pytest.mark.parametrize(
    ("number", "finite"),
    [(3.0e4, True), (1e18, True), (np.inf, False), (-np.inf, False), (np.nan, False)],
)
def test_one_bad_number_is_found(number: float, finite: bool) -> None:
    """Among two tensors, on ONNX Runtime."""
    op = Builder([helper.make_opsetid("", 18)], 8)
    given = {
        "a": op.input("a", (2, 3), TensorProto.FLOAT),
        "b": op.input("b", (), TensorProto.FLOAT),
    }
    answer = all_finite(op, given)
    graph = helper.make_graph(
        op.nodes,
        "g",
        [helper.make_tensor_value_info("a", 1, [2, 3]), helper.make_tensor_value_info("b", 1, [])],
        [helper.make_tensor_value_info(answer.name, TensorProto.BOOL, [])],
        op.initializers,
    )
    model = helper.make_model(graph, opset_imports=op.opset_imports, ir_version=8)
    a = np.ones((2, 3), np.float32)
    a[1, 2] = number
    assert run(model, {"a": a, "b": np.array(2, np.float32)})[answer.name] == finite
