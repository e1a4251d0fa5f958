"""Recurrent layers that are refused, and gradients of losses that read a single final state."""

from __future__ import annotations

import numpy as np
import onnx
import pytest

from graph_text import model_of_text, run
from onnxstep import vjp_graph
from onnxstep.errors import ModelError


def _lstm(attributes: str, outputs: str = "float[3,1,2,2] y", names: str = "y") -> onnx.ModelProto:
    return model_of_text(
        f"g (float[3,2,2] x, float[1,8,2] w, float[1,8,2] r) => ({outputs}) "
        f"{{ {names} = LSTM <hidden_size = 2{attributes}> (x, w, r) }}"
    )


def test_a_function_whose_value_does_not_tell_its_slope_is_refused() -> None:
    """The error names an activation whose derivative does not follow from its result."""
    with pytest.raises(ModelError, match="got 'Hardsigmoid'"):
        vjp_graph(_lstm(', activations = ["HardSigmoid", "Tanh", "Tanh"]'), ["w"])


@pytest.mark.parametrize("option", ["clip = 1.0", "input_forget = 1", "layout = 1"])
def test_rare_options_are_refused(option: str) -> None:
    """The error for clipped gates, coupled gates or batch-first tensors names the attribute."""
    with pytest.raises(ModelError, match=f"{option.split(maxsplit=1)[0]} is not differentiated"):
        vjp_graph(_lstm(f", {option}"), ["w"])


def test_a_projected_state_is_refused() -> None:
    """The error for an LSTM with a projected hidden state mentions PyTorch's proj_size."""
    model = model_of_text(
        "g (float[3,2,2] x, float[1,8,2] w, float[1,8,1] r) => (float[3,1,2,2] y) "
        "{ y = LSTM <hidden_size = 2> (x, w, r) }"
    )
    with pytest.raises(ModelError, match=r"node 'y' \(LSTM\): .*\[1, 8, 1\].*proj_size"):
        vjp_graph(model, ["w"])


def test_a_reset_before_the_product_is_refused() -> None:
    """A GRU without linear_before_reset is refused."""
    model = model_of_text(
        "g (float[3,2,2] x, float[1,6,2] w, float[1,6,2] r) => (float[3,1,2,2] y) "
        "{ y = GRU <hidden_size = 2> (x, w, r) }"
    )
    with pytest.raises(ModelError, match="only linear_before_reset = 1"):
        vjp_graph(model, ["w"])


@pytest.mark.parametrize("state", ["y_h", "y_c"])
def test_a_loss_of_one_final_state_alone(state: str) -> None:
    """Omitting outputs of an LSTM gives the same gradients as zero cotangents of these outputs."""
    rng = np.random.default_rng(3)
    shapes = {"x": (3, 2, 2), "w": (1, 8, 2), "r": (1, 8, 2), f"{state}_cotangent": (1, 2, 2)}
    feeds = {name: rng.standard_normal(shape, np.float32) for name, shape in shapes.items()}
    names = {"y_h": ", y_h", "y_c": ", , y_c"}[state]
    alone = _lstm("", f"float[1,2,2] {state}", names)
    whole = _lstm("", "float[3,1,2,2] y, float[1,2,2] y_h, float[1,2,2] y_c", "y, y_h, y_c")
    zeros = {
        "y_cotangent": np.zeros((3, 1, 2, 2), np.float32),
        "y_h_cotangent": np.zeros((1, 2, 2), np.float32),
        "y_c_cotangent": np.zeros((1, 2, 2), np.float32),
    }
    got = run(vjp_graph(alone, ["x", "w", "r"]), feeds)
    expected = run(vjp_graph(whole, ["x", "w", "r"]), zeros | feeds)
    for name in ("x_gradient", "w_gradient", "r_gradient"):
        np.testing.assert_allclose(got[name], expected[name], rtol=1e-6, atol=1e-7)
