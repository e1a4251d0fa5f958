"""Forms of the gradient of ReLU on the CPU provider: medians of interleaved runs.

    python benchmarks/rules/relu.py

Each candidate computes dx = dy where y is not zero, for y [128, 64, 24, 24]. The rule
`onnxstep.rules.activation.relu` uses the steep HardSigmoid for float32, and two casts for other
types.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import onnx
from interleaved import candidate_model, median_seconds
from onnx import TensorProto, helper

from onnxstep.builder import Builder, Value

SHAPE = (128, 64, 24, 24)
Rule = Callable[[Builder, Value, Value], Value]

CANDIDATES: dict[str, Rule] = {
    "multiply alone (floor)": lambda op, y, dy: op.Mul(dy, y),
    "two casts": lambda op, y, dy: (
        dy * op.Cast(op.Cast(y, to=TensorProto.BOOL), to=TensorProto.FLOAT)
    ),
    "sign": lambda op, y, dy: dy * op.Sign(y),
    "greater, cast": lambda op, y, dy: (
        dy * op.Cast(op.Greater(y, op.scalar(0.0, y.elem_type)), to=TensorProto.FLOAT)
    ),
    "greater, where": lambda op, y, dy: op.Where(
        op.Greater(y, op.scalar(0.0, y.elem_type)), dy, op.scalar(0.0, y.elem_type)
    ),
    "hard sigmoid (below 1 for y < 2^-127)": lambda op, y, dy: (
        dy * op.HardSigmoid(y, alpha=2.0**127, beta=0.0)
    ),
}


def model_of(rule: Rule) -> onnx.ModelProto:
    """The graph of one candidate form."""
    op = Builder([helper.make_opsetid("", 18)], 10)
    y, dy = (op.input(name, SHAPE, TensorProto.FLOAT) for name in ("y", "dy"))
    return candidate_model([y, dy], [rule(op, y, dy)])


def main() -> None:
    """Time the candidates in turn and print the medians."""
    rng = np.random.default_rng(0)
    y = np.maximum(rng.standard_normal(SHAPE, dtype=np.float32), 0)
    feeds = {"y": y, "dy": rng.standard_normal(SHAPE, dtype=np.float32)}
    middles = median_seconds({n: model_of(rule) for n, rule in CANDIDATES.items()}, feeds)
    floor = middles["multiply alone (floor)"]
    for name, middle in middles.items():
        print(f"{name:40} {middle * 1e3:7.2f} ms  {middle / floor:5.2f} x")


if __name__ == "__main__":
    main()
