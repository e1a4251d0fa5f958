"""Buffers, and tensors whose numbers a person probably typed in code, are not weights.

A scalar looks typed if it has up to five decimal digits, or is an integer's root or reciprocal. A
trained float32 number needs eight or nine digits. A tensor of several numbers looks typed if they
form a mask or a grid, such as 0, 1, 2.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper

from exports import WEIGHTS, optimised, traced
from graph_text import model_of_text
from onnxstep.graphs.constants import as_parameters, constants
from onnxstep.graphs.loading import load_model
from onnxstep.graphs.parameters import parameters, untrained

FAULTS = Path(__file__).parents[1] / "faults"
WEIGHT = np.array([[0.123456, -0.37], [0.71, 0.2345678]], np.float32)


def model_with(nodes: str, **tensors: object) -> onnx.ModelProto:
    """A model with h = x w, followed by ``nodes``, which compute y from h and ``tensors``."""
    floats = {name: np.asarray(value, np.float32) for name, value in tensors.items()}
    return model_of_text(
        f"g (float[n,2] x, int64[n] tokens) => (float[n,2] y) {{ h = MatMul(x, w) {nodes} }}",
        weights={"w": WEIGHT, **floats, "zero": np.array(0), "two": np.array([2])},
    )


KNOTS = [[-1.0, -0.6, -0.2, 0.2, 0.6, 1.0]] * 2
TRAINED = {
    "a fresh bias": ("y = Add(h, a)", [0.0, 0.0]),
    "a trained bias": ("y = Add(h, a)", [0.1234567, -2.345678]),
    "a bias whose forget gate begins open": ("y = Add(h, a)", [0.0, 1.0]),
    "a bias of one unit": ("y = Add(h, a)", [-0.0024900085]),
    "a fresh bias of one unit": ("y = Add(h, a)", [0.0]),
    "a scale that begins at nothing": ("y = Mul(h, a)", 0.0),
    "a scale of a layer": ("y = Mul(h, a)", [1e-6, 1e-6]),
    "a temperature": ("e = Exp(a) y = Mul(h, e)", 2.6592600369),
    "a temperature of few digits": ("e = Exp(a) y = Mul(h, e)", 2.6592),
    "a gate behind a sigmoid": ("e = Sigmoid(a) y = Mul(h, e)", 0.5),
    "a product's factor": ("y = MatMul(h, a)", [[1.0, 2.0], [3.0, 4.0]]),
    "an embedding": ("e = Gather(a, tokens) y = Add(h, e)", [[0.113, 2.347], [0.571, 0.299]]),
}
UNTRAINED = {
    "a bound": ("y = Clip(h, a)", 0.4321234),
    "an exponent": ("y = Pow(h, a)", 2.7182817),
    "a power of two": ("y = Mul(h, a)", 0.5),
    "a root": ("y = Div(h, a)", 11.313708),
    "the constant of Gelu": ("y = Mul(h, a)", 0.79788458),
    "one minus": ("y = Sub(a, h)", [1.0]),
    "one plus a weight": ("g = Add(w, a) y = MatMul(h, g)", 1.0),
    "a mask": ("y = Add(h, a)", [0.0, -3.4028235e38]),
    "an infinite mask": ("y = Add(h, a)", [0.0, -np.inf]),
    "a switch": ("y = Mul(h, a)", [0.0, 1.0]),
    "positions": ("e = Gather(a, tokens) y = Add(h, e)", [[0.0, 1.0, 2.0]] * 2),
    "knots": (
        "u = Unsqueeze(h, two) d = Sub(u, a) y = ReduceSum <keepdims = 0> (d, two)",
        KNOTS,
    ),
    "only in comparisons": ("c = Less(h, a) y = Where(c, h, x)", 0.7654321),
    "a rotary frequency": (
        "s = Shape(x) t = Gather(s, zero) p = Cast <to = 1> (t) m = Mul(p, a) "
        "e = Cos(m) y = Mul(h, e)",
        [0.7654321, 0.1234567],
    ),
    "read by nothing": ("y = Relu(h)", [0.7654321]),
}


@pytest.mark.parametrize(("nodes", "value"), TRAINED.values(), ids=TRAINED)
def test_weights_are_trained(nodes: str, value: object) -> None:
    """``constants`` does not list weights, whether their values are initial or trained.

    ``constants`` returns the tensors that are not trained.
    """
    assert constants(model_with(nodes, a=value)) == {}


@pytest.mark.parametrize(("nodes", "value"), UNTRAINED.values(), ids=UNTRAINED)
def test_numbers_of_the_program_are_not_trained(nodes: str, value: object) -> None:
    """``constants`` lists bounds, masks, positions, frequencies, and numbers that look typed."""
    assert list(constants(model_with(nodes, a=value))) == ["a"]


def test_sines_of_positions_are_not_trained() -> None:
    """A Transformer's position table, with the sine and cosine of each angle, is a constant."""
    angles = np.outer(np.arange(7), 10.0 ** -np.arange(4))
    table = np.concatenate([np.sin(angles), np.cos(angles)], axis=1)
    nodes = "e = Gather(a, tokens) f = MatMul(e, b) y = Add(h, f)"
    rng = np.random.default_rng(0)
    assert list(constants(model_with(nodes, a=table, b=rng.random((8, 2))))) == ["a"]


def test_the_exporter_knows_best() -> None:
    """A tensor that PyTorch's exporter marks as a buffer is not a parameter by default.

    ``as_parameters`` overrides the exporter's mark, so that the tensor is trained.
    """
    model = load_model(FAULTS / "buffer_trained_False.onnx")
    assert [parameter.name for parameter in parameters(model)] == ["l.weight", "l.bias"]
    assert untrained(model) == {"mask": "the exporter says BUFFER"}
    marked = as_parameters(model, ["mask"])
    assert [p.name for p in parameters(marked)] == ["l.weight", "l.bias", "mask"]


def test_a_model_of_such_numbers_alone_is_trained() -> None:
    """If all stored tensors look typed in code, such as 1, 2, 3, 4, all are parameters.

    Without any parameter, the model could not be trained.
    """
    text = "g (float[n,4] x) => (float[n,4] y) <float[4] w = {1,2,3,4}> { y = Mul(x, w) }"
    assert [parameter.name for parameter in parameters(model_of_text(text))] == ["w"]


def test_single_numbers_of_a_traced_module_are_trained() -> None:
    """In a traced file, a typed scalar is trained if it has the name of a module's attribute.

    Exceptions are embedding scales, and numbers of -100 or less, which probably belong to a mask.
    """
    tensors = {"gate": 0.7, "onnx::Mul_7": 0.7, "embed_scale": 0.5, "low": -1e4, "l.step": 0.1}
    nodes = [helper.make_node("MatMul", ["x", "w"], ["h0"])]
    nodes += [
        helper.make_node("Mul", [f"h{index}", name], [f"h{index + 1}" if index < 4 else "y"])
        for index, name in enumerate(tensors)
    ]
    model = traced(nodes, {"w": WEIGHTS[0], **tensors})
    assert list(constants(model)) == ["onnx::Mul_7", "embed_scale", "low"]
    model.producer_name = ""
    assert list(constants(model)) == list(tensors)


ROWS = np.random.default_rng(2).standard_normal((8, 4))
COMPUTED = {
    "a turned weight": (["qkv.weight"], ROWS, ""),
    "rows of a table": (["wpe.weight", "arange", "embedding", "val_1"], ROWS, ""),
    "one and a fresh weight": (["norm.weight", "add", "val_1"], np.ones(4), ""),
    "a fresh token for each example": (["cls", "expand"], np.zeros((8, 4)), ""),
    "repeated rows": (
        ["types.weight", "zeros", "embedding"],
        np.repeat(ROWS[:1], 8, 0),
        "repeated",
    ),
    "fresh biases by distance": (["table.weight", "arange_1"], np.zeros((8, 4)), "repeated"),
    "an angle": (["rotary.inv_freq", "cos", "mul_1"], ROWS, "no parameter"),
    "a mask": (["arange_2", "ge", "where"], np.zeros((8, 4)), "no parameter"),
    "a zero state": (["val_1", "val_2"], np.zeros(4), "no parameter"),
}


@pytest.mark.parametrize(("origin", "value", "why"), COMPUTED.values(), ids=COMPUTED)
def test_what_an_optimizer_computed(origin: list[str], value: np.ndarray, why: str) -> None:
    """``constants`` gives a reason if a tensor that a graph optimizer computed is not trained.

    The reason contains ``why``. If ``why`` is empty, the tensor is trained and has no reason.
    """
    reasons = constants(optimised({"val_9": origin}, {"val_9": value}))
    assert why in reasons.get("val_9", "")
    assert bool(reasons) == bool(why)
