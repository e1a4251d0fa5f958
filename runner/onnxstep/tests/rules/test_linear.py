"""All methods by which a CPU step computes a weight's gradient give numpy's result."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import TensorProto, helper

from graph_text import run
from onnxstep.builder import Builder
from onnxstep.forward import Forward, close_model
from onnxstep.rules.linear import summed_over_rows


@pytest.mark.parametrize(
    ("positions", "rows", "columns", "turnings"),
    [
        (8, 200, 300, 0),
        (130, 60, 300, 0),
        (130, 150, 140, 1),
        (130, 700, 140, 1),
        (256, 700, 140, 2),
    ],
    ids=["few positions", "narrow", "turned before", "tall over few", "turned after"],
)
def test_a_weights_gradient_is_the_product_over_positions(
    positions: int, rows: int, columns: int, turnings: int
) -> None:
    """``summed_over_rows`` gives numpy's aᵀ b by a graph with ``turnings`` Transpose nodes.

    The shape of ``a`` is [positions, rows], and that of ``b`` is [positions, columns].
    """
    op = Builder([helper.make_opsetid("", 21)], 10, "cpu")
    a = op.input("a", (positions, rows), TensorProto.FLOAT)
    b = op.input("b", (positions, columns), TensorProto.FLOAT)
    product = summed_over_rows(a, b)
    model = close_model(Forward(op, (), (), {}), [a, b], [product], "product")
    assert sum(node.op_type == "Transpose" for node in model.graph.node) == turnings
    rng = np.random.default_rng(5)
    feeds = {v.name: rng.standard_normal(v.shape).astype(np.float32) for v in (a, b)}
    expected = feeds["a"].T @ feeds["b"]
    np.testing.assert_allclose(run(model, feeds)[product.name], expected, rtol=1e-4, atol=1e-4)
