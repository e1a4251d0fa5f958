"""Inputs that are known only at run time, where the shapes of the file tell what they must be."""

from __future__ import annotations

import numpy as np
import pytest

from epochcost.autodiff import vjp_graph
from epochcost.errors import ModelError
from graph_text import model_of_text, run


@pytest.mark.parametrize(
    ("into", "out", "held", "call"),
    [
        ("1,1,2,3", "1,1,5,7", "int64[4] s = {1, 1, 5, 7}", 'Resize <mode = "linear"> (x, , , s)'),
        ("2,3,4", "2,1,4", "int64[1] s = {1}", "ReduceSum (x, s)"),
        ("2,3,4", "1,3,1", "int64[2] s = {0, -1}", "ReduceMax (x, s)"),
    ],
)
def test_a_gradient_is_that_of_the_constant(into: str, out: str, held: str, call: str) -> None:
    """Sizes of a Resize and axes that a reduction keeps follow from the declared shapes."""
    kind, number = held.split(" = ")
    fed = f"g (float[{into}] x, {kind}) => (float[{out}] y) {{ y = {call} }}"
    known = f"g (float[{into}] x) => (float[{out}] y) <{held}> {{ y = {call} }}"
    rng = np.random.default_rng(4)
    feeds = {
        name: rng.standard_normal([int(n) for n in sizes.split(",")]).astype(np.float32)
        for name, sizes in (("x", into), ("y_cotangent", out))
    }
    integers = {"s": np.array([int(n) for n in number.strip("{}").split(",")])}
    expected = run(vjp_graph(model_of_text(known), ["x"]), feeds)
    got = run(vjp_graph(model_of_text(fed), ["x"]), feeds | integers)
    for name in ("y", "x_gradient"):
        np.testing.assert_allclose(got[name], expected[name], rtol=1e-5, err_msg=name)


def test_what_shapes_do_not_tell_is_refused() -> None:
    """Axes that are not kept could be any: the node is named."""
    model = model_of_text(
        "g (float[3,3] x, int64[1] a) => (float[3] y) { y = ReduceSum <keepdims = 0> (x, a) }"
    )
    with pytest.raises(ModelError, match=r"node 'y' \(ReduceSum\): expected axes as a constant"):
        vjp_graph(model, ["x"])
