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
from onnx import helper, numpy_helper

from onnxstep.graphs.nodes import copied, node_attributes

Shape = tuple[int, ...]
_POOLS = frozenset({"AveragePool", "LpPool", "MaxPool"})
_COUNTED_RIGHT = 22
_BATCH_AND_CHANNELS = 2
_GIVEN, _LOWER = b"NOTSET", b"SAME_LOWER"
_SAME = (b"SAME_UPPER", _LOWER)


@dataclass(frozen=True)
class _Axis:
    """The windows of a pooling node along an axis; all sizes are in elements.

    ``length`` is the input's length, ``extent`` a window's length including dilation. ``begin`` and
    ``end`` are the paddings.
    """

    length: int
    extent: int
    stride: int
    begin: int
    end: int

    @property
    def _free(self) -> int:
        return self.length + self.begin + self.end - self.extent

    @property
    def windows(self) -> int:
        counted = -(-self._free // self.stride) + 1
        return counted - 1 if self.is_over else counted

    @property
    def is_over(self) -> bool:
        """Whether ``ceil_mode`` would start the last window after the input's last element."""
        return -(-self._free // self.stride) * self.stride >= self.length + self.begin

    @property
    def rounds_up(self) -> bool:
        """Whether the last window exists only because of ``ceil_mode``."""
        return not self.is_over and self._free % self.stride != 0

    def padded(self, padding: bytes, kernel: int) -> _Axis:
        """Copy with the pads of the ``auto_pad`` mode ``padding``.

        As in ONNX Runtime 1.31, the pads ignore dilation: ``kernel`` is the undilated length.
        """
        if padding not in _SAME:
            return replace(self, begin=0, end=0)
        steps = (self.length - 1) // self.stride
        missing = steps * self.stride + kernel - self.length
        # A negative number is rounded towards zero: windows then begin after the first element.
        begin = int((missing + (padding == _LOWER)) / 2)
        return replace(self, begin=begin, end=missing - begin)

    @property
    def exact_end(self) -> int:
        """End padding with which the last window ends at the last element.

        The padding is negative if no window contains the last elements.
        """
        covered = (self.windows - 1) * self.stride + self.extent
        return covered - self.length - self.begin


def is_misinferred(node: onnx.NodeProto, opset: int) -> bool:
    """Whether onnx may infer another shape for the node than runtimes compute."""
    if node.domain not in ("", "ai.onnx") or node.op_type not in {*_POOLS, "Einsum", "STFT"}:
        return False
    attributes = node_attributes(node)
    if node.op_type not in _POOLS:
        # Inference takes a label's length from the first operand that has the label. It assumes
        # that an STFT is two-sided by default.
        return node.op_type == "Einsum" or (node.op_type == "STFT" and "onesided" not in attributes)
    padding, dilated = (
        attributes.get("auto_pad", _GIVEN),
        any(n != 1 for n in attributes.get("dilations", ())),
    )
    # Given both, inference uses pads, but ONNX Runtime uses auto_pad.
    if padding != _GIVEN and ("pads" in attributes or (dilated and padding in _SAME)):
        return True
    # Older inference counts a last window that starts in the end padding; runtimes omit it.
    return bool(attributes.get("ceil_mode")) and opset < _COUNTED_RIGHT


def rewrite_misinferred(node: onnx.NodeProto, shapes: Sequence[Shape]) -> list[onnx.NodeProto]:
    """Nodes that replace a misinferred node; ``shapes`` are the shapes of its inputs."""
    if node.op_type in _POOLS:
        return _pooled(node, shapes[0])
    if node.op_type == "Einsum":
        return _einsum_of_full_labels(node, shapes)
    plain = copied(node)
    plain.attribute.append(helper.make_attribute("onesided", 1))
    return [plain]


def _einsum_of_full_labels(node: onnx.NodeProto, shapes: Sequence[Shape]) -> list[onnx.NodeProto]:
    """Expand the operands of an Einsum to the full length of each label; return all nodes."""
    operands = (
        node_attributes(node).get("equation", b"").decode().replace(" ", "").partition("->")[0]
    )
    labels = [
        _labels(term, len(shape)) for term, shape in zip(operands.split(","), shapes, strict=False)
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
            tensor = numpy_helper.from_array(np.array(full, np.int64))
            parts.append(helper.make_node("Constant", [], [f"{name}/shape"], value=tensor))
            parts.append(helper.make_node("Expand", [node.input[place], f"{name}/shape"], [name]))
            plain.input[place] = name
    return [*parts, plain]


def _labels(term: str, rank: int) -> list[str]:
    """The label of each axis of an operand; "" for axes that an ellipsis covers."""
    before, ellipsis, after = term.partition("...")
    hidden = max(rank - len(before) - len(after), 0) if ellipsis else 0
    return [*before, *[""] * hidden, *after]


def _pooled(node: onnx.NodeProto, shape: Sequence[int]) -> list[onnx.NodeProto]:
    """Replace a pooling node by nodes for which shape inference and runtimes agree on the shape.

    The new node has explicit pads. Negative pads become a Slice of the input. A node with negative
    pads that also outputs indices of maxima stays as it is.
    """
    attributes = node_attributes(node)
    axes = _axes(attributes, shape[_BATCH_AND_CHANNELS:])
    rounds_up = bool(attributes.get("ceil_mode")) and any(axis.rounds_up for axis in axes)
    begins = [axis.begin for axis in axes]
    ends = [axis.exact_end if rounds_up and axis.is_over else axis.end for axis in axes]
    cuts = any(pad < 0 for pad in (*begins, *ends))
    # A Slice would change the indices of maxima.
    if not axes or (cuts and any(node.output[1:])):
        return [node]
    pads = [max(pad, 0) for pad in (*begins, *ends)]
    attributes["pads"] = pads
    for name in ("auto_pad", *(() if rounds_up else ("ceil_mode",))):
        attributes.pop(name, None)
    stops = [axis.length + min(end, 0) for axis, end in zip(axes, ends, strict=True)]
    *cutting, source = _cut(node, begins, stops) if cuts else [node.input[0]]
    pool = helper.make_node(node.op_type, [source], node.output, name=node.name, **attributes)
    return [*cutting, pool]


def _cut(node: onnx.NodeProto, begins: Sequence[int], stops: Sequence[int]) -> list[Any]:
    """Nodes that crop the spatial axes of the node's input; the last item is the result's name."""
    name = f"{node.output[0]}/pooled"
    bounds = {
        "starts": [max(-begin, 0) for begin in begins],
        "ends": stops,
        "axes": range(_BATCH_AND_CHANNELS, _BATCH_AND_CHANNELS + len(stops)),
    }
    constants = [
        helper.make_node(
            "Constant",
            [],
            [f"{name}/{key}"],
            value=numpy_helper.from_array(np.array(numbers, np.int64)),
        )
        for key, numbers in bounds.items()
    ]
    inputs = [node.input[0], *(constant.output[0] for constant in constants)]
    return [*constants, helper.make_node("Slice", inputs, [name], name=name), name]


def _axes(attributes: dict[str, Any], lengths: Sequence[int]) -> list[_Axis]:
    """The windows along each spatial axis; empty if the attributes do not fit the shape."""
    rank, kernel = len(lengths), attributes.get("kernel_shape", ())
    pads = attributes.get("pads") or [0] * 2 * rank
    strides, dilations = (attributes.get(name) or [1] * rank for name in ("strides", "dilations"))
    if {len(kernel), len(strides), len(dilations), len(pads) // 2} != {rank}:
        return []
    if min(strides, default=1) < 1:
        return []
    axes = [
        _Axis(lengths[i], dilations[i] * (kernel[i] - 1) + 1, strides[i], pads[i], pads[rank + i])
        for i in range(rank)
    ]
    padding = attributes.get("auto_pad", _GIVEN)
    if padding == _GIVEN:
        return axes
    return [axis.padded(padding, size) for axis, size in zip(axes, kernel, strict=True)]
