"""Gradients of Resize, of affine grids, and of sampling images between their elements.

Resize is linear in every mode, and works on each axis separately. Instead of a rule for each mode,
the operator itself is applied to unit vectors. The result is the matrix of the resize along an
axis, which the runtime computes once as a constant.
"""

from __future__ import annotations

import functools
import itertools
import math
import operator
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from onnx import TensorProto, helper

from onnxstep.axes import cut_along, matmul_along_axis
from onnxstep.builder import Builder, Value
from onnxstep.cotangent_sums import scatter_rows
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


# By mode: offset of the first element from the coordinate's floor, and each element's weight as a
# polynomial of the fraction, lowest power first. Cubic: Keys' kernel with a = -0.75.
_LINEAR = (0, ((1.0, -1.0), (0.0, 1.0)))
_CUBIC = (
    -1,
    (
        (0.0, -0.75, 1.5, -0.75),
        (1.0, 0.0, -2.25, 1.25),
        (0.0, 0.75, 1.5, -1.25),
        (0.0, 0.0, -0.75, 0.75),
    ),
)
_KERNELS = {"linear": _LINEAR, "bilinear": _LINEAR, "cubic": _CUBIC, "bicubic": _CUBIC}
_NEAREST = (0, ((1.0,),))

refused(
    "RoiAlign",
    versions=(10, 16, 22),
    reason="its samples lie between elements, in boxes that a detector computes",
)


@gradient("AffineGrid", versions=(20,))
def affine_grid(op: Builder, node: Node, dy: Value) -> Cotangents:
    """Gradient of y = θ [p, 1] at each position p: dθ = Σ dy [p, 1]ᵀ.

    The positions are the grid of the identity, θ = [I, 0].
    """
    theta, rank = node.x, dy.shape[-1]
    size = node.constant(1, "size")
    assert size is not None
    identity = op.constant(np.eye(rank, rank + 1, dtype=theta.dtype)[np.newaxis])
    image = op.integers(1, *(int(length) for length in size[1:]))
    places = op.AffineGrid(identity, image, align_corners=node.attribute("align_corners"))
    count = math.prod(dy.shape[1:-1])
    positions = op.Reshape(places, op.integers(count, rank))
    rows = op.Transpose(op.Reshape(dy, op.integers(dy.shape[0], count, rank)), perm=[0, 2, 1])
    return op.Concat(
        op.MatMul(rows, positions), op.reduce("ReduceSum", rows, [2], keepdims=True), axis=2
    )


@dataclass(frozen=True)
class _Tap:
    """Elements along one axis, one for each sampled point; all values are [N, points].

    ``place`` is the element's index (int64), ``weight`` its weight in the sample, and ``slope`` the
    derivative of the weight by the point's coordinate.
    """

    place: Value
    weight: Value
    slope: Value


@dataclass(frozen=True)
class _Axis:
    """A spatial axis of GridSample: length, coordinate convention and padding mode.

    Padding applies to the index of each element, not to the coordinates, as in PyTorch and ONNX
    Runtime.
    """

    length: int
    align_corners: bool
    padding: str

    @property
    def scale(self) -> float:
        """Number of elements per unit of the grid, which spans -1 to 1."""
        return (self.length - self.align_corners) / 2

    @property
    def low(self) -> float:
        """Lower end of the axis, at which reflection turns; the upper end is low + 2 · scale."""
        return 0.0 if self.align_corners else -0.5

    def coordinate(self, points: Value) -> Value:
        return (points + 1.0) * self.scale + self.low

    def element(self, at: Value) -> tuple[Value, Value | None]:
        """Indices (int64) of the elements at whole coordinates ``at``.

        With zero padding also a mask of the coordinates inside the image, else None.
        """
        op = at.op
        at = self._reflected(at) if self.padding == "reflection" and self.scale else at
        low, high = (op.scalar(end, at.elem_type) for end in (0.0, self.length - 1.0))
        clipped = op.Clip(at, low, high)
        exists = None
        if self.padding == "zeros":
            exists = op.Cast(op.Equal(at, clipped), to=at.elem_type)
        return op.Cast(clipped, to=TensorProto.INT64), exists

    def _reflected(self, at: Value) -> Value:
        """Reflect coordinates at the ends of the axis until they lie inside.

        This is a triangle wave: low + span - |r - span|, where r is the remainder of at - low by 2
        · span.
        """
        span, from_low = 2 * self.scale, at - self.low
        rest = from_low - at.op.Floor(from_low / (2 * span)) * (2 * span)
        return (self.low + span) - at.op.Abs(rest - span)


@gradient("GridSample", versions=(16, 20, 22))
def grid_sample(op: Builder, node: Node, dy: Value) -> Cotangents:
    """Gradient of y = Σ w x over the elements around each point; w is a product of axis weights.

    Shapes: x [N, C, ...], grid [N, ..., axes], whose last axis has the coordinates from the last
    axis of x to the first. Each element that was read gets w dy, and the grid gets Σ dw (x · dy),
    with a product over the channels.
    """
    x, grid = node.input(0), node.input(1)
    batch, channels, *space = x.shape
    count = math.prod(grid.shape[1:-1])
    flat = op.Reshape(grid, op.integers(batch, count, len(space)))
    flat = flat.cast(x.elem_type)
    rows = op.Transpose(op.Reshape(dy, op.integers(batch, channels, count)), perm=[0, 2, 1])
    taps = []
    for number, length in enumerate(space):
        column = cut_along(flat, 2, len(space) - 1 - number, len(space) - number)
        axis = _Axis(length, bool(node.attribute("align_corners")), node.attribute("padding_mode"))
        taps.append(_taps(node, axis, op.Reshape(column, op.integers(batch, count))))
    corners = [(_place(op, corner, x.shape), corner) for corner in itertools.product(*taps)]
    return (
        _added_back(op, corners, rows, x.shape) if node.wants(0) else None,
        _moved(node, corners, rows) if node.wants(1) else None,
    )


def _taps(node: Node, axis: _Axis, points: Value) -> list[_Tap]:
    op, mode = node.op, node.attribute("mode")
    if mode != "nearest" and mode not in _KERNELS:
        raise ModelError(f"{node.label}: mode {mode!r} is unknown")
    first, kernel = _KERNELS.get(mode, _NEAREST)
    at = axis.coordinate(points)
    begin = op.Round(at) if mode == "nearest" else op.Floor(at)
    taps = []
    for offset, powers in enumerate(kernel, start=first):
        place, exists = axis.element(begin + float(offset))
        weight = _polynomial(at - begin, powers)
        slope = _polynomial(at - begin, [n * p for n, p in enumerate(powers)][1:] or [0.0])
        if exists is not None:
            weight, slope = weight * exists, slope * exists
        taps.append(_Tap(place, weight, slope * axis.scale))
    return taps


def _polynomial(t: Value, powers: Sequence[float]) -> Value:
    """Polynomial of t by Horner's rule; a constant polynomial also gets the shape of t."""
    value = t * 0.0 + powers[-1]
    for factor in powers[-2::-1]:
        value = value * t + factor
    return value


Corner = tuple[Value, tuple[_Tap, ...]]


def _place(op: Builder, corner: Sequence[_Tap], shape: tuple[int, ...]) -> Value:
    """Index of the row of each corner in the table [N · elements, C]."""
    batch, _, *space = shape
    images = op.constant(np.arange(batch, dtype=np.int64).reshape(batch, 1) * math.prod(space))
    steps = [math.prod(space[axis + 1 :]) for axis in range(len(space))]
    rows = (tap.place * op.integers(step) for tap, step in zip(corner, steps, strict=True))
    return functools.reduce(operator.add, rows, images)


def _added_back(
    op: Builder, corners: Sequence[Corner], rows: Value, shape: tuple[int, ...]
) -> Value:
    batch, channels, *space = shape
    places = op.Concat(*(place for place, _ in corners), axis=1)
    shares = [rows * op.Unsqueeze(_product(corner), op.integers(2)) for _, corner in corners]
    table = (batch * math.prod(space), channels)
    summed = scatter_rows(op, table, rows.elem_type, places, op.Concat(*shares, axis=1))
    images = op.Reshape(summed, op.integers(batch, math.prod(space), channels))
    return op.Reshape(op.Transpose(images, perm=[0, 2, 1]), op.integers(*shape))


def _product(corner: Sequence[_Tap], by: int | None = None) -> Value:
    """The weight of a corner, or its derivative by the point's coordinate along the axis ``by``."""
    factors = (tap.slope if axis == by else tap.weight for axis, tap in enumerate(corner))
    return functools.reduce(operator.mul, factors)


def _moved(node: Node, corners: Sequence[Corner], rows: Value) -> Value:
    """Cotangent of the grid; zeros if the samples are nearest elements."""
    op, x, grid = node.op, node.input(0), node.input(1)
    if node.attribute("mode") == "nearest":
        return op.zeros(grid.shape, grid.elem_type)
    batch, channels, *space = x.shape
    images = op.Reshape(x, op.integers(batch, channels, math.prod(space)))
    table = op.Reshape(op.Transpose(images, perm=[0, 2, 1]), op.integers(-1, channels))
    met = [
        op.reduce("ReduceSum", op.Gather(table, place) * rows, [2], keepdims=False)
        for place, _ in corners
    ]
    columns = []
    for axis in range(len(space)):
        parts = [m * _product(corner, axis) for m, (_, corner) in zip(met, corners, strict=True)]
        columns.append(op.Unsqueeze(functools.reduce(operator.add, parts), op.integers(2)))
    moved = op.Reshape(op.Concat(*columns[::-1], axis=2), op.integers(*grid.shape))
    return moved.cast(grid.elem_type)
