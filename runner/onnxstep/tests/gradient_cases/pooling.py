"""Test cases of pooling that cover all branches of the gradient rules."""

from __future__ import annotations

from typing import Any

from gradient_check import Case

INDICES = "onnx 1.23.2: MaxPool's Indices are wrong where windows overlap"
# Shape of x and attributes of a window, by name.
WINDOWS: dict[str, tuple[tuple[int, ...], dict[str, Any]]] = {
    "partition": ((2, 3, 6, 4), {"kernel_shape": [2, 2], "strides": [2, 2]}),
    "overlapping": ((2, 2, 5, 6), {"kernel_shape": [3, 2]}),
    "left_over": ((1, 2, 7, 5), {"kernel_shape": [2, 2], "strides": [2, 3]}),
    "padded": ((1, 2, 6, 5), {"kernel_shape": [3, 2], "strides": [2, 1], "pads": [1, 0, 1, 1]}),
    "1d_padded": ((1, 2, 7), {"kernel_shape": [3], "strides": [2], "pads": [1, 1]}),
    "3d": ((1, 2, 4, 3, 4), {"kernel_shape": [2, 2, 3], "strides": [2, 1, 1]}),
    **{
        pad: ((1, 2, 6, 5), {"kernel_shape": [3, 2], "strides": [2, 2], "auto_pad": pad})
        for pad in ("SAME_UPPER", "SAME_LOWER", "VALID")
    },
}
CEIL: dict[str, Any] = {"kernel_shape": [2, 2], "strides": [2, 2], "ceil_mode": 1}
DILATED: dict[str, Any] = {"kernel_shape": [2, 3], "dilations": [2, 1], "strides": [1, 2]}

CASES = [
    *(
        Case(
            "MaxPool",
            {"x": shape},
            window,
            opset=opset,
            name=name,
            reference_flaw=""
            if name in {"partition", "left_over", "VALID", "1d_padded"}
            else INDICES,
        )
        for name, (shape, window) in WINDOWS.items()
        if name != "SAME_LOWER"  # onnx 1.23.2 evaluates this pool in another shape than it infers.
        for opset in (13, 21)
    ),
    Case("MaxPool", {"x": (1, 2, 5, 5)}, CEIL, name="ceil"),
    *(
        Case(
            "MaxPool", {"x": (1, 2, 5, 5)}, DILATED, opset=o, name="dilated", reference_flaw=INDICES
        )
        for o in (13, 21)
    ),
    *(
        Case(
            "AveragePool",
            {"x": shape},
            {**window, "count_include_pad": count},
            opset=opset,
            name=f"{name}_{count}",
        )
        for name, (shape, window) in WINDOWS.items()
        for count, opset in ((0, 13), (1, 21))
    ),
    *(
        Case("AveragePool", {"x": (1, 2, 5, 5)}, {**CEIL, "count_include_pad": c}, name=f"ceil_{c}")
        for c in (0, 1)
    ),
    *(
        Case(
            "AveragePool",
            {"x": (1, 2, 7, 7)},
            {
                "kernel_shape": [3, 3],
                "strides": [2, 2],
                "pads": [0, 0, 1, 1],
                "ceil_mode": 1,
                "count_include_pad": count,
            },
            name=f"ceil_beyond_the_pads_{count}",
        )
        for count in (0, 1)
    ),
    Case("AveragePool", {"x": (1, 2, 5, 5)}, DILATED, opset=19, name="dilated"),
    *(
        Case(op, {"x": shape}, opset=opset)
        for op in ("GlobalAveragePool", "GlobalMaxPool")
        for shape, opset in (((2, 3, 2, 3), 13), ((2, 3, 4), 22), ((1, 2, 2, 2, 2), 21))
    ),
]
