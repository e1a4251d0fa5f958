"""Gradients with inputs computed at run time, if the shapes in the file imply enough."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest

from graph_text import model_of_text, run
from onnxstep import vjp_graph
from onnxstep.errors import ModelError


@pytest.mark.parametrize(
    ("into", "out", "stored", "call"),
    [
        ("1,1,2,3", "1,1,5,7", "int64[4] s = {1, 1, 5, 7}", 'Resize <mode = "linear"> (x, , , s)'),
        ("2,3,4", "2,1,4", "int64[1] s = {1}", "ReduceSum (x, s)"),
        ("2,3,4", "1,3,1", "int64[2] s = {0, -1}", "ReduceMax (x, s)"),
        ("4,7", "2,3", "int64[2] s = {-1, 1}, int64[2] k = {-4, 7}, int64[2] a = {0, 1}, "
         "int64[2] b = {-2, 2}", "Slice (x, s, k, a, b)"),
        ("4,7", "3,7", "int64[1] s = {1}, int64[1] k = {9}", "Slice (x, s, k)"),
    ],
)  # fmt: skip
def test_a_gradient_is_that_of_the_constant(into: str, out: str, stored: str, call: str) -> None:
    """Sizes, axes and bounds fed at run time give the gradient that constant ones give."""
    entries = [entry.split(" = ") for entry in re.findall(r"\w+\[\d\] \w = \{.*?\}", stored)]
    fed_inputs = ", ".join(kind for kind, _ in entries)
    fed = f"g (float[{into}] x, {fed_inputs}) => (float[{out}] y) {{ y = {call} }}"
    constant = f"g (float[{into}] x) => (float[{out}] y) <{stored}> {{ y = {call} }}"
    rng = np.random.default_rng(4)
    feeds = {
        name: rng.standard_normal([int(n) for n in sizes.split(",")]).astype(np.float32)
        for name, sizes in (("x", into), ("y_cotangent", out))
    }
    types = {"f": np.float32, "i": np.int64}
    numbers = {
        kind[-1]: np.array(json.loads(f"[{text[1:-1]}]"), types[kind[0]]) for kind, text in entries
    }
    expected = run(vjp_graph(model_of_text(constant), ["x"]), feeds)
    got = run(vjp_graph(model_of_text(fed), ["x"]), feeds | numbers)
    for name in ("y", "x_gradient"):
        np.testing.assert_allclose(got[name], expected[name], rtol=1e-5, atol=1e-6, err_msg=name)


def test_no_gradient_of_scales_is_zero_in_silence() -> None:
    """A request for the gradient of Resize's scales is refused."""
    model = model_of_text("g (float[2,3] x, float[2] s) => (float[4,3] y) { y = Resize(x, , s) }")
    with pytest.raises(ModelError, match=r"node 'y' \(Resize\): .*roi and scales"):
        vjp_graph(model, ["x", "s"])


def test_what_shapes_do_not_tell_is_refused() -> None:
    """The error for a reduction whose axes are fed and removed names the node."""
    model = model_of_text(
        "g (float[3,3] x, int64[1] a) => (float[3] y) { y = ReduceSum <keepdims = 0> (x, a) }"
    )
    with pytest.raises(ModelError, match=r"node 'y' \(ReduceSum\): expected axes as a constant"):
        vjp_graph(model, ["x"])
