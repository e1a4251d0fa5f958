"""Test cases of normalization and regularization that cover all branches of the gradient rules."""

from __future__ import annotations

import numpy as np

from gradient_check import Case

CHANNELS = {"scale": (3,), "b": (3,)}
STATISTICS = {"mean": (3,), "var": (3,)}
POSITIVE = {"low": 0.2, "high": 2.0}
AXES = ((2, 3, 4), -1), ((2, 3, 4), 1), ((3, 2, 2, 2), -2)

CASES = [
    Case("Dropout", {"x": (2, 3)}, fixed={"ratio": np.array(0.5)}, name="inference"),
    *(
        Case(
            "BatchNormalization",
            {"x": shape, **CHANNELS, **STATISTICS},
            opset=opset,
            exact_opset=max(opset, 15),  # onnx 1.23.2 evaluates version 9 in training form
            **POSITIVE,
        )
        for shape in ((4, 3, 2, 2), (5, 3), (2, 3, 4))
        for opset in (13, 14, 21)
    ),
    *(
        Case(
            "BatchNormalization",
            {"x": shape, **CHANNELS, **STATISTICS},
            {"training_mode": 1, "momentum": momentum, "epsilon": 1e-3},
            outputs=3,
            opset=opset,
            name=f"training_{momentum}_{len(shape)}d",
            **POSITIVE,
        )
        for shape, momentum, opset in (
            ((4, 3, 2, 2), 0.9, 14),
            ((4, 3, 2, 2), 0.0, 21),
            ((5, 3), 0.5, 17),
        )
    ),
    *(
        Case(
            "LayerNormalization",
            {"x": shape, "scale": shape[axis:], "b": shape[axis:]},
            {"axis": axis},
            outputs=outputs,
            opset=opset,
            name=f"axis{axis}_outputs{outputs}",
        )
        for shape, axis in AXES
        for outputs, opset in ((1, 17), (3, 21))
    ),
    Case("LayerNormalization", {"x": (2, 5), "scale": (5,)}, name="without_bias"),
    Case("LayerNormalization", {"x": (4, 3, 2), "scale": (3, 1), "b": ()}, {"axis": 1}, name="one"),
    *(
        Case("RMSNormalization", {"x": s, "scale": s[axis:]}, {"axis": axis}, opset=23, name=str(s))
        for s, axis in AXES
    ),
    *(
        Case("InstanceNormalization", {"x": shape, **CHANNELS}, opset=opset)
        for shape, opset in (((2, 3, 2, 3), 17), ((2, 3, 4), 22))
    ),
    # onnx 1.23.2 sums LRN over as many channels as there are examples, so both are equal here.
    *(
        Case("LRN", {"x": shape}, {"size": size, "alpha": 0.3, "bias": 0.7}, opset=opset)
        for shape, size, opset in (((5, 5, 2, 1), 3, 13), ((3, 3, 1, 2), 5, 21))
    ),
]
