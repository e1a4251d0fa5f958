"""LoRA adapters start without effect, are the only trained tensors, and act as weight changes."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import onnx
import pytest
from numpy.typing import NDArray
from onnx import TensorProto, helper

from graph_text import model_of_text, run, session
from onnxstep import (
    ADAPTERS,
    StepOptions,
    evaluation_graph,
    training_step,
    with_adapters,
)
from onnxstep.errors import ModelError
from onnxstep.graphs.initial import METADATA_KEY
from onnxstep.graphs.parameters import few_bits_count, materialise, parameters
from reference_steps import Stepping

Array = NDArray[Any]
RANK, ALPHA, ROWS, BLOCK = 2, 3.0, 6, 16
WEIGHTS = {"first.weight": (32, 16), "second.weight": (5, 16), "third.weight": (7, 5)}
TEXT = """g (float[6,32] x) => (float[6,7] y) {
    f = Transpose <perm = [0, 1]> ("first.weight") h = MatMul(x, f) r = Tanh(h)
    z = Gemm <transB = 1, alpha = 2.0> (r, "second.weight")
    t = Transpose <perm = [1, 0]> ("third.weight") y = MatMul(z, t) }"""


def _numbers() -> dict[str, Array]:
    rng = np.random.default_rng(0)
    return {k: rng.standard_normal(shape).astype(np.float32) for k, shape in WEIGHTS.items()}


def _model() -> onnx.ModelProto:
    return model_of_text(TEXT, weights=_numbers())


def _data() -> dict[str, Array]:
    rng = np.random.default_rng(1)
    x = rng.standard_normal((ROWS, 32)).astype(np.float32)
    return {"x": x, "target": rng.integers(0, 7, ROWS)}


def _train_adapters(model: onnx.ModelProto, steps: int = 5) -> tuple[list[float], dict[str, Array]]:
    """Return the loss of each step, and the trained adapters by name."""
    step = training_step(model, StepOptions(optimizer="adam", wrt=ADAPTERS))
    stepping = Stepping(step, model, rate=0.05, evaluator=session(step.model))
    losses = [stepping(_data()) for _ in range(steps)]
    return losses, {name: stepping.carried[name] for name in step.parameters}


def test_adapters_act_as_a_change_of_the_weights() -> None:
    """New adapters do not change the loss, and trained ones act like W + A B · alpha / rank."""
    model = _model()
    adapted = with_adapters(model, RANK, ALPHA)
    losses, trained = _train_adapters(adapted)
    plain = evaluation_graph(model)
    begun = run(plain, _data() | materialise(model))
    assert losses[0] == pytest.approx(float(begun["loss"]), abs=1e-6)
    assert losses[-1] < losses[0]
    assert set(trained) == {f"{name}.lora_{part}" for name in WEIGHTS for part in "AB"}
    merged = {}
    for name, weight in _numbers().items():
        change = trained[f"{name}.lora_A"] @ trained[f"{name}.lora_B"] * (ALPHA / RANK)
        merged[name] = weight + (change if name.startswith("first") else change.T)
    after = run(evaluation_graph(adapted), _data() | _numbers() | trained)
    np.testing.assert_allclose(run(plain, _data() | merged)["y"], after["y"], rtol=1e-4, atol=1e-5)


def test_patterns_choose_the_weights() -> None:
    """Patterns select the weights that get adapters, also in a file that stores no weights.

    Such a file lists its parameters in its metadata, and the adapters join that list.
    """
    model = _model()
    listed = {n: {"distribution": "normal", "scale": 1, "seed": i} for i, n in enumerate(WEIGHTS)}
    del model.graph.initializer[:]
    model.graph.input.extend(
        helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)
        for name, shape in WEIGHTS.items()
    )
    helper.set_model_props(model, {METADATA_KEY: json.dumps(listed)})
    adapted = with_adapters(model, RANK, patterns=["first*", "*hird.weight"])
    names = [parameter.name for parameter in parameters(adapted)]
    assert [name for name in names if name not in WEIGHTS] == [
        f"{name}.lora_{part}" for name in ("first.weight", "third.weight") for part in "AB"
    ]
    values = materialise(adapted)
    assert 0 < abs(values["first.weight.lora_A"]).max() <= 32**-0.5
    assert not values["first.weight.lora_B"].any()
    losses, _ = _train_adapters(adapted)
    assert losses[-1] < losses[0]


def test_a_matrix_of_data_gets_no_adapter() -> None:
    """A product whose second operand is fed as data stays as it is."""
    model = model_of_text(
        "g (float[6,4] x, float[3,3] graph) => (float[6,3] y) "
        "<float[4,3] w = {1,2,3,4,5,6,7,8,9,1,2,3}> { h = MatMul(x, w) y = MatMul(h, graph) }"
    )
    adapted = with_adapters(model, RANK)
    stored = [tensor.name for tensor in adapted.graph.initializer]
    assert stored == ["w", "w.lora_A", "w.lora_B"]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"rank": 0}, "lora rank: expected a positive integer"),
        ({"rank": 1, "alpha": np.nan}, "lora alpha: expected a number"),
        ({"rank": 1, "patterns": ["x.*"]}, r"lora target 'x\.\*'"),
    ],
)
def test_what_cannot_be_adapted_is_named(settings: dict[str, Any], message: str) -> None:
    """Wrong settings, and a pattern that matches no weight of a matrix product, are refused."""
    with pytest.raises(ModelError, match=message):
        with_adapters(_model(), **settings)


def test_a_second_adapter_is_refused() -> None:
    """A weight gets one adapter, because a second one would have the same names."""
    adapted = with_adapters(_model(), RANK, patterns=["first*"])
    with pytest.raises(ModelError, match=r"'first\.weight' already has the adapter"):
        with_adapters(adapted, RANK, patterns=["first.weight"])


def test_a_model_without_a_matrix_product_has_no_targets() -> None:
    """If no weight can have an adapter, the error says so instead of listing no choices."""
    model = model_of_text("g (float[2] x) => (float[2] y) <float[2] w = {1, 2}> { y = Mul(x, w) }")
    with pytest.raises(ModelError, match=r"'\*' is unknown; there is nothing to choose from"):
        with_adapters(model, RANK)


SECOND_PRODUCTS = {
    "floats": "y = MatMul(h, w)",
    "MatMulNBits": "y = com.microsoft.MatMulNBits <K = 32, N = 8, bits = 4, "
    f"block_size = {BLOCK}> (h, w, s)",
    "DequantizeLinear": f"d = DequantizeLinear <axis = 1, block_size = {BLOCK}> (w, s, zero) "
    "t = Transpose <perm = [1, 0]> (d) y = MatMul(h, t)",
}


def _model_of_two_products(second_weight_form: str) -> onnx.ModelProto:
    rng = np.random.default_rng(2)
    codes = rng.integers(0, 16, (8, 32)).astype(np.uint8)
    scales = rng.uniform(0.01, 0.1, (8, 32 // BLOCK)).astype(np.float32)
    floats = (codes - np.float32(8)) * np.repeat(scales, BLOCK, axis=1)
    packed = (codes[:, ::2] | codes[:, 1::2] << 4).reshape(8, 32 // BLOCK, BLOCK // 2)
    four_bits = helper.tensor_dtype_to_np_dtype(TensorProto.UINT4)
    weights = {
        "floats": {"w": floats.T.copy()},
        "MatMulNBits": {"w": packed, "s": scales},
        "DequantizeLinear": {
            "w": codes.astype(four_bits),
            "s": scales,
            "zero": np.full(scales.shape, 8).astype(four_bits),
        },
    }[second_weight_form]
    square = np.random.default_rng(3).standard_normal((32, 32)).astype(np.float32)
    return model_of_text(
        f"g (float[{ROWS},32] x) => (float[{ROWS},8] y) "
        f"{{ p = MatMul(x, square) h = Tanh(p) {SECOND_PRODUCTS[second_weight_form]} }}",
        weights={"square": square, **weights},
    )


@pytest.mark.parametrize("width", [32, 16])
def test_a_weight_in_both_orientations_is_refused(width: int) -> None:
    """Tied input and output weights get no adapter, unless other weights are chosen."""
    tied = model_of_text(
        f"g (float[6,{width}] x) => (float[6,{width}] y) {{ h = MatMul(x, w) "
        "t = Transpose <perm = [1, 0]> (w) z = MatMul(h, v) y = MatMul(z, t) }",
        weights={"w": np.ones((width, 16), np.float32), "v": np.ones((16, 16), np.float32)},
    )
    with pytest.raises(ModelError, match="'w' is multiplied both as it is and transposed"):
        with_adapters(tied, RANK)
    assert len(with_adapters(tied, RANK, patterns=["v"]).graph.initializer) == 4


@pytest.mark.parametrize("form", ["MatMulNBits", "DequantizeLinear"])
def test_adapters_of_codes_learn_as_those_of_the_weights(form: str) -> None:
    """Adapters of quantized weights train like adapters of the same weights as floats."""
    expected_losses, expected = _train_adapters(
        with_adapters(_model_of_two_products("floats"), RANK)
    )
    losses, trained = _train_adapters(with_adapters(_model_of_two_products(form), RANK))
    np.testing.assert_allclose(losses, expected_losses, rtol=1e-6)
    for name, array in expected.items():
        np.testing.assert_allclose(trained[name], array, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("form", ["MatMulNBits", "DequantizeLinear"])
def test_scales_are_frozen_and_count_as_their_weights(form: str) -> None:
    """Quantization scales are listed as not trained, with the number of weights that they scale."""
    model = _model_of_two_products(form)
    step = training_step(model)
    assert step.parameters == ("square",)
    assert {(t.name, t.size) for t in step.trained_set.left_out} == {("s", 8 * 32)}
    assert few_bits_count(model) == 8 * 32
