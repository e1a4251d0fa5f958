"""Sliding windows of convolution and pooling: geometry, padding and convolutions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from onnxstep.axes import pad
from onnxstep.builder import Value, require_room
from onnxstep.errors import ModelError
from onnxstep.registry import Node

# Largest number of elements of a window; a file with a larger window is damaged.
_MOST_TAPS = 2**22


@dataclass(frozen=True)
class Window:
    """A sliding window, by spatial axis; ``begins`` and ``ends`` are the padding, in elements."""

    kernel: tuple[int, ...]
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    begins: tuple[int, ...]
    ends: tuple[int, ...]

    @property
    def pads(self) -> list[int]:
        """The padding in ONNX's order: all begins, then all ends."""
        return [*self.begins, *self.ends]

    @property
    def is_partition(self) -> bool:
        """Whether the windows divide the input without overlap, gap or padding."""
        flat = not any(self.pads) and all(d == 1 for d in self.dilations)
        return flat and self.kernel == self.strides

    def extent(self, axis: int) -> int:
        """Number of elements that a window spans along ``axis``, including gaps from dilation."""
        return self.dilations[axis] * (self.kernel[axis] - 1) + 1

    def fitted(self, into: tuple[int, ...], out: tuple[int, ...]) -> Window:
        """Copy with the end padding that lets exactly ``out`` windows fit on ``into`` elements.

        The padding is negative if no window contains the last elements of an axis.
        """
        ends = (
            self.strides[i] * (out[i] - 1) + self.extent(i) - self.begins[i] - into[i]
            for i in range(len(self.kernel))
        )
        return replace(self, ends=tuple(ends))

    @property
    def attributes(self) -> dict[str, Any]:
        """Attributes for Conv, ConvTranspose and pooling nodes; negative padding becomes 0."""
        return {
            "kernel_shape": self.kernel,
            "strides": self.strides,
            "dilations": self.dilations,
            "pads": [max(pad, 0) for pad in self.pads],
        }


def convolve(x: Value, w: Value, view: Window, out: tuple[int, ...], group: int) -> Value:
    """Convolve x [N, C, ...] with kernels w [M, C/group, ...]; the result is [N, M, *out]."""
    fitted = view.fitted(x.shape[2:], out)
    if any(-end >= stride for end, stride in zip(fitted.ends, view.strides, strict=True)):
        x = crop_uncovered(x, fitted)
    return x.op.Conv(x, w, group=group, **fitted.attributes)


def one_hot_kernels(like: Value, channels: int, kernel: tuple[int, ...]) -> Value:
    """Kernels [channels · n, 1, *kernel] that each select one of the n elements of a window."""
    taps = math.prod(kernel)
    require_room(taps, taps, channels)
    unit = np.eye(taps, dtype=like.dtype).reshape(taps, 1, *kernel)
    return like.op.constant(np.tile(unit, (channels, 1, *[1] * len(kernel))))


def dense_one_hot_kernels(like: Value, channels: int, kernel: tuple[int, ...]) -> Value:
    """Ungrouped kernels [channels · n, channels, *kernel] that each select one input element."""
    count = channels * math.prod(kernel)
    require_room(count, count)
    return like.op.constant(np.eye(count, dtype=like.dtype).reshape(count, channels, *kernel))


def crop_uncovered(x: Value, fitted: Window) -> Value:
    """Remove the elements at the ends of x's axes that no window of ``fitted`` contains."""
    for axis, end in enumerate(fitted.ends, start=2):
        if end < 0:
            covered = x.op.integers(x.shape[axis] + end)
            x = x.op.Slice(x, x.op.integers(0), covered, x.op.integers(axis))
    return x


def convolve_transposed(
    dy: Value, w: Value, view: Window, into: tuple[int, ...], group: int
) -> Value:
    """Apply the adjoint of ``convolve`` with kernels w [M, C/group, ...] to dy [N, M, ...].

    The result is [N, C, *into].
    """
    fitted = view.fitted(into, dy.shape[2:])
    if dy.op.provider == "cuda" and fitted.begins != fitted.ends:
        return _convolve_transposed_evenly(dy, w, fitted, into, group)
    left_over = [max(-end, 0) for end in fitted.ends]
    return dy.op.ConvTranspose(dy, w, group=group, output_padding=left_over, **fitted.attributes)


def _convolve_transposed_evenly(
    dy: Value, w: Value, fitted: Window, into: tuple[int, ...], group: int
) -> Value:
    """Compute ``convolve_transposed`` with equal padding on both sides, as CUDA needs it."""
    sides = [*zip(fitted.begins, fitted.ends, fitted.strides, strict=True)]
    even = [min(begin, max(end, 0) + stride - 1) for begin, end, stride in sides]
    # With output_padding, the result keeps elements that the larger padding would cut off at the
    # end of an axis.
    left_over = [
        min(max(size - end, 0), stride - 1)
        for size, (_, end, stride) in zip(even, sides, strict=True)
    ]
    placed = replace(fitted, begins=tuple(even), ends=tuple(even))
    dx = dy.op.ConvTranspose(dy, w, group=group, output_padding=left_over, **placed.attributes)
    before = [size - begin for size, begin in zip(even, fitted.begins, strict=True)]
    after = [
        length - have - first
        for length, have, first in zip(into, dx.shape[2:], before, strict=True)
    ]
    # Cut off surplus elements; elements that no window contains are zeros.
    return pad(dx, [0, 0, *before], [0, 0, *after])


def window(node: Node, kernel: tuple[int, ...]) -> Window:
    """The window of a convolution or pooling node, with ``auto_pad`` replaced by padding."""
    rank = len(kernel)
    plain = _unpadded(node, kernel)
    auto_pad = node.attribute("auto_pad", "NOTSET")
    if auto_pad == "VALID":
        return plain
    if auto_pad == "NOTSET":
        pads = _integer_list_attribute(node, "pads", 2 * rank, 0)
        return replace(plain, begins=tuple(pads[:rank]), ends=tuple(pads[rank:]))
    totals = [max(end, 0) for end in plain.fitted(node.x.shape[2:], node.y.shape[2:]).ends]
    begins = _halves(totals, auto_pad)
    ends = tuple(total - begin for total, begin in zip(totals, begins, strict=True))
    return replace(plain, begins=begins, ends=ends)


def transposed_window(node: Node, kernel: tuple[int, ...]) -> Window:
    """The window of a transposed convolution: it slides over y, one position per element of x.

    With ``output_shape`` or ``auto_pad`` SAME, the shapes of x and y determine the padding.
    """
    rank = len(kernel)
    plain = _unpadded(node, kernel)
    padding = _integer_list_attribute(node, "output_padding", rank, 0)
    auto_pad = node.attribute("auto_pad", "NOTSET")
    output_shape = node.attribute("output_shape")
    if auto_pad == "VALID" or (auto_pad == "NOTSET" and not output_shape):
        begins = _integer_list_attribute(node, "pads", 2 * rank, 0)[:rank]
    else:
        ends = plain.fitted(node.y.shape[2:], node.x.shape[2:]).ends
        totals = [max(end + more, 0) for end, more in zip(ends, padding, strict=True)]
        begins = _halves(totals, auto_pad)
    return replace(plain, begins=begins).fitted(node.y.shape[2:], node.x.shape[2:])


def _halves(totals: Sequence[int], auto_pad: str) -> tuple[int, ...]:
    """Padding at each axis's start: half of the total, rounded down for SAME_UPPER, else up."""
    return tuple(n // 2 if auto_pad == "SAME_UPPER" else n - n // 2 for n in totals)


def _unpadded(node: Node, kernel: tuple[int, ...]) -> Window:
    rank = len(kernel)
    if rank != node.x.rank - 2:
        raise ModelError(
            f"{node.label}: expected a window for each spatial axis of {list(node.x.shape)}, "
            f"got {list(kernel)}"
        )
    if math.prod(kernel) > _MOST_TAPS:
        raise ModelError(f"{node.label}: a window of {list(kernel)} elements is too large")
    strides, dilations = (
        _integer_list_attribute(node, name, rank, 1) for name in ("strides", "dilations")
    )
    return Window(kernel, strides, dilations, (0,) * rank, (0,) * rank)


def _integer_list_attribute(node: Node, name: str, count: int, default: int) -> tuple[int, ...]:
    # ONNX's shape inference does not check the lengths of all attributes.
    numbers = tuple(node.attribute(name) or [default] * count)
    if len(numbers) != count:
        raise ModelError(f"{node.label}: {name}: expected {count} numbers, got {list(numbers)}")
    return numbers
