"""Rewrite nodes for which onnx infers another shape than runtimes compute.

They are pooling nodes with ``ceil_mode`` (before opset 22) or ``auto_pad``, STFT nodes that are
one-sided by default, and Einsum nodes that broadcast a label of length 1.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import helper

from onnxstep.graphs.nodes import constant_node, copied, is_standard, node_attributes

Shape = tuple[int, ...]
Numbers = NDArray[np.int64]
_POOLS = frozenset({"AveragePool", "LpPool", "MaxPool"})
_COUNTED_RIGHT = 22
_BATCH_AND_CHANNELS = 2
_GIVEN, _LOWER = b"NOTSET", b"SAME_LOWER"
_SAME = (b"SAME_UPPER", _LOWER)


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
    equation = node_attributes(node).get("equation", b"").decode().replace(" ", "")
    terms = zip(equation.partition("->")[0].split(","), shapes, strict=False)
    labels = [_axis_labels(term, len(shape)) for term, shape in terms]
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
    space = np.array(shape[_BATCH_AND_CHANNELS:], np.int64)
    numbers = _window_numbers(attributes, len(space))
    if numbers is None or not len(space):
        return [node]
    kernel, strides, dilations, begins, ends = numbers
    reach = dilations * (kernel - 1) + 1
    padding = attributes.get("auto_pad", _GIVEN)
    if padding != _GIVEN:
        begins, ends = _automatic_pads(space, kernel, strides, padding)
    steps = -(-(space + begins + ends - reach) // strides)
    # Whether ``ceil_mode`` would start the last window after the input's last element.
    surplus = steps * strides >= space + begins
    is_ragged = (space + begins + ends - reach) % strides != 0
    rounds_up = bool(attributes.get("ceil_mode")) and bool((is_ragged & ~surplus).any())
    if rounds_up:
        # Pad up to the end of the last window; negative if windows omit the last elements.
        ends = np.where(surplus, (steps - 1) * strides + reach - space - begins, ends)
    pads = np.concatenate([begins, ends])
    # A Slice replaces negative pads, but would change the indices of maxima.
    cuts = bool((pads < 0).any())
    if cuts and any(node.output[1:]):
        return [node]
    attributes["pads"] = np.maximum(pads, 0).tolist()
    for name in ("auto_pad", *(() if rounds_up else ("ceil_mode",))):
        attributes.pop(name, None)
    stops = space + np.minimum(ends, 0)
    cutting, source = _crop_spatial_axes(node, begins, stops) if cuts else ([], node.input[0])
    pool = helper.make_node(node.op_type, [source], node.output, name=node.name, **attributes)
    return [*cutting, pool]


def _window_numbers(attributes: Mapping[str, Any], rank: int) -> list[Numbers] | None:
    """Kernel, strides, dilations, begins and ends of a pooling node; None if these do not fit."""
    pads = attributes.get("pads") or [0] * 2 * rank
    strides, dilations = (attributes.get(name) or [1] * rank for name in ("strides", "dilations"))
    kernel = attributes.get("kernel_shape", ())
    numbers = [kernel, strides, dilations, pads[: len(pads) // 2], pads[len(pads) // 2 :]]
    fits = all(len(each) == rank for each in numbers) and min(strides, default=1) >= 1
    return [np.array(each, np.int64) for each in numbers] if fits else None


def _automatic_pads(
    space: Numbers, kernel: Numbers, strides: Numbers, auto_pad: bytes
) -> tuple[Numbers, Numbers]:
    # As in ONNX Runtime 1.31, the pads ignore dilation.
    if auto_pad not in _SAME:
        return np.zeros_like(space), np.zeros_like(space)
    missing = (space - 1) // strides * strides + kernel - space
    # A negative number is rounded towards zero: windows then begin after the first element.
    begins = np.trunc((missing + (auto_pad == _LOWER)) / 2).astype(np.int64)
    return begins, missing - begins


def _crop_spatial_axes(
    node: onnx.NodeProto, begin_pads: Numbers, end_indices: Numbers
) -> tuple[list[onnx.NodeProto], str]:
    name = f"{node.output[0]}/pooled"
    bounds = {
        "starts": np.maximum(-begin_pads, 0),
        "ends": end_indices,
        "axes": range(_BATCH_AND_CHANNELS, _BATCH_AND_CHANNELS + len(end_indices)),
    }
    constants = [
        constant_node(f"{name}/{key}", np.array(numbers, np.int64))
        for key, numbers in bounds.items()
    ]
    inputs = [node.input[0], *(constant.output[0] for constant in constants)]
    return [*constants, helper.make_node("Slice", inputs, [name], name=name)], name
