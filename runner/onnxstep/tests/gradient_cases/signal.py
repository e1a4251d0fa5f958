"""Gradient cases of signal processing, at least one for each form of a rule."""

from __future__ import annotations

import numpy as np

from gradient_check import Case, ints

LENGTH = {"n": np.array(6, dtype=np.int64)}
ODD = {"n": np.array(7, dtype=np.int64)}
CASES = [
    *(
        Case(
            "DFT",
            {"x": (2, 5, parts)},
            {"inverse": inverse, "onesided": onesided, "axis": 1},
            name=f"{parts}_inverse{inverse}_onesided{onesided}",
            opset=17,
        )
        for parts, inverse, onesided in ((1, 0, 0), (1, 0, 1), (2, 0, 0), (2, 1, 0), (2, 1, 1))
    ),
    Case("DFT", {"x": (2, 5, 2)}, fixed=LENGTH, name="padded"),
    Case("DFT", {"x": (2, 4, 2)}, {"inverse": 1, "onesided": 1}, fixed=ODD, name="odd_inverse"),
    Case("DFT", {"x": (2, 7, 1)}, {"onesided": 1}, fixed=LENGTH, name="cut"),
    Case(
        "DFT",
        {"x": (3, 2, 4, 2)},
        {"inverse": 1},
        fixed={"axis": np.array(-4, dtype=np.int64)},
        inputs=("x", "", "axis"),
        name="axis",
    ),
    Case(
        "Col2Im", {"x": (2, 12, 6)}, fixed={"image": ints(3, 4), "block": ints(2, 2)}, name="plain"
    ),
    Case(
        "Col2Im",
        {"x": (1, 8, 6)},
        {"strides": [2, 1], "dilations": [1, 2], "pads": [1, 0, 0, 1]},
        fixed={"image": ints(4, 4), "block": ints(2, 2)},
        name="strides_dilations_pads",
    ),
    Case("Col2Im", {"x": (1, 4, 5)}, fixed={"image": ints(6), "block": ints(2)}, name="1d"),
]
