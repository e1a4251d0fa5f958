"""Gradient of Resize.

Resize is linear in every mode, and works on each axis separately. Instead of a rule for each mode,
the operator itself is applied to unit vectors. The result is the matrix of the resize along an
axis, which the runtime computes once as a constant.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from onnx import helper

from onnxstep.axes import cut_along, matmul_along_axis
from onnxstep.builder import Builder, Value
from onnxstep.errors import ModelError
from onnxstep.registry import Cotangents, Node, gradient, refused

_ROI, _SCALES, _SIZES = 1, 2, 3
# Axes of an image [1, 1, rows, columns] whose rows are the unit vectors.
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
    """Gradient of Y = M₁ M₂ … X: apply the transpose of the matrix Mᵢ of each resized axis."""
    if node.wants(_ROI) or node.wants(_SCALES):
        raise ModelError(f"{node.label}: expected no gradients of roi and scales")
    _demand_exact_scale(node)
    factors = _repeats(node)
    if factors is not None:
        # The sum over each block of copies; pooling is the fastest form.
        mean = op.AveragePool(dy, kernel_shape=factors, strides=factors)
        return mean * float(math.prod(factors))
    for axis in sorted(_resized(node), key=lambda axis: node.x.shape[axis] / dy.shape[axis]):
        dy = matmul_along_axis(_interpolation(op, node, axis), dy, axis)
    return dy


def _demand_exact_scale(node: Node) -> None:
    """Raise ModelError if keeping the aspect ratio rounds a length.

    The output's shape then does not determine the common scale.
    """
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


def _repeats(node: Node) -> list[int] | None:
    """Factors by which Resize repeats elements along the spatial axes; None for all other cases."""
    mode = (node.attribute("coordinate_transformation_mode"), node.attribute("nearest_mode"))
    into, out = node.x.shape, node.y.shape
    is_image = 3 <= len(into) <= 5 and into[:2] == out[:2]
    whole = all(b % a == 0 for a, b in zip(into, out, strict=True)) and not _scales_are_fed(node)
    if node.attribute("mode") != "nearest" or mode not in _REPEATING or not (is_image and whole):
        return None
    scales = _by_axis(node, _SCALES, "scales")
    factors = [b // a for a, b in zip(into, out, strict=True)]
    return factors[2:] if all(scales.get(axis, f) == f for axis, f in enumerate(factors)) else None


def _resized(node: Node) -> list[int]:
    """Axes that Resize changes, or may change because the scales are computed at run time."""
    into, out = node.x.shape, node.y.shape
    scales = _by_axis(node, _SCALES, "scales")
    crops = node.attribute("coordinate_transformation_mode") == "tf_crop_and_resize"
    fed = _scales_are_fed(node)
    return [
        axis
        for axis in range(len(into))
        if into[axis] != out[axis]
        or scales.get(axis, 1.0) != 1.0
        or ((crops or (fed and into[axis] > 1)) and axis in _axes(node))
    ]


def _interpolation(op: Builder, node: Node, axis: int) -> Value:
    """The matrix [length, output length] of the resize along an axis: the resized unit vectors."""
    length, out = node.x.shape[axis], node.y.shape[axis]
    unit = op.EyeLike(op.zeros([length, length], node.x.elem_type))
    image = op.Reshape(unit, op.integers(1, 1, length, length))
    scales, region = _by_axis(node, _SCALES, "scales"), _region(op, node, axis)
    inputs: list[Value | None] = [image, region]
    if scales:
        inputs += [op.constant(np.array([1, 1, 1, scales[axis]], np.float32))]
    elif _scales_are_fed(node):
        columns = op.constant(np.ones(_COLUMNS, np.float32))
        inputs += [op.Concat(columns, _element(node, _SCALES, _axes(node).index(axis)), axis=0)]
    else:
        inputs += [None, op.integers(1, 1, length, out)]
    names = [value.name if value else "" for value in inputs]
    proto = helper.make_node("Resize", names, [], **_linear_attributes(node))
    resized = op.emit_shaped(image, (1, 1, length, out), proto)
    return op.Reshape(resized, op.integers(length, out))


def _element(node: Node, index: int, place: int) -> Value:
    """The element at ``place`` of an input vector, which may be computed at run time."""
    return cut_along(node.input(index), 0, place, place + 1)


def _scales_are_fed(node: Node) -> bool:
    scales = node.optional_input(_SCALES)
    return scales is not None and scales.size > 0 and node.op.array_of(scales) is None


def _linear_attributes(node: Node) -> dict[str, Any]:
    """The node's attributes for resizing the unit vectors, without those of axes and fill value."""
    left_out = {"axes", "extrapolation_value", "keep_aspect_ratio_policy"}
    return {
        entry.name: helper.get_attribute_value(entry)
        for entry in node.proto.attribute
        if entry.name not in left_out
    }


def _region(op: Builder, node: Node, axis: int) -> Value | None:
    """The region of interest for resizing the unit vectors along an axis; None if not cropped."""
    if node.attribute("coordinate_transformation_mode") != "tf_crop_and_resize":
        return None
    roi = node.optional_input(_ROI)
    if roi is None:
        return None
    place, count = _axes(node).index(axis), roi.size // 2
    rows = [op.constant(np.full(_COLUMNS, end, roi.dtype)) for end in (0, 1)]
    begin, end = (_element(node, _ROI, at) for at in (place, count + place))
    return op.Concat(rows[0], begin, rows[1], end, axis=0)


def _axes(node: Node) -> list[int]:
    rank = node.x.rank
    return [axis % rank for axis in node.attribute("axes") or range(rank)]


def _by_axis(node: Node, index: int, subject: str) -> dict[int, float]:
    """Numbers of an input that has one for each axis, by axis; empty if the input is omitted.

    Sizes that are computed at run time are taken from the output's shape.
    """
    value = node.optional_input(index)
    if index == _SIZES and value is not None and node.op.array_of(value) is None:
        return {axis: float(node.y.shape[axis]) for axis in _axes(node)}
    numbers = None if _scales_are_fed(node) else node.constant(index, subject)
    if numbers is None or not numbers.size:
        return {}
    return dict(zip(_axes(node), map(float, numbers), strict=True))


refused(
    "RoiAlign",
    versions=(10, 16, 22),
    reason="its samples lie between elements, in boxes that a detector computes",
)
