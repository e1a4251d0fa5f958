"""Resize: linear, and separable into its axes, in every mode.

Instead of writing down each combination of modes, the operator is asked what it makes of unit
vectors: the answer is its matrix, which a runtime computes once as it folds constants.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from onnx import helper

from epochcost.autodiff.axes import along_axis
from epochcost.autodiff.builder import Builder, Value
from epochcost.autodiff.node import Node
from epochcost.autodiff.registry import Cotangents, gradient
from epochcost.errors import ModelError

_ROI, _SCALES, _SIZES = 1, 2, 3
# Of an image [1, 1, rows, columns], in which the rows are the unit vectors.
_COLUMNS = 3
# Modes in which an integer factor k repeats each element k times.
_REPEATING = {
    ("asymmetric", "floor"),
    ("half_pixel", "round_prefer_floor"),
    ("half_pixel", "round_prefer_ceil"),
    ("pytorch_half_pixel", "round_prefer_floor"),
    ("pytorch_half_pixel", "round_prefer_ceil"),
}


@gradient("Resize", versions=(11, 13, 18, 19))
def resize(op: Builder, node: Node, dy: Value) -> Cotangents:
    """Y = M₁ M₂ … X with a matrix for each resized axis: apply their transposes."""
    _demand_exact_scale(node)
    factors = _repeats(node)
    if factors is not None:
        return _summed(op, dy, factors)
    for axis in sorted(_resized(node), key=lambda axis: node.x.shape[axis] / dy.shape[axis]):
        dy = along_axis(_interpolation(op, node, axis), dy, axis)
    return dy


def _demand_exact_scale(node: Node) -> None:
    """Refuse a common scale that was rounded: the output's shape does not tell it any more."""
    policy = node.attribute("keep_aspect_ratio_policy", "stretch")
    sizes = _by_axis(node, _SIZES, "sizes")
    if policy == "stretch" or not sizes:
        return
    scales = [size / node.x.shape[axis] for axis, size in sizes.items()]
    scale = min(scales) if policy == "not_larger" else max(scales)
    for axis in sizes:
        if not math.isclose(scale * node.x.shape[axis], node.y.shape[axis]):
            raise ModelError(
                f"{node.label}: keep_aspect_ratio_policy {policy!r} rounds the length of axis "
                f"{axis} to {node.y.shape[axis]}; that is not differentiated; give scales instead"
            )


def _summed(op: Builder, dy: Value, factors: list[int]) -> Value:
    """The sum over each block of copies; pooling does it fastest."""
    mean = op.AveragePool(dy, kernel_shape=factors, strides=factors)
    return mean * float(math.prod(factors))


def _repeats(node: Node) -> list[int] | None:
    """The spatial factors where each element is repeated along one to three axes, else None."""
    mode = (node.attribute("coordinate_transformation_mode"), node.attribute("nearest_mode"))
    into, out = node.x.shape, node.y.shape
    is_image = 3 <= len(into) <= 5 and into[:2] == out[:2]
    whole = all(b % a == 0 for a, b in zip(into, out, strict=True))
    if node.attribute("mode") != "nearest" or mode not in _REPEATING or not (is_image and whole):
        return None
    scales = _by_axis(node, _SCALES, "scales")
    factors = [b // a for a, b in zip(into, out, strict=True)]
    return factors[2:] if all(scales.get(axis, f) == f for axis, f in enumerate(factors)) else None


def _resized(node: Node) -> list[int]:
    """The axes along which the operator does anything."""
    into, out = node.x.shape, node.y.shape
    scales = _by_axis(node, _SCALES, "scales")
    crops = node.attribute("coordinate_transformation_mode") == "tf_crop_and_resize"
    return [
        axis
        for axis in range(len(into))
        if into[axis] != out[axis]
        or scales.get(axis, 1.0) != 1.0
        or (crops and axis in _axes(node))
    ]


def _interpolation(op: Builder, node: Node, axis: int) -> Value:
    """What the operator makes of the unit vectors along an axis: [length, length of the output]."""
    length, out = node.x.shape[axis], node.y.shape[axis]
    unit = op.EyeLike(op.zeros([length, length], node.x.elem_type))
    image = op.Reshape(unit, op.integers(1, 1, length, length))
    scales, region = _by_axis(node, _SCALES, "scales"), _region(op, node, axis)
    inputs: list[Value | None] = [image, region]
    if scales:
        inputs += [op.constant(np.array([1, 1, 1, scales[axis]], np.float32))]
    else:
        inputs += [None, op.integers(1, 1, length, out)]
    resized = op.emit("Resize", inputs, _linear_attributes(node))[0]
    return op.Reshape(resized, op.integers(length, out))


def _linear_attributes(node: Node) -> dict[str, Any]:
    """The node's attributes for an image, without the constant that is used outside of it."""
    left_out = {"axes", "extrapolation_value", "keep_aspect_ratio_policy"}
    return {
        entry.name: helper.get_attribute_value(entry)
        for entry in node.proto.attribute
        if entry.name not in left_out
    }


def _region(op: Builder, node: Node, axis: int) -> Value | None:
    """The region of interest along the columns of the image; all of its rows."""
    if node.attribute("coordinate_transformation_mode") != "tf_crop_and_resize":
        return None
    given = node.constant(_ROI, "roi")
    if given is None:
        return None
    place, count = _axes(node).index(axis), len(given) // 2
    region = np.array([0, 0, 0, 0, 1, 1, 1, 1], given.dtype)
    region[[_COLUMNS, -1]] = given[[place, count + place]]
    return op.constant(region)


def _axes(node: Node) -> list[int]:
    rank = node.x.rank
    return [axis % rank for axis in node.attribute("axes") or range(rank)]


def _by_axis(node: Node, index: int, what: str) -> dict[int, float]:
    """An input that has a number for each axis; empty where it is left out."""
    given = node.constant(index, what)
    if given is None or not given.size:
        return {}
    return dict(zip(_axes(node), map(float, given), strict=True))
