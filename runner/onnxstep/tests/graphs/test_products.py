"""Which values a product of matrices takes in, so that nobody stores them."""

from __future__ import annotations

import pytest

from graph_text import model_of_text
from onnxstep.graphs.binding import bind_dimensions
from onnxstep.graphs.counting import static_shapes
from onnxstep.graphs.execution_plan import execution_plan
from onnxstep.graphs.peak_memory import fused_operands


@pytest.mark.parametrize(
    ("nodes", "expected"),
    [
        ("t = Transpose <perm = [1, 0]> (x) y = MatMul(t, w)", {"t"}),
        ("t = Transpose <perm = [1, 0]> (x) p = MatMul(t, w) y = Add(p, t)", set()),
        ("p = MatMul(x, w) s = Div(p, two) y = Softmax(s)", {"s"}),
        ("p = MatMul(x, w) s = Mul(two, p) y = Add(s, p)", set()),
        ("s = Mul(x, two) y = MatMul(s, w)", {"s"}),
        ("s = Mul(x, w) y = MatMul(s, w)", set()),
        ("s = Mul(x, two) y = Tanh(s)", set()),
    ],
    ids=["swap", "swap-read", "result", "result-read", "operand", "no-number", "no-product"],
)
def test_a_product_takes_in(nodes: str, expected: set[str]) -> None:
    """A transpose or a factor beside a product, unless somebody else reads its result too."""
    model = bind_dimensions(
        model_of_text(
            f"g (float[4,4] x, float[4,4] w) => (float[4,4] y) <float two = {{2}}> {{ {nodes} }}"
        ),
        {},
    )
    assert fused_operands(execution_plan(model), static_shapes(model)) == expected
