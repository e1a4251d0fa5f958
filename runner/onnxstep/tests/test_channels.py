"""Steps for CUDA normalize a batch with few nodes, and give the results of portable steps."""

from __future__ import annotations

from collections import Counter

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from cuda_steps import assert_alike_on_cuda
from graph_text import model_of_text, run
from onnxstep import StepOptions, training_step
from onnxstep.graphs.cuda_kernels import check_kernels
from onnxstep.mixed_precision import Precision

_SHAPES = {
    "w": (4, 3, 3, 3), "scale": (4,), "shift": (4,), "mean": (4,), "var": (4,), "v": (2, 4, 1, 1),
}  # fmt: skip


def normalizing(opset: int = 18) -> onnx.ModelProto:
    """Two convolutions, with a BatchNormalization and a ReLU between them."""
    declared = ", ".join(f"float[{','.join(map(str, s))}] {name}" for name, s in _SHAPES.items())
    inputs = "float[5,3,6,6] x, " + declared
    model = model_of_text(
        f"g ({inputs}) => (float[5,2,6,6] y) {{ c = Conv <pads = [1, 1, 1, 1]> (x, w) "
        "n = BatchNormalization <epsilon = 0.001> (c, scale, shift, mean, var) "
        "r = Relu(n) y = Conv(r, v) }",
        opset,
    )
    rng = np.random.default_rng(3)
    for name, shape in _SHAPES.items():
        array = rng.uniform(0.5, 1.5, shape) if name in ("scale", "var") else rng.normal(size=shape)
        model.graph.initializer.append(numpy_helper.from_array(array.astype(np.float32), name))
    del model.graph.input[1:]
    return model


def step_of(
    model: onnx.ModelProto, *, cuda: bool, precision: Precision = "fp32", frozen: str = ""
) -> onnx.ModelProto:
    """A training step for CUDA, or a portable step if ``cuda`` is false.

    A portable step has no provider. ``frozen`` names a tensor that is not trained ("" for none).
    """
    provider = "cuda" if cuda else None
    freeze = [frozen] if frozen else []
    options = StepOptions(loss="mse", provider=provider, precision=precision, freeze=freeze)
    return training_step(model, options).model


@pytest.mark.parametrize("opset", [16, 18])
@pytest.mark.parametrize("frozen", ["", "mean"])
def test_normalization_on_cuda_has_the_plain_results(opset: int, frozen: str) -> None:
    """A CUDA step gives a portable step's results, whether or not the running mean is frozen."""
    plain, cuda = (step_of(normalizing(opset), cuda=on, frozen=frozen) for on in (False, True))
    assert_alike_on_cuda(plain, cuda)


def test_normalization_on_cuda_takes_few_passes() -> None:
    """With BatchNormalization, a CUDA step has one Mul and no Sub over the whole batch."""
    counts = Counter(node.op_type for node in step_of(normalizing(), cuda=True).graph.node)
    assert counts["BatchNormalization"] == 2
    assert counts["LayerNormalization"] == 1
    whole = [
        node
        for node in step_of(normalizing(), cuda=True).graph.node
        if node.op_type in ("Mul", "Sub") and node.output[0] in _values_of_batch_shape()
    ]
    assert [node.op_type for node in whole] == [
        "Mul"
    ]  # dy · x, whose sums are the scale's gradient


def _values_of_batch_shape() -> set[str]:
    graph = step_of(normalizing(), cuda=True).graph
    shape = [5, 4, 6, 6]
    return {
        value.name
        for value in graph.value_info
        if [dim.dim_value for dim in value.type.tensor_type.shape.dim] == shape
    }


@pytest.mark.parametrize("frozen", ["", "mean"])
def test_half_precision_normalizes_in_half_on_cuda(frozen: str) -> None:
    """An fp16 step for CUDA has no node on the CPU, and its updates are close to those in fp32."""
    plain = step_of(normalizing(), cuda=False, frozen=frozen)
    half = step_of(normalizing(), cuda=True, precision="fp16", frozen=frozen)
    assert not check_kernels(half).on_host
    rng = np.random.default_rng(7)
    feeds = {
        info.name: rng.normal(size=[d.dim_value for d in info.type.tensor_type.shape.dim])
        for info in half.graph.input
    }
    feeds |= {"loss_scale": np.array(1024.0), "loss_scale.good_steps": np.array(0.0)}
    feeds["learning_rate"] = np.array(0.01)
    typed = {name: np.asarray(value, np.float32) for name, value in feeds.items()}
    named = {info.name for info in plain.graph.input}
    expected = run(plain, {name: value for name, value in typed.items() if name in named})
    got = run(half, typed)
    for name, value in expected.items():
        moved = value - typed.get(name.removesuffix(".next"), 0)
        error = np.linalg.norm(got[name] - value)
        assert error <= 5e-3 * np.linalg.norm(moved) + 1e-6, name


def test_a_constant_bias_of_zeros_is_removed() -> None:
    """Only a constant bias of zeros, which PyTorch's exporter writes, is removed from a Conv."""
    for bias, inputs in (("{0, 0}", 2), ("{0, 1}", 3)):
        model = model_of_text(
            "g (float[2,3,4,4] x, float[2,3,1,1] w) => (float[2,2,4,4] y) "
            f"{{ b = Constant <value = float[2] {bias}> () y = Conv(x, w, b) }}"
        )
        weights = np.ones((2, 3, 1, 1), np.float32)
        model.graph.initializer.append(numpy_helper.from_array(weights, "w"))
        del model.graph.input[1:]
        nodes = step_of(model, cuda=True).graph.node
        assert len(next(node for node in nodes if node.op_type == "Conv").input) == inputs


def test_a_long_concat_on_cuda_is_split() -> None:
    """On CUDA, the gradients of a Split's 40 parts are joined by Concats of at most 32 inputs."""
    parts = ", ".join(f"p{i}" for i in range(40))
    model = model_of_text(
        "g (float[40,3] x, float[40,3] w) => (float[40,3] y) "
        f"{{ h = Mul(x, w) {parts} = Split <num_outputs = 40> (h) "
        f"y = Concat <axis = 0> ({parts}) }}"
    )
    model.graph.initializer.append(numpy_helper.from_array(np.ones((40, 3), np.float32), "w"))
    del model.graph.input[1:]
    plain, cuda = (step_of(model, cuda=on) for on in (False, True))
    joins = [len(node.input) for node in cuda.graph.node if node.op_type == "Concat"]
    assert sorted(joins) == [2, 8, 32, 40]  # the last is the model's own
    assert_alike_on_cuda(plain, cuda)
