"""Test cases of Where, Max, Min and Clip that cover all branches of the gradient rules."""

from __future__ import annotations

import numpy as np

from gradient_check import Case

CHESS = np.indices((3, 4)).sum(axis=0) % 2 == 0
CASES = [
    *(
        Case(
            "Where",
            {"a": a, "b": b},
            fixed={"c": chosen},
            inputs=("c", "a", "b"),
            name=f"{chosen.shape}_{a}_{b}",
        )
        for chosen, a, b in [
            (CHESS, (3, 4), (3, 4)),
            (CHESS, (4,), ()),
            (CHESS[:, :1], (4,), (2, 1, 1)),
            (CHESS[0], (3, 1), (3, 4)),
        ]
    ),
    *(
        Case(op, dict(zip("abc", shapes, strict=False)), opset=opset)
        for op in ("Max", "Min")
        for shapes in [((2, 3),), ((3, 4), (4,)), ((2, 1, 3), (4, 1)), ((3, 2), (3, 2), ())]
        for opset in (13, 21)
    ),
    Case("Clip", {"x": (3, 4)}, fixed={"low": np.array(-0.4), "high": np.array(0.4)}),
    Case("Clip", {"x": (3, 4)}, name="unbounded"),
    Case(
        "Clip", {"x": (3, 4)}, fixed={"high": np.array(0.4)}, inputs=("x", "", "high"), name="high"
    ),
]
