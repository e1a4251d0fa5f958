"""Test cases of Resize that cover all branches of the gradient rules."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from gradient_check import Case, ints

IMAGE = (2, 2, 3, 4)


def _resize_case(
    name: str,
    shape: tuple[int, ...] = IMAGE,
    *,
    scales: Sequence[float] = (),
    sizes: Sequence[int] = (),
    opset: int = 19,
    **attributes: Any,
) -> Case:
    # ONNX requires scales in float32.
    key, target = ("scales", np.array(scales, np.float32)) if scales else ("sizes", ints(*sizes))
    inputs = ("x", "", "scales") if scales else ("x", "", "", "sizes")
    return Case("Resize", {"x": shape}, attributes, {key: target}, inputs, name=name, opset=opset)


TRANSFORMATIONS = ("half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel")
CASES = [
    *(
        _resize_case(
            f"{mode}_{how}_{size[0]}x{size[1]}",
            sizes=(2, 2, *size),
            mode=mode,
            coordinate_transformation_mode=how,
        )
        for mode, how, size in itertools.product(
            ("nearest", "linear"), TRANSFORMATIONS, [(5, 7), (2, 3)]
        )
    ),
    *(
        _resize_case(
            f"twice_{how}_{nearest}",
            scales=(1, 1, 2, 3),
            coordinate_transformation_mode=how,
            nearest_mode=nearest,
        )
        for how, nearest in [
            ("asymmetric", "floor"),
            ("asymmetric", "ceil"),
            ("half_pixel", "round_prefer_floor"),
            ("half_pixel", "round_prefer_ceil"),
            ("pytorch_half_pixel", "round_prefer_floor"),
        ]
    ),
    _resize_case(
        "half_pixel_symmetric",
        sizes=(2, 2, 5, 3),
        mode="linear",
        coordinate_transformation_mode="half_pixel_symmetric",
    ),
    _resize_case("scales", scales=(1, 1, 1.6, 0.7), mode="linear"),
    _resize_case("scales_17", scales=(1, 1, 1.6, 2.5), mode="linear", opset=17),
    _resize_case("scales_13", scales=(1, 1, 2, 2), opset=13),
    _resize_case("1d", (2, 3, 5), scales=(1, 1, 2), mode="linear"),
    _resize_case("3d", (1, 2, 2, 3, 2), sizes=(1, 2, 3, 5, 4), mode="linear"),
    _resize_case(
        "3d_twice",
        (1, 2, 2, 3, 2),
        scales=(1, 1, 2, 2, 2),
        nearest_mode="floor",
        coordinate_transformation_mode="asymmetric",
    ),
    _resize_case("matrix", (3, 4), sizes=(5, 6), mode="linear"),
    _resize_case("channels", (2, 4, 3, 2), sizes=(2, 2, 3, 2)),
    _resize_case("axes", scales=(2.5, 1.5), axes=[2, 3], mode="linear"),
    _resize_case("axes_reversed", sizes=(6, 5), axes=[3, 2]),
    _resize_case("cubic", sizes=(2, 2, 5, 7), mode="cubic"),
    _resize_case("cubic_exclude_outside", sizes=(2, 2, 5, 7), mode="cubic", exclude_outside=1),
    _resize_case("antialias", (1, 1, 6, 8), sizes=(1, 1, 3, 5), mode="linear", antialias=1),
    _resize_case("antialias_cubic", (1, 1, 6, 8), sizes=(1, 1, 3, 5), mode="cubic", antialias=1),
]
