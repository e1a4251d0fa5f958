"""Gradient cases of the domain ai.onnx.ml, at least one for each form of a rule."""

from __future__ import annotations

from typing import Any

from gradient_check import Case

DOMAIN = "ai.onnx.ml"
# The gradient's constants are float32, and onnx's evaluator requires one type.
FLAW = "results are float32 by the standard, and doubles of onnx's evaluator"
SIX = [0.5, -1.0, 2.0, 0.25, 1.5, -0.75]


def _case(op_type: str, name: str, shape: tuple[int, int], **attributes: Any) -> Case:
    outputs = ("label", "y") if op_type == "LinearClassifier" else 1
    form = {"outputs": outputs, "domain": DOMAIN, "reference_flaw": FLAW}
    return Case(op_type, {"x": shape}, attributes, name=name, **form)


def _classifier(name: str, rows: int, **attributes: Any) -> Case:
    fitted = {"coefficients": SIX[: 3 * rows], "intercepts": [0.1, -0.2][:rows]}
    return _case("LinearClassifier", name, (4, 3), **fitted, **attributes)


CASES = [
    _case("Scaler", "by_feature", (4, 3), offset=[0.5, -1.0, 2.0], scale=[3.0, 0.5, -2.0]),
    _case("Scaler", "one", (2, 3), offset=[1.0], scale=[0.3]),
    _case("LinearRegressor", "one", (4, 6), coefficients=SIX, intercepts=[0.1]),
    _case("LinearRegressor", "two", (4, 3), coefficients=SIX, intercepts=[0.1, -0.2], targets=2),
    _classifier("scores", 2, classlabels_ints=[3, 5]),
    _classifier("softmax", 2, classlabels_ints=[3, 5], post_transform="SOFTMAX"),
    _classifier("logistic", 2, classlabels_ints=[0, 7], post_transform="LOGISTIC"),
    _classifier("binary", 1, classlabels_ints=[0, 1]),
    _classifier("binary_logistic", 1, classlabels_ints=[0, 1], post_transform="LOGISTIC"),
]
