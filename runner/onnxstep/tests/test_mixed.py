"""A mixed-precision step multiplies in 16 bits, sums in fp32 and learns as in fp32."""

from __future__ import annotations

import itertools
from collections import Counter

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from graph_text import model_of_text, session
from onnxstep import StepOptions, TrainingStep, training_step
from onnxstep.axes import reduced
from onnxstep.graphs.tensors import declared_values
from onnxstep.mixed_precision import TYPE_OF_PRECISION, LossScaling, MixedBuilder
from reference_steps import Stepping, batches, convolutional, perceptron

FP32, FP16, BF16 = TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.BFLOAT16
HEAVY = {"Conv", "ConvTranspose", "Gemm", "MatMul"}


def types(step: TrainingStep) -> dict[str, int]:
    """The element type of every declared value of a step, by name."""
    return {
        value.name: value.type.tensor_type.elem_type for value in declared_values(step.model.graph)
    }


def losses(precision: str, model: onnx.ModelProto, optimizer: str, rate: float) -> np.ndarray:
    """The losses of 100 steps in ``precision`` on the reference evaluator."""
    step = training_step(model, StepOptions(optimizer=optimizer, precision=precision))  # type: ignore[arg-type]
    stepping = Stepping(step, model, rate)
    return np.array([stepping(batch) for batch in itertools.islice(batches(model), 100)])


@pytest.mark.parametrize("precision", ["fp16", "bf16"])
def test_a_perceptron_learns_as_in_fp32(precision: str) -> None:
    """Each loss of 100 steps is within 2 % of the fp32 loss, and the losses fall."""
    exact = losses("fp32", perceptron(), "momentum", 0.004)
    half = losses(precision, perceptron(), "momentum", 0.004)
    assert exact[-10:].mean() < exact[:10].mean() / 2
    assert 0 < np.abs(half / exact - 1).max() < 0.02


@pytest.mark.parametrize("precision", ["fp16", pytest.param("bf16", marks=pytest.mark.slow)])
def test_a_normalized_convolutional_network_learns_as_in_fp32(precision: str) -> None:
    """Losses of a convolutional network with batch statistics are within 2 % of the fp32 losses."""
    exact = losses("fp32", convolutional(), "sgd", 0.02)
    half = losses(precision, convolutional(), "sgd", 0.02)
    assert exact[-10:].mean() < exact[:10].mean() / 2
    assert 0 < np.abs(half / exact - 1).max() < 0.02


@pytest.mark.parametrize("precision", ["fp16", "bf16"])
def test_products_are_half_and_sums_are_not(precision: str) -> None:
    """Matrix products and convolutions are 16-bit; reductions, softmax and the loss are fp32."""
    step = training_step(convolutional(), StepOptions(optimizer="adam", precision=precision))  # type: ignore[arg-type]
    onnx.checker.check_model(step.model, full_check=True)
    value_types = types(step)
    products = Counter((n.op_type, value_types[n.output[0]]) for n in step.model.graph.node)
    # The CUDA provider has transposed convolutions only in fp16 and fp32.
    heavy = HEAVY - ({"ConvTranspose"} if precision == "bf16" else set())
    assert {kind for op, kind in products if op in heavy} == {TYPE_OF_PRECISION[precision]}
    wide = {"ReduceSum", "ReduceMean", "LogSoftmax", "Exp", "Sqrt", "Pow"}
    assert {kind for op, kind in products if op in wide} <= {FP32, TensorProto.DOUBLE}
    assert value_types["loss"] == FP32


def test_what_is_carried_is_fp32_and_cast_once() -> None:
    """All values passed between steps are fp32, and a step casts each weight at most once."""
    step = training_step(convolutional(), StepOptions(optimizer="momentum", precision="fp16"))
    value_types = types(step)
    assert {c.elem_type for c in step.carried} == {FP32}
    assert {value_types[c.output] for c in step.carried} == {FP32}
    casts = Counter(n.input[0] for n in step.model.graph.node if n.op_type == "Cast")
    assert {name: casts[name] for name in step.parameters} == {
        "k": 1, "kb": 1, "scale": 0, "shift": 0, "l": 1, "v": 1, "c": 1,
    }  # fmt: skip


def test_stored_weights_stay_masters_when_frozen() -> None:
    """A bf16 step stores a frozen weight in its graph in fp32; trained weights are graph inputs."""
    step = training_step(perceptron(), StepOptions(freeze=["w"], precision="bf16"))
    stored = {tensor.name: tensor.data_type for tensor in step.model.graph.initializer}
    assert stored["w"] == FP32
    assert "v" not in stored
    assert step.parameters == ("b", "v", "c")


def test_an_operator_without_a_half_form_stays_fp32_both_ways() -> None:
    """Conv has no bfloat16 at opset 18, so Conv and its gradient are fp32, and Gemm is bf16."""
    step = training_step(convolutional(18), StepOptions(precision="bf16"))
    value_types = types(step)
    products = {
        (n.op_type, value_types[n.output[0]]) for n in step.model.graph.node if n.op_type in HEAVY
    }
    assert {kind for op, kind in products if op in ("Conv", "ConvTranspose")} == {FP32}
    assert {kind for op, kind in products if op == "Gemm"} == {BF16}


def test_rows_of_a_table_are_looked_up_in_fp32() -> None:
    """In an fp16 step, an embedding reads its rows and sums their gradients in fp32."""
    model = model_of_text(
        "g (int64[4] i) => (float[4,2] logits) <float[3,2] t = {1,2,3,4,5,6}, "
        "float[2,2] w = {1,0,0,1}> { e = Gather(t, i) logits = MatMul(e, w) }"
    )
    step = training_step(model, StepOptions(precision="fp16"))
    value_types = types(step)
    gathered = [n for n in step.model.graph.node if n.op_type == "Gather" and n.input[0] == "t"]
    assert [value_types[node.output[0]] for node in gathered] == [FP32]
    scatters = [n for n in step.model.graph.node if n.op_type.startswith("Scatter")]
    assert {value_types[node.output[0]] for node in scatters} == {FP32}


def test_accumulated_gradients_equal_the_whole_batch() -> None:
    """An fp16 step with two micro-batches of 8 updates the weights like a batch of 16."""
    batch = next(batches(perceptron(16)))
    whole = Stepping(training_step(perceptron(16), StepOptions(precision="fp16")), perceptron(16))
    parts = training_step(perceptron(8), StepOptions(precision="fp16", micro_batches=2))
    assert parts.accumulation is not None
    first = Stepping(parts, perceptron(8))
    first.accumulate(parts.accumulation, {name: array[:8] for name, array in batch.items()})
    first({name: array[8:] for name, array in batch.items()})
    whole(batch)
    for name in ("w", "b", "v", "c", "loss_scale"):
        np.testing.assert_allclose(first.carried[name], whole.carried[name], rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("operation", ["Max(a, b)", "Min(a, b)", "Clip(a, low, high)"])
def test_extremes_on_the_cpu_have_the_gradients_of_fp32(operation: str) -> None:
    """In an fp16 step for the CPU, rounding hides neither Max's and Min's nor Clip's operand."""
    model = model_of_text(
        "g (float[8,3] x) => (float[8,3] y) <float[3] w = {0.1234, 0.3333, -0.7777}, "
        "float[3] v = {0.9123, 1.1313, -0.5777}, float low = {-0.2}, float high = {0.2}> "
        f"{{ a = Mul(x, w) b = Mul(x, v) y = {operation} }}"
    )
    x, target = np.random.default_rng(1).standard_normal((2, 8, 3)).astype(np.float32)
    moved = {}
    for precision in ("fp32", "fp16"):
        scaling = LossScaling(1.0) if precision == "fp16" else None
        options = StepOptions(loss="mse", precision=precision, loss_scaling=scaling)  # type: ignore[arg-type]
        step = training_step(model, options)
        stepping = Stepping(step, model, 1.0, session(step.model))
        stepping({"x": x, "target": target})
        moved[precision] = np.array([stepping.carried[name] for name in step.parameters])
    np.testing.assert_allclose(moved["fp16"], moved["fp32"], atol=2e-3)


@pytest.fixture(name="op")
def builder() -> MixedBuilder:
    """An empty MixedBuilder at an opset in which all operators support bfloat16."""
    return MixedBuilder([helper.make_opsetid("", 22)], 10, None)


def operators(op: MixedBuilder) -> list[str]:
    """The operators of the nodes emitted so far."""
    return [node.op_type for node in op.nodes]


def test_a_sum_of_half_numbers_is_taken_in_fp32(op: MixedBuilder) -> None:
    """A ReduceSum of fp16 numbers computes in fp32, and its result is then rounded to fp16.

    If the result is cast back to fp32, the builder returns the unrounded sum, without a new node.
    """
    x = op.input("x", (4, 3), FP16)
    total = reduced("ReduceSum", x, [0], keepdims=False)
    assert total.elem_type == FP16
    assert operators(op) == ["Cast", "ReduceSum", "Cast"]
    exact = op.Cast(total, to=FP32)
    assert exact.elem_type == FP32
    assert operators(op) == ["Cast", "ReduceSum", "Cast"]
