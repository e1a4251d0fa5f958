"""Convolution in ONNX Runtime's blocked layout (NCHWc), for weights that change at every step.

ONNX Runtime itself uses this layout only for constant weights. A block has 8 channels with AVX2 and
16 with AVX-512. benchmarks/rules/convolution.py measures which convolutions become faster.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from onnx import TensorProto, helper

from onnxstep.axes import cut_along, pad
from onnxstep.builder import Builder, Value
from onnxstep.registry import Node
from onnxstep.windows import Window, window

DOMAIN = "com.microsoft.nchwc"
_VERSION = 1
# The largest block of any processor; all other block sizes divide it.
BLOCK = 16
_PLANES = 2


def has_kernels(op: Builder, *tensors: Value) -> bool:
    """Whether ``op`` allows blocked convolutions and all ``tensors`` are float32 of rank 4."""
    return op.blocked_convolutions and all(
        t.rank == _PLANES + 2 and t.elem_type == TensorProto.FLOAT for t in tensors
    )


def convolve(
    x: Value, w: Value, view: Window, group: int = 1, bias: Value | None = None
) -> Value | None:
    """Convolve x [N, C, H, W] with w [M, C / group, kh, kw] and add the bias [M].

    Returns None if ``has_kernels`` is False, if padding is negative, or if C or M is not a multiple
    of ``BLOCK``. Grouped convolutions that are not depthwise also yield None, as does any
    convolution for which a matrix product is faster.
    """
    fills_blocks = x.shape[1] % BLOCK == 0 and w.shape[0] % BLOCK == 0
    is_depthwise = group == x.shape[1] == w.shape[0]
    fits = x.shape[1] == group * w.shape[1] and (group == 1 or is_depthwise)
    crops = min(view.pads, default=0) < 0
    # A matrix product is faster for kernels of one element, and for depthwise kernels that are as
    # large as the image.
    covers_image = group > 1 and view.kernel == x.shape[2:]
    is_product = covers_image or math.prod(view.kernel) == 1
    if crops or is_product or not (has_kernels(x.op, x, w) and fills_blocks and fits):
        return None
    return _convolved(x, w, view, group, bias)


def adjoint(
    dy: Value, w: Value, view: Window, into: tuple[int, ...], group: int = 1
) -> Value | None:
    """Emit the gradient [N, C, *into] of a convolution's input; ``dy`` [N, M, ...] is the result's.

    Returns None if a stride is not 1, or in the cases in which ``convolve`` returns None.
    """
    if not has_kernels(w.op, dy, w) or any(stride != 1 for stride in view.strides):
        return None
    fitted = view.fitted(into, dy.shape[2:])
    reach = [fitted.extent(axis) - 1 for axis in range(len(into))]
    begins = tuple(r - pad for r, pad in zip(reach, fitted.begins, strict=True))
    ends = tuple(r - pad for r, pad in zip(reach, fitted.ends, strict=True))
    padded = replace(view, begins=begins, ends=ends)
    kernels = w if group > 1 else w.op.Transpose(w, perm=[1, 0, 2, 3])
    return convolve(dy, _flipped_kernels(kernels), padded, group)


def _flipped_kernels(w: Value) -> Value:
    # A matrix product is five times as fast as a Slice.
    reversal = np.eye(math.prod(w.shape[2:]), dtype=np.float32)[::-1]
    rows = w.reshape(-1, len(reversal))
    return w.op.MatMul(rows, w.op.constant(reversal)).reshape(*w.shape)


def weight_cotangent(x: Value, dy: Value, view: Window, group: int = 1) -> Value | None:
    """Gradient [M, C / group, kh, kw] of the weights, for x [N, C, ...] and ``dy`` [N, M, ...].

    It is a convolution of x with ``dy`` as kernels, whose strides are the dilations of ``view`` and
    vice versa. Returns None if the blocked layout cannot be used, or if kh = kw = 1.
    """
    if not has_kernels(x.op, x, dy) or math.prod(view.kernel) == 1:
        return None
    if group == 1:
        return _weight_gradient_by_images(x, dy, view)
    return _depthwise_weight_gradient(x, dy, view, group)


def _depthwise_weight_gradient(x: Value, dy: Value, view: Window, group: int) -> Value | None:
    """Weight gradient; None if not depthwise, or if N · C is not a multiple of ``BLOCK``."""
    op, (batch, channels) = x.op, x.shape[:2]
    if group != channels or channels != dy.shape[1] or batch * channels % BLOCK:
        return None
    fitted = view.fitted(x.shape[2:], dy.shape[2:])
    images = pad(x, (0, 0, *fitted.begins), (0, 0, *fitted.ends))
    images = images.reshape(1, batch * channels, *images.shape[2:])
    kernels = dy.reshape(batch * channels, 1, *dy.shape[2:])
    exchanged = Window(dy.shape[2:], view.dilations, view.strides, (0, 0), (0, 0))
    products = _convolved(images, kernels, exchanged, batch * channels)
    each = products.reshape(batch, channels, 1, *view.kernel)
    return op.ReduceSum(each, op.integers(0), keepdims=0)


def _weight_gradient_by_images(x: Value, dy: Value, view: Window) -> Value | None:
    """Weight gradient of an ungrouped convolution, with the images in place of the input channels.

    If the number of images is not a multiple of ``BLOCK``, bands of rows of each image count as
    images. Returns None if ``dy`` has fewer rows than bands are needed, or if the number of its
    channels is not a multiple of ``BLOCK``.
    """
    if dy.shape[1] % BLOCK:
        return None
    bands = BLOCK // math.gcd(BLOCK, dy.shape[0])
    if bands > dy.shape[2]:
        return None
    op, height = x.op, -(-dy.shape[2] // bands)
    fitted = view.fitted(x.shape[2:], (height * bands, dy.shape[3]))
    images = op.Transpose(pad(x, (0, 0, *fitted.begins), (0, 0, *fitted.ends)), perm=[1, 0, 2, 3])
    kernels = op.Transpose(dy, perm=[1, 0, 2, 3])
    kernels = pad(kernels, (0, 0, 0, 0), (0, 0, height * bands - dy.shape[2], 0))
    rows = (height - 1) * view.strides[0] + view.extent(0)
    x_bands = [(height * band * view.strides[0], rows) for band in range(bands)]
    dy_bands = [(height * band, height) for band in range(bands)]
    exchanged = Window((height, dy.shape[3]), view.dilations, view.strides, (0, 0), (0, 0))
    dw = _convolved(_cut_into_bands(images, x_bands), _cut_into_bands(kernels, dy_bands), exchanged)
    return op.Transpose(dw, perm=[1, 0, 2, 3])


def _cut_into_bands(x: Value, bands: Sequence[tuple[int, int]]) -> Value:
    """Cut bands (first row, row count) out of x [C, N, H, W]; return [C, bands · N, rows, W]."""
    parts = [cut_along(x, 2, start, start + rows) for start, rows in bands]
    return parts[0] if len(parts) == 1 else x.op.Concat(*parts, axis=1)


def _convolved(
    x: Value, w: Value, view: Window, group: int = 1, bias: Value | None = None
) -> Value:
    out = [
        (length + before + after - view.extent(axis)) // view.strides[axis] + 1
        for axis, (length, before, after) in enumerate(
            zip(x.shape[2:], view.begins, view.ends, strict=True)
        )
    ]
    shape = (x.shape[0], w.shape[0], *out)
    inputs = [_in_blocks(x), _weights_in_blocks(w, is_depthwise=group > 1)]
    inputs += [] if bias is None else [bias]
    groups = {"group": group} if group > 1 else {}
    y = _append_blocked_node("Conv", inputs, shape, view.attributes | groups)
    return _append_blocked_node("ReorderOutput", [y], shape, {"channels": shape[1]})


def _in_blocks(x: Value) -> Value:
    return _append_blocked_node("ReorderInput", [x], x.shape)


def _weights_in_blocks(w: Value, *, is_depthwise: bool) -> Value:
    """Order weights [M, C, h, w] as [M / b, C / b, h, w, b, b], depthwise ones as [M / b, h, w, b].

    The last axis has the b output channels of a block, the axis before it the input channels.
    """
    inner = w if is_depthwise else _in_blocks(w)
    flat = inner.reshape(1, w.shape[0], w.size // w.shape[0], 1)
    return _in_blocks(flat).reshape(*w.shape)


def _append_blocked_node(
    op_type: str,
    inputs: Sequence[Value],
    shape: Sequence[int],
    attributes: Mapping[str, Any] | None = None,
) -> Value:
    """Append a node of the blocked layout; ``shape`` is its output's shape in the plain layout."""
    op = inputs[0].op
    if all(entry.domain != DOMAIN for entry in op.opset_imports):
        op.opset_imports.append(helper.make_opsetid(DOMAIN, _VERSION))
    names = [value.name for value in inputs]
    node = helper.make_node(op_type, names, [], domain=DOMAIN, **(attributes or {}))
    return op.emit_shaped(inputs[0], shape, node)


def forward(node: Node) -> Sequence[Value]:
    """The result of a Conv node in the blocked layout; empty if ``convolve`` returns None."""
    x, w = node.input(0), node.input(1)
    group = node.attribute("group", 1)
    y = convolve(x, w, window(node, w.shape[2:]), group, node.optional_input(2))
    return () if y is None else (y,)
