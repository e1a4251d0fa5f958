"""Gradient of Resize, which is linear in every mode and works on each axis separately.

Resize of unit vectors gives the matrix of an axis; the runtime computes it once, as a constant.
"""

from __future__ import annotations

import math

import numpy as np
from onnx import helper

from onnxstep.axes import matmul_along_axis
from onnxstep.builder import Builder, Value
from onnxstep.errors import ModelError
from onnxstep.graphs.nodes import node_attributes
from onnxstep.registry import Cotangents, Node, gradient

_ROI, _SCALES = 1, 2
_CROPS = "tf_crop_and_resize"
# Modes in which a resize by an integer factor k repeats each element k times.
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
    policy = node.attribute("keep_aspect_ratio_policy", "stretch")
    if policy != "stretch" or node.attribute("coordinate_transformation_mode") == _CROPS:
        raise ModelError(f"{node.label}: crops and kept aspect ratios are not differentiated")
    factors = _repetition_factors(node)
    if factors is not None:
        # Sum over each block of copies; pooling is the fastest way to compute this sum.
        mean = op.AveragePool(dy, kernel_shape=factors, strides=factors)
        return mean * float(math.prod(factors))
    into, out, scales = node.x.shape, node.y.shape, _scale_by_axis(node)
    resized = [a for a in range(len(into)) if into[a] != out[a] or scales.get(a, 1.0) != 1.0]
    for axis in sorted(resized, key=lambda axis: into[axis] / out[axis]):
        dy = matmul_along_axis(_resize_matrix(op, node, axis), dy, axis)
    return dy


def _repetition_factors(node: Node) -> list[int] | None:
    """Copies of each element along each spatial axis; None unless Resize only copies elements."""
    mode = (node.attribute("coordinate_transformation_mode"), node.attribute("nearest_mode"))
    into, out = node.x.shape, node.y.shape
    is_image = 3 <= len(into) <= 5 and into[:2] == out[:2]
    whole = all(b % a == 0 for a, b in zip(into, out, strict=True))
    if node.attribute("mode") != "nearest" or mode not in _REPEATING or not (is_image and whole):
        return None
    scales = _scale_by_axis(node)
    factors = [b // a for a, b in zip(into, out, strict=True)]
    return factors[2:] if all(scales.get(axis, f) == f for axis, f in enumerate(factors)) else None


def _resize_matrix(op: Builder, node: Node, axis: int) -> Value:
    """Matrix [length, output length] of Resize along an axis; its rows are resized unit vectors."""
    length, out = node.x.shape[axis], node.y.shape[axis]
    unit = op.EyeLike(op.zeros([length, length], node.x.elem_type))
    image = unit.reshape(1, 1, length, length)
    scales = _scale_by_axis(node)
    if scales:
        names = ["", op.constant(np.array([1, 1, 1, scales[axis]], np.float32)).name]
    else:
        names = ["", "", op.integers(1, 1, length, out).name]
    # The derivative of the fill value, extrapolation_value, is 0.
    left_out = {"axes", "extrapolation_value", "keep_aspect_ratio_policy"}
    written = node_attributes(node.proto)
    attributes = {name: value for name, value in written.items() if name not in left_out}
    proto = helper.make_node("Resize", [image.name, *names], [], **attributes)
    resized = op.emit_shaped(image, (1, 1, length, out), proto)
    return resized.reshape(length, out)


def _scale_by_axis(node: Node) -> dict[int, float]:
    """The scale of each axis, by axis index; empty if the node gives sizes instead of scales."""
    numbers = node.constant(_SCALES, "scales")
    if numbers is None or not numbers.size:
        return {}
    axes = [axis % node.x.rank for axis in node.attribute("axes") or range(node.x.rank)]
    return dict(zip(axes, map(float, numbers), strict=True))
