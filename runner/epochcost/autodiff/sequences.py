"""Sequences that are taken apart at once: SplitToSequence and SequenceAt become one Split.

PyTorch's exporter writes ``chunk`` and ``split`` this way when it does not optimise. Other uses of
sequences stay as they are; nothing differentiates them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import helper, numpy_helper, shape_inference

Array = NDArray[Any]
# A part is a node: what has more of them stays a sequence.
_MOST_PARTS = 4096


def without_split_sequences(model: onnx.ModelProto) -> onnx.ModelProto:
    """The model with every split that is read at known places written as Split."""
    if not any(node.op_type == "SplitToSequence" for node in model.graph.node):
        return model
    typed = shape_inference.infer_shapes(model)
    constants, readers = _constants(typed.graph), _readers(typed.graph.node)
    types = {info.name: info.type for info in [*typed.graph.input, *typed.graph.value_info]}
    replaced: dict[str, list[onnx.NodeProto]] = {}
    for node in typed.graph.node:
        sizes = _sizes(types, node, constants)
        if sizes is None:
            continue
        places = {reader.output[0]: _place(reader, constants) for reader in readers[node.output[0]]}
        if None not in places.values():
            replaced[node.output[0]] = _as_split(node, sizes, places)
            replaced |= {name: [] for name in places}
    nodes = [new for node in typed.graph.node for new in replaced.get(node.output[0], [node])]
    tensors = [info for info in typed.graph.value_info if info.name not in replaced]
    del typed.graph.node[:], typed.graph.value_info[:]
    typed.graph.node.extend(nodes)
    typed.graph.value_info.extend(tensors)
    return typed


def _readers(nodes: Iterable[onnx.NodeProto]) -> Mapping[str, Sequence[onnx.NodeProto]]:
    readers: dict[str, list[onnx.NodeProto]] = defaultdict(list)
    for node in nodes:
        for name in dict.fromkeys(node.input):
            readers[name].append(node)
    return readers


def _sizes(
    types: Mapping[str, onnx.TypeProto], node: onnx.NodeProto, constants: dict[str, Array]
) -> list[int] | None:
    """The lengths of the parts; None where the node is no split or they are not known."""
    if node.op_type != "SplitToSequence":
        return None
    attributes = {entry.name: helper.get_attribute_value(entry) for entry in node.attribute}
    if not attributes.get("keepdims", 1):
        return None
    split = constants.get(node.input[1]) if len(node.input) > 1 else None
    if split is None or split.ndim == 1:
        return None if split is None else [int(size) for size in split]
    length = _length(types.get(node.input[0]), attributes.get("axis", 0))
    step = int(split)
    if length is None or step <= 0 or length > step * _MOST_PARTS:
        return None
    return [min(step, length - at) for at in range(0, length, step)]


def _length(kind: onnx.TypeProto | None, axis: int) -> int | None:
    dims = kind.tensor_type.shape.dim if kind is not None else ()
    if not -len(dims) <= axis < len(dims) or not dims[axis].HasField("dim_value"):
        return None
    return int(dims[axis].dim_value)


def _place(reader: onnx.NodeProto, constants: dict[str, Array]) -> int | None:
    if reader.op_type != "SequenceAt" or reader.input[1] not in constants:
        return None
    return int(constants[reader.input[1]])


def _as_split(
    node: onnx.NodeProto, sizes: Sequence[int], places: dict[str, int | None]
) -> list[onnx.NodeProto]:
    """Split, and each reader as the name of its part; ONNX Runtime drops the Identity."""
    outputs = [f"{node.output[0]}/part_{index}" for index in range(len(sizes))]
    lengths = f"{node.output[0]}/lengths"
    tensor = numpy_helper.from_array(np.array(sizes, np.int64))
    axis = next((entry.i for entry in node.attribute if entry.name == "axis"), 0)
    split = helper.make_node("Split", [node.input[0], lengths], outputs, node.name, axis=axis)
    copies = [
        helper.make_node("Identity", [outputs[place or 0]], [name])
        for name, place in places.items()
    ]
    return [helper.make_node("Constant", [], [lengths], value=tensor), split, *copies]


def _constants(graph: onnx.GraphProto) -> dict[str, Array]:
    held = {tensor.name: numpy_helper.to_array(tensor) for tensor in _small(graph.initializer)}
    for node in graph.node:
        if node.op_type == "Constant" and node.attribute[0].name in ("value", "value_int"):
            value = helper.get_attribute_value(node.attribute[0])
            is_tensor = isinstance(value, onnx.TensorProto)
            held[node.output[0]] = numpy_helper.to_array(value) if is_tensor else np.array(value)
    return held


def _small(tensors: Iterable[onnx.TensorProto]) -> Iterable[onnx.TensorProto]:
    return (tensor for tensor in tensors if len(tensor.dims) <= 1)
