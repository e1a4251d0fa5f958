"""Derivatives at kinks and at divisions by zero equal PyTorch's.

The expected numbers come from PyTorch 2.13 in float64 (`torch.autograd` of the sum of outputs).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import TensorProto

from gradient_check import Case, model_of
from graph_text import Array, session, shape_of
from onnxstep import vjp_graph

INF = float("inf")
Row = tuple[str, dict[str, Any], list[Any], list[Any]]
# Operator, attributes, inputs, derivatives of the sum of outputs.
KINKS: list[Row] = [
    ("Abs", {}, [[0.0]], [[0.0]]),
    ("Relu", {}, [[0.0]], [[0.0]]),
    ("LeakyRelu", {"alpha": 0.1}, [[0.0]], [[0.1]]),
    ("PRelu", {}, [[0.0], [0.25]], [[0.25], [0.0]]),
    ("ThresholdedRelu", {"alpha": 1.0}, [[1.0]], [[0.0]]),
    ("Elu", {"alpha": 2.0}, [[0.0]], [[2.0]]),
    ("Selu", {}, [[0.0]], [[1.7580993408]]),
    ("Shrink", {"lambd": 0.5}, [[0.5, -0.5]], [[0.0, 0.0]]),
    ("HardSigmoid", {"alpha": 0.25, "beta": 0.5}, [[-2.0, 2.0]], [[0.0, 0.0]]),
    ("HardSwish", {}, [[-3.0, 3.0]], [[0.0, 1.0]]),
    ("Max", {}, [[1.0, 2.0, INF], [1.0, 1.0, INF]], [[0.5, 1.0, 0.5], [0.5, 0.0, 0.5]]),
    ("Min", {}, [[1.0, 2.0, -INF], [1.0, 1.0, -INF]], [[0.5, 0.0, 0.5], [0.5, 1.0, 0.5]]),
    ("ReduceMax", {}, [[1.0, 1.0, 0.0]], [[0.5, 0.5, 0.0]]),
    ("ReduceMin", {}, [[1.0, 0.0, 0.0]], [[0.0, 0.5, 0.5]]),
    ("ReduceProd", {}, [[2.0, 3.0, 0.0]], [[0.0, 0.0, 6.0]]),
    ("ReduceProd", {}, [[2.0, 0.0, 0.0]], [[0.0, 0.0, 0.0]]),
    ("ReduceL1", {}, [[0.0, 1.0]], [[0.0, 1.0]]),
    ("ReduceL2", {}, [[0.0, 0.0]], [[0.0, 0.0]]),
    (
        "Pow",
        {},
        [[0.0, 0.0, 0.0, 2.0], [0.0, 1.0, 2.0, 0.0]],
        [[0, 1, 0, 0], [0, 0, 0, 0.69314718]],
    ),
]
# Large inputs, for which e^x overflows in float32 or the function saturates.
SATURATING: list[Row] = [
    ("Sigmoid", {}, [[-200.0, 200.0]], [[0.0, 0.0]]),
    ("Softplus", {}, [[-200.0, 200.0]], [[0.0, 1.0]]),
    ("Gelu", {}, [[-200.0, 200.0]], [[0.0, 1.0]]),
    ("Gelu", {"approximate": "tanh"}, [[-200.0, 200.0]], [[0.0, 1.0]]),
    ("ReduceLogSumExp", {}, [[200.0, 0.0]], [[1.0, 0.0]]),
]


def gradients(case: Case, inputs: list[Array], cotangent: Array | None = None) -> list[Array]:
    """Gradients of ``case`` at ``inputs``, from ONNX Runtime; the default cotangent is all ones."""
    model = model_of(case, TensorProto.FLOAT)
    names = list(case.shapes)
    [output] = model.graph.output
    feeds = dict(zip(names, inputs, strict=True))
    feeds[f"{output.name}_cotangent"] = (
        np.ones(shape_of(output)) if cotangent is None else cotangent
    )
    opened = session(vjp_graph(model, names))
    feeds = {entry.name: feeds[entry.name].astype(np.float32) for entry in opened.get_inputs()}
    return list(opened.run([f"{name}_gradient" for name in names], feeds))


def shapes_of(inputs: list[Array]) -> dict[str, tuple[int, ...]]:
    """Shapes of ``inputs``, by the names x0, x1 and so on."""
    return {f"x{index}": x.shape for index, x in enumerate(inputs)}


@pytest.mark.parametrize("row", [*KINKS, *SATURATING], ids=lambda row: f"{row[0]}-{row[2]}")
def test_derivatives_at_kinks_and_far_out_are_those_of_pytorch(row: Row) -> None:
    """Derivatives at ties, at kinks and at large inputs equal PyTorch's, without overflow."""
    op_type, attributes, values, expected = row
    inputs = [np.array(value) for value in values]
    results = gradients(Case(op_type, shapes_of(inputs), attributes), inputs)
    for gradient, numbers in zip(results, expected, strict=True):
        np.testing.assert_allclose(gradient, np.array(numbers), rtol=1e-5, atol=1e-12)


@pytest.mark.parametrize(
    ("exponent", "expected"),
    [(0.0, [0.0, 0.0]), (0.5, [INF, 0.25]), (1.0, [1.0, 1.0]), (-1.0, [-INF, -1 / 16])],
)
def test_constant_powers_at_zero(exponent: float, expected: list[float]) -> None:
    """At x = 0, the derivative of xᵖ for a constant p is the derivative's limit for x → 0."""
    x = np.array([0.0, 4.0])
    case = Case("Pow", {"x": x.shape}, fixed={"exponent": np.array(exponent)})
    np.testing.assert_allclose(gradients(case, [x])[0], expected, rtol=1e-6)


def test_three_equal_operands_share_evenly() -> None:
    """Each of n equal operands of Max gets 1/n of the gradient."""
    inputs = [np.ones(1)] * 3
    for gradient in gradients(Case("Max", shapes_of(inputs)), inputs):
        np.testing.assert_allclose(gradient, [1 / 3], rtol=1e-6)


def test_where_keeps_nan_out_of_the_other_branch() -> None:
    """A NaN in the result's gradient does not reach the operand that Where did not select."""
    inputs = [np.ones(2), np.ones(2)]
    fixed = {"chosen": np.array([True, False])}
    case = Case("Where", shapes_of(inputs), fixed=fixed, inputs=["chosen", "x0", "x1"])
    da, db = gradients(case, inputs, np.array([1.0, np.nan]))
    np.testing.assert_array_equal(da, [1.0, 0.0])
    np.testing.assert_array_equal(db, [0.0, np.nan])
