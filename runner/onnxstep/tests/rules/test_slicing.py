"""Gradients of Pad, Slice, Concat and Split for negative pads, empty slices and unused parts."""

from __future__ import annotations

import numpy as np
import pytest

from graph_text import model_of_text, run
from onnxstep import vjp_graph
from onnxstep.errors import ModelError

X = np.arange(12, dtype=np.float32).reshape(3, 4)


@pytest.mark.parametrize(
    ("pads", "shape"),
    [("-1, 2, 0, -2", "2,4"), ("-1, -1, -1, 0", "1,3"), ("1, -2, -2, 3", "2,5")],
)
def test_negative_pads(pads: str, shape: str) -> None:
    """Elements that a negative pad removes have a zero gradient.

    onnx's evaluator does not support negative pads.
    """
    stored = f"<int64[4] pads = {{{pads}}}>"
    graph = f"g (float[3,4] x) => (float[{shape}] y) {stored} {{ y = Pad(x, pads) }}"
    y = run(model_of_text(graph), {"x": X})["y"]
    u = np.random.default_rng(5).standard_normal(y.shape).astype(np.float32)
    got = run(vjp_graph(model_of_text(graph), ["x"]), {"x": X, "y_cotangent": u})
    # Pad is a linear map A, and the gradient is Aᵀ u: u · A x = Aᵀ u · x.
    np.testing.assert_allclose(np.sum(got["x_gradient"] * X), np.sum(u * y), rtol=1e-5)


def test_an_empty_slice() -> None:
    """A slice without elements has a gradient of zeros."""
    model = model_of_text(
        "g (float[3,4] x) => (float[3,0] y) <int64[1] at = {2}, int64[1] axis = {1}> "
        "{ y = Slice(x, at, at, axis) }"
    )
    got = run(vjp_graph(model, ["x"]), {"x": X, "y_cotangent": np.zeros((3, 0), np.float32)})
    np.testing.assert_array_equal(got["x_gradient"], np.zeros_like(X))


def test_only_the_wanted_part_is_cut_from_a_concatenation() -> None:
    """The gradient of a single operand of Concat is a Slice, not a Split."""
    model = model_of_text(
        "g (float[3,4] a, float[3,4] x) => (float[3,8] y) { y = Concat <axis = 1> (a, x) }"
    )
    backward = vjp_graph(model, ["x"])
    assert [node.op_type for node in backward.graph.node][1:] == ["Slice"]
    u = np.arange(24, dtype=np.float32).reshape(3, 8)
    got = run(backward, {"a": X, "x": X, "y_cotangent": u})
    np.testing.assert_array_equal(got["x_gradient"], u[:, 4:])


@pytest.mark.parametrize("parts", ["a, b, y", "a, y, b", "y, , a", ", , y"])
def test_a_part_that_the_loss_does_not_depend_on(parts: str) -> None:
    """In the gradient of a Split's input, the elements of unused parts are zero."""
    model = model_of_text(
        f"g (float[6] x) => (float[2] y) <int64[3] s = {{2, 2, 2}}> {{ {parts} = Split(x, s) }}"
    )
    u = np.array([5, 7], np.float32)
    got = run(vjp_graph(model, ["x"]), {"x": np.ones(6, np.float32), "y_cotangent": u})
    expected = np.zeros(6, np.float32)
    at = 2 * [part.strip() for part in parts.split(",")].index("y")
    expected[at : at + 2] = u
    np.testing.assert_array_equal(got["x_gradient"], expected)


def test_negative_pads_of_reflections_are_refused() -> None:
    """The error for pads that are negative in reflect mode names the node."""
    model = model_of_text(
        "g (float[4] x) => (float[5] y) <int64[2] pads = {-1, 2}> "
        '{ y = Pad <mode = "reflect"> (x, pads) }'
    )
    with pytest.raises(ModelError, match=r"node 'y' \(Pad\): negative pads"):
        vjp_graph(model, ["x"])
