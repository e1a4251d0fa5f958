"""Test cases of reductions that cover all branches of the gradient rules."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradient_check import Case, ints
from graph_text import Array

# (name, attributes, axes) from opset 18 on, where axes are an input.
FORMS: list[tuple[str, dict[str, Any], dict[str, Array]]] = [
    ("all", {}, {}),
    ("all_kept_off", {"keepdims": 0}, {}),
    ("empty_axes_are_all", {}, {"axes": ints()}),
    ("no_op", {"noop_with_empty_axes": 1}, {}),
    ("negative_axis", {}, {"axes": ints(-1)}),
    ("axes_kept_off", {"keepdims": 0}, {"axes": ints(-1, 0)}),
]
KINDS = ["L1", "L2", "LogSum", "LogSumExp", "Max", "Mean", "Min", "Prod", "Sum", "SumSquare"]
REDUCTIONS = [f"Reduce{kind}" for kind in KINDS]


def at_opset_13(op_type: str, axes: list[int] | None, keepdims: int) -> Case:
    """A case of opset 13, where axes are an attribute of every reduction except ReduceSum."""
    attributes: dict[str, Any] = {"keepdims": keepdims}
    fixed = {}
    if axes is not None and op_type == "ReduceSum":
        fixed["axes"] = ints(*axes)
    elif axes is not None:
        attributes["axes"] = axes
    x, name = {"x": (2, 3, 2)}, f"{axes}_{keepdims}"
    return Case(op_type, x, attributes, fixed, low=0.2, high=2.0, opset=13, name=name)


CASES = [
    *(
        Case(op, {"x": (2, 3, 2)}, attributes, axes, low=0.2, high=2.0, name=name)
        for op in REDUCTIONS
        for name, attributes, axes in FORMS
    ),
    *(
        at_opset_13(op, axes, keepdims)
        for op in REDUCTIONS
        for axes, keepdims in [(None, 1), ([-2], 0), ([0, 2], 1)]
    ),
    # The reference evaluator of onnx 1.23.2 fails on ReduceLogSumExp of a scalar.
    *(Case(op, {"x": ()}, low=0.2, high=2.0) for op in REDUCTIONS if op != "ReduceLogSumExp"),
    Case("ReduceL1", {"x": (2, 3)}, low=-1.3, name="signs"),
    *(
        Case(
            "CumSum",
            {"x": (2, 3, 2)},
            {"exclusive": exclusive, "reverse": reverse},
            {"axis": np.array(-2)},
            name=f"exclusive{exclusive}_reverse{reverse}",
        )
        for exclusive in (0, 1)
        for reverse in (0, 1)
    ),
]
