"""Test cases of convolution that cover all branches of the gradient rules."""

from __future__ import annotations

from gradient_check import Case

CASES = [
    Case("Conv", {"x": (2, 3, 5, 6), "w": (4, 3, 3, 2), "b": (4,)}),
    Case("Conv", {"x": (2, 4, 7), "w": (6, 2, 3)}, {"group": 2, "strides": [2]}, name="1d_groups"),
    Case("Conv", {"x": (2, 3, 7), "w": (2, 3, 3)}, {"strides": [3]}, opset=13, name="1d_left_over"),
    Case(
        "Conv",
        {"x": (1, 2, 9, 8), "w": (3, 2, 3, 2)},
        {"strides": [2, 3], "dilations": [2, 1], "pads": [1, 0, 2, 1]},
        name="strides_dilations_uneven_pads",
    ),
    *(
        Case(
            "Conv",
            {"x": (1, 2, 6, 5), "w": (2, 2, 3, 2), "b": (2,)},
            {"auto_pad": pad, "strides": [2, 2]},
            name=pad,
        )
        for pad in ("SAME_UPPER", "SAME_LOWER", "VALID")
    ),
    Case("Conv", {"x": (1, 2, 4, 3, 4), "w": (2, 2, 2, 2, 2)}, name="3d"),
    Case(
        "Conv",
        {"x": (1, 4, 4, 5, 4), "w": (4, 2, 2, 2, 3)},
        {"group": 2, "strides": [2, 1, 2], "pads": [0, 1, 0, 1, 1, 1]},
        name="3d_groups_strides_pads",
    ),
    Case("Conv", {"x": (2, 3, 5, 5), "w": (3, 1, 3, 3)}, {"group": 3}, name="depthwise"),
    Case("Conv", {"x": (2, 3, 5, 5), "w": (6, 1, 3, 3)}, {"group": 3}, name="depthwise_twice"),
    Case("Conv", {"x": (2, 3, 4, 4), "w": (2, 3, 1, 1)}, name="pointwise"),
    # Kernels that are too large for patches by one-hot kernels.
    Case("Conv", {"x": (2, 1, 600), "w": (2, 1, 520)}, {"strides": [9]}, name="long_kernel"),
    Case(
        "Conv",
        {"x": (2, 4, 27, 25), "w": (6, 2, 17, 16)},
        {"group": 2, "strides": [2, 3], "dilations": [1, 1], "pads": [1, 0, 0, 2]},
        name="large_kernel",
    ),
    Case(
        "Conv",
        {"x": (1, 2, 37, 35), "w": (2, 1, 20, 19)},
        {"group": 2, "dilations": [1, 2], "strides": [3, 1], "pads": [0, 3, 2, 0]},
        name="large_dilated_kernel",
    ),
    Case("ConvTranspose", {"x": (2, 3, 4, 3), "w": (3, 2, 3, 2), "b": (2,)}),
    Case("ConvTranspose", {"x": (2, 3, 4), "w": (3, 2, 3)}, {"strides": [2]}, opset=13, name="1d"),
    Case(
        "ConvTranspose",
        {"x": (2, 4, 3, 3), "w": (4, 2, 2, 3), "b": (4,)},
        {"group": 2, "strides": [2, 3], "pads": [1, 0, 0, 2]},
        name="groups_uneven_pads",
    ),
    Case(
        "ConvTranspose",
        {"x": (1, 2, 3, 4), "w": (2, 2, 3, 2)},
        {"strides": [2, 3], "dilations": [2, 1], "output_padding": [1, 2]},
        name="dilations_output_padding",
    ),
    Case(
        "ConvTranspose",
        {"x": (1, 2, 3, 3), "w": (2, 2, 2, 2)},
        {"dilations": [3, 2], "output_padding": [2, 1]},
        name="output_padding_above_the_stride",
        runtime_flaw="ONNX Runtime 1.31 refuses it",
    ),
    Case("ConvTranspose", {"x": (1, 2, 2, 3, 2), "w": (2, 2, 2, 2, 2)}, opset=22, name="3d"),
    *(
        Case(
            "ConvTranspose",
            {"x": (1, 2, 4, 3), "w": (2, 2, 3, 3), "b": (2,)},
            {"auto_pad": pad, "strides": [2, 2]},
            name=pad,
        )
        for pad in ("SAME_UPPER", "SAME_LOWER", "VALID")
    ),
    *(
        Case(
            "ConvTranspose",
            {"x": (1, 2, 3, 3), "w": (2, 2, 3, 3)},
            {"strides": [3, 2], "output_shape": shape, **more},
            name=f"output_shape_{'_'.join(map(str, shape))}_{len(more)}",
        )
        for shape, more in (
            ([8, 6], {}),
            ([8, 6], {"auto_pad": "SAME_UPPER"}),
            ([9, 7], {"output_padding": [1, 1]}),
        )
    ),
    Case("ConvTranspose", {"x": (2, 3, 3, 3), "w": (3, 1, 2, 2)}, {"group": 3}, name="depthwise"),
    Case(
        "ConvTranspose",
        {"x": (2, 4, 3), "w": (4, 2, 2)},
        {"group": 2, "strides": [2]},
        name="1d_groups",
    ),
]
