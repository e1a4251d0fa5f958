"""Gradient cases of quantized numbers, at least one for each form of a rule."""

from __future__ import annotations

import numpy as np

from gradient_check import Case

RNG = np.random.default_rng(0)
NUMBERS = RNG.integers(-9, 9, (2, 5, 3)).astype(np.int8)
CASES = [
    Case(
        "DequantizeLinear",
        {"scale": shape},
        attributes,
        fixed={"x": NUMBERS, "zero": RNG.integers(-3, 3, shape).astype(np.int8)},
        inputs=("x", "scale", "zero"),
        low=0.1,
        opset=opset,
        reference_flaw="it takes no doubles",
        name=name,
    )
    for name, shape, attributes, opset in (
        ("tensor", (), {}, 21),
        ("axis", (5,), {"axis": 1}, 19),
        ("negative_axis", (3,), {"axis": -1}, 21),
        ("blocks", (2, 3, 3), {"axis": 1, "block_size": 2}, 21),
    )
]
