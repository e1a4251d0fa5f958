"""BatchNormalization on CUDA has few nodes, and computes the same as in a portable step."""

from __future__ import annotations

from collections import Counter

import numpy as np
import onnx
import pytest

from graph_text import model_of_text, random_inputs, run, shape_of
from onnxstep import StepOptions, training_step
from onnxstep.graphs.cuda_kernels import check_kernels
from onnxstep.mixed_precision import Precision
from provider_steps import assert_alike_on_cuda, portable_and_special


def normalizing(opset: int = 18) -> onnx.ModelProto:
    """Two convolutions, with a BatchNormalization and a ReLU between them."""
    rng = np.random.default_rng(3)
    convolutions = {"w": rng.normal(size=(4, 3, 3, 3)), "v": rng.normal(size=(2, 4, 1, 1))}
    centres = {name: rng.normal(size=4) for name in ("shift", "mean")}
    scales = {name: rng.uniform(0.5, 1.5, 4) for name in ("scale", "var")}
    weights = {**convolutions, **centres, **scales}
    return model_of_text(
        "g (float[5,3,6,6] x) => (float[5,2,6,6] y) { c = Conv <pads = [1, 1, 1, 1]> (x, w) "
        "n = BatchNormalization <epsilon = 0.001> (c, scale, shift, mean, var) "
        "r = Relu(n) y = Conv(r, v) }",
        opset,
        weights={name: array.astype(np.float32) for name, array in weights.items()},
    )


def step_of(
    model: onnx.ModelProto, *, cuda: bool, precision: Precision = "fp32", frozen: str = ""
) -> onnx.ModelProto:
    """A training step for CUDA, or a portable one (without a provider) if ``cuda`` is false.

    ``frozen`` names a tensor that is not trained ("" for none).
    """
    provider = "cuda" if cuda else None
    freeze = [frozen] if frozen else []
    options = StepOptions(loss="mse", provider=provider, precision=precision, freeze=freeze)
    return training_step(model, options).model


@pytest.mark.parametrize("opset", [16, 18])
@pytest.mark.parametrize("frozen", ["", "mean"])
def test_normalization_on_cuda_has_the_plain_results(opset: int, frozen: str) -> None:
    """A CUDA step computes the same as without provider, also if the running mean is frozen."""
    plain, cuda = (step_of(normalizing(opset), cuda=on, frozen=frozen) for on in (False, True))
    assert_alike_on_cuda(plain, cuda)


def test_normalization_on_cuda_takes_few_passes() -> None:
    """With BatchNormalization, a CUDA step has one Mul and no Sub over the whole batch."""
    graph = step_of(normalizing(), cuda=True).graph
    counts = Counter(node.op_type for node in graph.node)
    assert counts["BatchNormalization"] == 2
    assert counts["LayerNormalization"] == 1
    of_batch = {value.name for value in graph.value_info if shape_of(value) == [5, 4, 6, 6]}
    whole = [
        node.op_type
        for node in graph.node
        if node.op_type in ("Mul", "Sub") and node.output[0] in of_batch
    ]
    assert whole == ["Mul"]  # dy · x, whose sums are the scale's gradient


@pytest.mark.parametrize("frozen", ["", "mean"])
def test_half_precision_normalizes_in_half_on_cuda(frozen: str) -> None:
    """An fp16 step for CUDA has no node on the CPU, and its updates are close to those in fp32."""
    plain = step_of(normalizing(), cuda=False, frozen=frozen)
    half = step_of(normalizing(), cuda=True, precision="fp16", frozen=frozen)
    assert not check_kernels(half).on_host
    feeds = random_inputs(half) | {
        "loss_scale": np.array(1024, np.float32),
        "loss_scale.good_steps": np.array(0, np.float32),
        "learning_rate": np.array(0.01, np.float32),
    }
    named = {info.name for info in plain.graph.input}
    expected = run(plain, {name: value for name, value in feeds.items() if name in named})
    got = run(half, feeds)
    for name, value in expected.items():
        moved = value - feeds.get(name.removesuffix(".next"), 0)
        error = np.linalg.norm(got[name] - value)
        assert error <= 5e-3 * np.linalg.norm(moved) + 1e-6, name


@pytest.mark.parametrize(("bias", "inputs"), [("{0, 0}", 2), ("{0, 1}", 3)])
def test_a_constant_bias_of_zeros_is_removed(bias: str, inputs: int) -> None:
    """Only a constant bias of zeros, which PyTorch's exporter writes, is removed from a Conv."""
    model = model_of_text(
        "g (float[2,3,4,4] x) => (float[2,2,4,4] y) "
        f"{{ b = Constant <value = float[2] {bias}> () y = Conv(x, w, b) }}",
        weights={"w": np.ones((2, 3, 1, 1), np.float32)},
    )
    nodes = step_of(model, cuda=True).graph.node
    assert len(next(node for node in nodes if node.op_type == "Conv").input) == inputs


def test_a_long_concat_on_cuda_is_split() -> None:
    """On CUDA, the gradients of a Split's 40 parts are joined by Concats of at most 32 inputs."""
    parts = ", ".join(f"p{i}" for i in range(40))
    model = model_of_text(
        "g (float[40,3] x) => (float[40,3] y) "
        f"{{ h = Mul(x, w) {parts} = Split <num_outputs = 40> (h) "
        f"y = Concat <axis = 0> ({parts}) }}",
        weights={"w": np.ones((40, 3), np.float32)},
    )
    portable, cuda = portable_and_special(model, "cuda")
    joins = [len(node.input) for node in cuda.graph.node if node.op_type == "Concat"]
    assert sorted(joins) == [2, 8, 32, 40]  # the last is the model's own
    assert_alike_on_cuda(portable, cuda)
