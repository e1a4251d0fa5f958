"""Replace nodes that read an ONNX sequence, a list of tensors, by nodes that read its tensors.

PyTorch's exporter without optimization writes ``chunk`` and ``split`` with sequences.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import helper

from onnxstep.graphs.nodes import constant_node, node_attributes
from onnxstep.graphs.tensors import static_shape

# Each part of a sequence becomes a node; longer sequences stay.
_MOST_PARTS = 4096
MAKERS = frozenset({"SequenceConstruct", "SplitToSequence"})
READERS = frozenset({"ConcatFromSequence", "SequenceAt"})
Arrays = Mapping[str, NDArray[Any]]


def note_sequence(
    node: onnx.NodeProto,
    sequences: dict[str, list[str]],
    types: Mapping[str, onnx.TypeProto],
    arrays: Arrays,
) -> list[onnx.NodeProto]:
    """Record in ``sequences`` the tensors of the sequence that ``node`` creates; return new nodes.

    New nodes split a tensor into parts. Raises LookupError if the tensors cannot be determined.
    """
    [sequence], x = node.output, node.input[0]
    if node.op_type == "SequenceConstruct":
        sequences[sequence] = list(node.input)
        return []
    lengths, axis = _lengths(node, types, arrays), _axis(node)
    names = [f"{sequence}/part_{number}" for number in range(len(lengths))]
    sequences[sequence] = names
    drops = len(node.input) == 1 and not node_attributes(node).get("keepdims", 1)
    cut = [f"{name}/kept" for name in names] if drops else names
    whole, along = f"{sequence}/lengths", f"{sequence}/axis"
    split = helper.make_node("Split", [x, whole], cut, name=node.name, domain="", axis=axis)
    nodes = [constant_node(whole, np.array(lengths, np.int64)), split]
    return [*nodes, *_on_axis("Squeeze", cut, names, axis, along)] if drops else nodes


def plain_reader(
    node: onnx.NodeProto, sequences: Mapping[str, list[str]], arrays: Arrays
) -> list[onnx.NodeProto]:
    """Nodes that read the sequence's tensors instead; raises LookupError if these are unknown."""
    tensors, [output] = sequences[node.input[0]], node.output
    if node.op_type == "SequenceAt":
        tensor = tensors[int(arrays[node.input[1]].item())]
        return [helper.make_node("Identity", [tensor], [output], domain="")]
    nodes, axis = [], _axis(node)
    if node_attributes(node).get("new_axis", 0):
        names = [f"{output}/{number}" for number in range(len(tensors))]
        nodes = _on_axis("Unsqueeze", tensors, names, axis, f"{names[0]}/axis")
        tensors = names
    return [*nodes, helper.make_node("Concat", tensors, [output], name=node.name, axis=axis)]


def _on_axis(
    op_type: str, tensors: list[str], names: list[str], axis: int, axis_name: str
) -> list[onnx.NodeProto]:
    """Nodes that remove or insert an ``axis`` of length 1, and the constant ``axis_name``."""
    pairs = zip(tensors, names, strict=True)
    nodes = (helper.make_node(op_type, [tensor, axis_name], [name]) for tensor, name in pairs)
    return [constant_node(axis_name, np.array([axis], np.int64)), *nodes]


def behind_splits(nodes: list[onnx.NodeProto], copies: set[str]) -> Iterator[onnx.NodeProto]:
    """Move each Identity node with an output in ``copies`` directly behind the Split that it reads.

    Files thus keep the digest of earlier versions, by which stored benchmark results refer to them.
    """
    moved: dict[str, list[onnx.NodeProto]] = {}
    cut = {name for node in nodes if node.op_type == "Split" for name in node.output}
    for node in nodes:
        if not copies.isdisjoint(node.output) and node.input[0] in cut:
            moved.setdefault(node.input[0], []).append(node)
    order = {node.output[0]: place for place, node in enumerate(nodes)}
    for node in nodes:
        if node.output[0] in copies and node.input[0] in moved:
            continue
        yield node
        if node.op_type == "Split":
            readers = [reader for name in node.output for reader in moved.get(name, ())]
            yield from sorted(readers, key=lambda reader: order[reader.output[0]])


def _lengths(
    node: onnx.NodeProto, types: Mapping[str, onnx.TypeProto], arrays: Arrays
) -> list[int]:
    split = arrays[node.input[1]] if len(node.input) > 1 else np.array(1)
    if split.ndim == 1:
        return [int(length) for length in split]
    shape, step = static_shape(types.get(node.input[0])) or (), int(split)
    length = shape[_axis(node)]
    if not 0 < step <= length <= step * _MOST_PARTS:
        raise LookupError
    return [min(step, length - at) for at in range(0, length, step)]


def _axis(node: onnx.NodeProto) -> int:
    return int(node_attributes(node).get("axis", 0))
