"""Nodes of the gradient of an embedding, and the gradient of ScatterElements with ties."""

from __future__ import annotations

import numpy as np

from graph_text import model_of_text, run
from onnxstep import vjp_graph


def test_an_embedding_makes_no_matrix_of_the_vocabulary() -> None:
    """From opset 16 on, the gradient of an embedding needs a ScatterND but no one-hot matrix."""
    model = model_of_text(
        "g (float[7,3] w, int64[2,4] ids) => (float[2,4,3] y) { y = Gather(w, ids) }"
    )
    operators = [node.op_type for node in vjp_graph(model, ["w"]).graph.node]
    assert operators == ["Gather", "Unsqueeze", "Expand", "ScatterND"]


def test_tied_extremes_share() -> None:
    """Data and updates that tie for the maximum in ScatterElements share the gradient equally."""
    model = model_of_text(
        "g (float[3] x, float[3] u) => (float[3] y) <int64[3] at = {1, 1, 2}> "
        '{ y = ScatterElements <reduction = "max"> (x, at, u) }'
    )
    got = run(
        vjp_graph(model, ["x", "u"]),
        {
            "x": np.array([1, 4, 2], np.float32),
            "u": np.array([4, 4, 9], np.float32),
            "y_cotangent": np.array([5, 6, 7], np.float32),
        },
    )
    np.testing.assert_allclose(got["x_gradient"], [5, 2, 0])
    np.testing.assert_allclose(got["u_gradient"], [2, 2, 7])
