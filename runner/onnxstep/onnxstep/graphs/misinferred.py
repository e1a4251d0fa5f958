"""Rewrite nodes for which onnx infers another shape than runtimes compute.

They are pooling nodes with ``ceil_mode`` (before opset 22) or ``auto_pad``, STFT nodes that are
one-sided by default, and Einsum nodes that broadcast a label of length 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import onnx
from onnx import helper

from onnxstep.graphs.nodes import constant_node, copied, is_standard, node_attributes

Shape = tuple[int, ...]
_POOLS = frozenset({"AveragePool", "LpPool", "MaxPool"})
_COUNTED_RIGHT = 22
_BATCH_AND_CHANNELS = 2
_GIVEN, _LOWER = b"NOTSET", b"SAME_LOWER"
_SAME = (b"SAME_UPPER", _LOWER)


@dataclass(frozen=True)
class _PoolingAxis:
    input_length: int
    dilated_window_length: int
    stride: int
    begin_padding: int
    end_padding: int

    @property
    def _free(self) -> int:
        return (
            self.input_length + self.begin_padding + self.end_padding - self.dilated_window_length
        )

    @property
    def window_count(self) -> int:
        counted = -(-self._free // self.stride) + 1
        return counted - 1 if self.has_window_in_padding else counted

    @property
    def has_window_in_padding(self) -> bool:
        """Whether ``ceil_mode`` would start the last window after the input's last element."""
        return -(-self._free // self.stride) * self.stride >= self.input_length + self.begin_padding

    @property
    def needs_ceil_mode(self) -> bool:
        """Whether the last window exists only because of ``ceil_mode``."""
        return not self.has_window_in_padding and self._free % self.stride != 0

    def with_auto_pad(self, auto_pad: bytes, undilated_length: int) -> _PoolingAxis:
        # As in ONNX Runtime 1.31, the pads ignore dilation.
        if auto_pad not in _SAME:
            return replace(self, begin_padding=0, end_padding=0)
        steps = (self.input_length - 1) // self.stride
        missing = steps * self.stride + undilated_length - self.input_length
        # A negative number is rounded towards zero: windows then begin after the first element.
        begin = int((missing + (auto_pad == _LOWER)) / 2)
        return replace(self, begin_padding=begin, end_padding=missing - begin)

    @property
    def exact_end_padding(self) -> int:
        """End padding up to the last window's end; negative if windows omit the last elements."""
        covered = (self.window_count - 1) * self.stride + self.dilated_window_length
        return covered - self.input_length - self.begin_padding


def is_misinferred(node: onnx.NodeProto, opset: int) -> bool:
    """Whether onnx may infer another shape for the node than runtimes compute."""
    if not is_standard(node, *_POOLS, "Einsum", "STFT"):
        return False
    attributes = node_attributes(node)
    if node.op_type not in _POOLS:
        # Inference takes a label's length from the first operand that has the label. It assumes
        # that an STFT is two-sided by default.
        return node.op_type == "Einsum" or "onesided" not in attributes
    padding = attributes.get("auto_pad", _GIVEN)
    dilated = any(n != 1 for n in attributes.get("dilations", ()))
    # Given both, inference uses pads, but ONNX Runtime uses auto_pad.
    if padding != _GIVEN and ("pads" in attributes or (dilated and padding in _SAME)):
        return True
    # Older inference counts a last window that starts in the end padding; runtimes omit it.
    return bool(attributes.get("ceil_mode")) and opset < _COUNTED_RIGHT


def rewrite_misinferred(node: onnx.NodeProto, shapes: Sequence[Shape]) -> list[onnx.NodeProto]:
    """Nodes that replace a misinferred node; ``shapes`` are the shapes of its inputs."""
    if node.op_type in _POOLS:
        return _pool_with_explicit_pads(node, shapes[0])
    if node.op_type == "Einsum":
        return _expand_einsum_operands(node, shapes)
    plain = copied(node)
    plain.attribute.append(helper.make_attribute("onesided", 1))
    return [plain]


def _expand_einsum_operands(node: onnx.NodeProto, shapes: Sequence[Shape]) -> list[onnx.NodeProto]:
    operands = (
        node_attributes(node).get("equation", b"").decode().replace(" ", "").partition("->")[0]
    )
    labels = [
        _axis_labels(term, len(shape))
        for term, shape in zip(operands.split(","), shapes, strict=False)
    ]
    lengths: dict[str, int] = {}
    for term, shape in zip(labels, shapes, strict=False):
        for label, length in zip(term, shape, strict=False):
            if label:
                lengths[label] = max(lengths.get(label, 1), length)
    plain, parts = copied(node), []
    for place, (term, shape) in enumerate(zip(labels, shapes, strict=False)):
        full = [lengths.get(label, 1) for label in term]
        if any(
            label and n == 1 < whole for label, n, whole in zip(term, shape, full, strict=False)
        ):
            name = f"{node.output[0]}/operand_{place}"
            parts.append(constant_node(f"{name}/shape", np.array(full, np.int64)))
            parts.append(helper.make_node("Expand", [node.input[place], f"{name}/shape"], [name]))
            plain.input[place] = name
    return [*parts, plain]


def _axis_labels(term: str, rank: int) -> list[str]:
    before, ellipsis, after = term.partition("...")
    ellipsis_axes = max(rank - len(before) - len(after), 0) if ellipsis else 0
    return [*before, *[""] * ellipsis_axes, *after]


def _pool_with_explicit_pads(node: onnx.NodeProto, shape: Sequence[int]) -> list[onnx.NodeProto]:
    attributes = node_attributes(node)
    axes = _pooling_axes(attributes, shape[_BATCH_AND_CHANNELS:])
    rounds_up = bool(attributes.get("ceil_mode")) and any(axis.needs_ceil_mode for axis in axes)
    begins = [axis.begin_padding for axis in axes]
    ends = [
        axis.exact_end_padding if rounds_up and axis.has_window_in_padding else axis.end_padding
        for axis in axes
    ]
    cuts = any(pad < 0 for pad in (*begins, *ends))
    # A Slice replaces negative pads, but would change the indices of maxima.
    if not axes or (cuts and any(node.output[1:])):
        return [node]
    pads = [max(pad, 0) for pad in (*begins, *ends)]
    attributes["pads"] = pads
    for name in ("auto_pad", *(() if rounds_up else ("ceil_mode",))):
        attributes.pop(name, None)
    stops = [axis.input_length + min(end, 0) for axis, end in zip(axes, ends, strict=True)]
    cutting, source = _crop_spatial_axes(node, begins, stops) if cuts else ([], node.input[0])
    pool = helper.make_node(node.op_type, [source], node.output, name=node.name, **attributes)
    return [*cutting, pool]


def _crop_spatial_axes(
    node: onnx.NodeProto, begin_pads: Sequence[int], end_indices: Sequence[int]
) -> tuple[list[onnx.NodeProto], str]:
    name = f"{node.output[0]}/pooled"
    bounds = {
        "starts": [max(-begin, 0) for begin in begin_pads],
        "ends": end_indices,
        "axes": range(_BATCH_AND_CHANNELS, _BATCH_AND_CHANNELS + len(end_indices)),
    }
    constants = [
        constant_node(f"{name}/{key}", np.array(numbers, np.int64))
        for key, numbers in bounds.items()
    ]
    inputs = [node.input[0], *(constant.output[0] for constant in constants)]
    return [*constants, helper.make_node("Slice", inputs, [name], name=name)], name


def _pooling_axes(attributes: dict[str, Any], spatial_lengths: Sequence[int]) -> list[_PoolingAxis]:
    rank, kernel = len(spatial_lengths), attributes.get("kernel_shape", ())
    pads = attributes.get("pads") or [0] * 2 * rank
    strides, dilations = (attributes.get(name) or [1] * rank for name in ("strides", "dilations"))
    if {len(kernel), len(strides), len(dilations), len(pads) // 2} != {rank}:
        return []
    if min(strides, default=1) < 1:
        return []
    axes = [
        _PoolingAxis(
            spatial_lengths[i],
            dilations[i] * (kernel[i] - 1) + 1,
            strides[i],
            pads[i],
            pads[rank + i],
        )
        for i in range(rank)
    ]
    padding = attributes.get("auto_pad", _GIVEN)
    if padding == _GIVEN:
        return axes
    return [axis.with_auto_pad(padding, size) for axis, size in zip(axes, kernel, strict=True)]
