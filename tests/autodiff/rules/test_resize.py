"""Resize beyond the case table: how its gradient is built, and what is refused."""

from __future__ import annotations

import pytest

from epochcost.autodiff import vjp_graph
from epochcost.errors import ModelError
from graph_text import model_of_text


def test_repeating_pixels_is_undone_by_pooling() -> None:
    """Nearest upsampling by a whole factor needs no matrix: one pooling and its scale."""
    model = model_of_text(
        "g (float[1,2,3,4] x) => (float[1,2,6,12] y) <float[4] s = {1.0, 1.0, 2.0, 3.0}> "
        '{ y = Resize <coordinate_transformation_mode = "asymmetric", nearest_mode = "floor"> '
        "(x, , s) }",
        opset=19,
    )
    operators = [node.op_type for node in vjp_graph(model, ["x"]).graph.node]
    assert operators == ["Resize", "AveragePool", "Mul"]


def test_a_rounded_aspect_ratio_is_refused() -> None:
    """Where the output's shape hides the scale that is used, the node is named."""
    model = model_of_text(
        "g (float[1,1,2,4] x) => (float[1,1,2,3] y) <int64[2] s = {1, 3}> "
        '{ y = Resize <axes = [2, 3], keep_aspect_ratio_policy = "not_smaller"> (x, , , s) }',
        opset=19,
    )
    with pytest.raises(ModelError, match=r"node 'y' \(Resize\): .*'not_smaller' rounds"):
        vjp_graph(model, ["x"])
