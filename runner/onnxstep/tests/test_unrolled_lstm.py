"""Steps with unrolled LSTM layers give the results of steps with ONNX Runtime's LSTM operator."""

from __future__ import annotations

import numpy as np
import onnx
import pytest

from graph_text import model_of_text
from onnxstep import StepOptions, training_step
from onnxstep.errors import ModelError
from provider_steps import assert_alike, portable_and_special

STEPS, BATCH, INPUTS, HIDDEN = 4, 3, 5, 2


def layer(
    direction: str = "forward", more: str = "", *, inputs: str = "b,,h0,c0", output: str = "all"
) -> onnx.ModelProto:
    """A model that scales x, runs an LSTM and computes y from outputs of the LSTM.

    ``more`` has further attributes of the LSTM, ``inputs`` its optional inputs. ``output`` says
    which outputs y depends on.
    """
    directions = 2 if direction == "bidirectional" else 1
    shapes = {
        "s": (INPUTS,),
        "w": (directions, 4 * HIDDEN, INPUTS),
        "r": (directions, 4 * HIDDEN, HIDDEN),
        "b": (directions, 8 * HIDDEN),
        "h0": (directions, BATCH, HIDDEN),
        "c0": (directions, BATCH, HIDDEN),
        "lengths": (BATCH,),
    }
    used = ["s", "w", "r", *(name for name in inputs.split(",") if name)]
    names, nodes, y = {
        "all": (
            "h, last_h, last_c",
            "both = Add(last_h, last_c) wide = Unsqueeze(both, zero) y = Add(h, wide)",
            "float[t,d,n,m] y",
        ),
        "last": (", last_h, last_c", "y = Add(last_h, last_c)", "float[d,n,m] y"),
        "every": ("h", "y = Mul(h, h)", "float[t,d,n,m] y"),
    }[output]
    text = (
        f"g (float[{STEPS},{BATCH},{INPUTS}] x) => ({y}) <int64[1] zero = {{0}}> "
        f'{{ a = Mul(x, s) {names} = LSTM <hidden_size = {HIDDEN}, direction = "{direction}"'
        f"{more}> (a, w, r, {inputs}) {nodes} }}"
    )
    rng = np.random.default_rng(2)
    weights = {name: rng.standard_normal(shapes[name]).astype(np.float32) for name in used}
    if "lengths" in used:
        weights["lengths"] = np.array([4, 2, 3], np.int32)
    return model_of_text(text, weights=weights)


def operators_of_equal_step(model: onnx.ModelProto) -> set[str]:
    """Assert that a model's step for the CPU provider gives the results of a portable step.

    The portable step is built without a provider. Returns the types of the operators in the CPU
    step.
    """
    portable, special = portable_and_special(model, "cpu")
    assert_alike(portable, special)
    return {node.op_type for node in special.graph.node}


@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
@pytest.mark.parametrize("inputs", ["b,,h0,c0", ",,h0", "b"])
@pytest.mark.parametrize("output", ["all", "last", "every"])
def test_a_layer_written_out_is_the_layer(direction: str, inputs: str, output: str) -> None:
    """A CPU step has no LSTM node, and its outputs equal those of a step with an LSTM node."""
    assert "LSTM" not in operators_of_equal_step(layer(direction, inputs=inputs, output=output))


def test_a_frozen_layer_may_have_many_steps() -> None:
    """A CPU step keeps a frozen LSTM as one node, even for sequences too long to be unrolled."""
    model = model_of_text(
        "g (float[5000,1,1] x) => (float[5000,1,1,1] y) <float[1,4,1] w = {1,2,3,4}, "
        "float[1,4,1] r = {1,2,3,4}, float s = {0.12345678}> "
        "{ h = LSTM <hidden_size = 1> (x, w, r) y = Mul(h, s) }"
    )
    options = StepOptions(loss="mse", freeze=["w", "r"], provider="cpu")
    assert "LSTM" in {node.op_type for node in training_step(model, options).model.graph.node}


@pytest.mark.parametrize(
    ("more", "inputs"),
    [(', activations = ["Sigmoid", "Relu", "Tanh"]', "b"), ("", "b,lengths")],
    ids=["other activations", "lengths"],
)
def test_a_rare_form_stays_the_operator(more: str, inputs: str) -> None:
    """A CPU step keeps an LSTM node that has sequence lengths or unusual activations."""
    assert "LSTM" in operators_of_equal_step(layer(more=more, inputs=inputs, output="every"))


def test_activations_that_are_not_text_are_refused() -> None:
    """The error for an activation that is not UTF-8 says so."""
    model = layer(more=', activations = ["Sigmoid", "Tanh", "Tanh"]')
    lstm = next(node for node in model.graph.node if node.op_type == "LSTM")
    [names] = [entry for entry in lstm.attribute if entry.name == "activations"]
    names.strings[0] = b"\xff"
    with pytest.raises(ModelError, match="expected text in UTF-8"):
        training_step(model, StepOptions(loss="mse", provider="cpu"))
