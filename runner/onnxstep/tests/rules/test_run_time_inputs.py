"""Gradients of operators whose sizes, scales, axes or bounds are fed at run time."""

from __future__ import annotations

import numpy as np
import pytest

from graph_text import model_of_text, run
from onnxstep import vjp_graph
from onnxstep.errors import ModelError


def test_sizes_fed_at_run_time() -> None:
    """A Resize with fed sizes has the gradient of a Resize with constant sizes."""
    call = 'y = Resize <mode = "linear"> (x, , , s)'
    head = "(float[1,1,5,7] y)"
    constant = f"g (float[1,1,2,3] x) => {head} <int64[4] s = {{1, 1, 5, 7}}> {{ {call} }}"
    fed = f"g (float[1,1,2,3] x, int64[4] s) => {head} {{ {call} }}"
    rng = np.random.default_rng(4)
    feeds = {
        "x": rng.standard_normal((1, 1, 2, 3)).astype(np.float32),
        "y_cotangent": rng.standard_normal((1, 1, 5, 7)).astype(np.float32),
    }
    expected = run(vjp_graph(model_of_text(constant), ["x"]), feeds)
    got = run(vjp_graph(model_of_text(fed), ["x"]), feeds | {"s": np.array([1, 1, 5, 7])})
    for name in ("y", "x_gradient"):
        np.testing.assert_allclose(got[name], expected[name], rtol=1e-5, atol=1e-6, err_msg=name)


def test_no_gradient_of_scales_is_zero_in_silence() -> None:
    """A request for the gradient of Resize's scales is refused, instead of returning zeros."""
    model = model_of_text("g (float[2,3] x, float[2] s) => (float[4,3] y) { y = Resize(x, , s) }")
    with pytest.raises(ModelError, match=r"node 'y' \(Resize\): .*roi and scales"):
        vjp_graph(model, ["x", "s"])


@pytest.mark.parametrize(
    ("call", "output", "input_name"),
    [
        ("ReduceSum (x, a)", "float[1,3] y", "axes"),
        ("ReduceMax <keepdims = 0> (x, a)", "float[3] y", "axes"),
        ("Slice (x, a, a)", "float[1,3] y", "starts"),
        ("Pad (x, p)", "float[4,3] y", "pads"),
    ],
)
def test_what_is_fed_at_run_time_is_refused(call: str, output: str, input_name: str) -> None:
    """If axes, bounds or pads are fed, the error states the node and the input."""
    model = model_of_text(
        f"g (float[3,3] x, int64[1] a, int64[4] p) => ({output}) {{ y = {call} }}"
    )
    with pytest.raises(ModelError, match=rf"node 'y' .*: expected {input_name} as a constant"):
        vjp_graph(model, ["x"])
