"""Nodes of a graph: values that they read, their attributes, and the nodes that outputs need."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import helper, numpy_helper

Proto = TypeVar("Proto", onnx.ModelProto, onnx.NodeProto, onnx.TensorProto, onnx.TypeProto)
Constants = Mapping[str, onnx.TensorProto | onnx.NodeProto]
DEFAULT_DOMAINS = ("", "ai.onnx")
# ONNX's operators with attributes that are graphs to run.
NESTED = frozenset({"If", "Loop", "Scan", "SequenceMap"})
# Operators that return their input in another shape, without new memory.
VIEWS = frozenset(["Flatten", "Identity", "Reshape", "Squeeze", "Unsqueeze"])
# Operators whose output differs between runs, and between equal nodes of a run.
RANDOM = frozenset(
    {
        "Bernoulli", "Dropout", "Multinomial", "RandomNormal", "RandomNormalLike", "RandomUniform",
        "RandomUniformLike",
    }
)  # fmt: skip
_CONSTANT_TYPES: Mapping[str, type[np.generic]] = {
    "value_int": np.int64,
    "value_ints": np.int64,
    "value_float": np.float32,
    "value_floats": np.float32,
}


def copied(message: Proto) -> Proto:
    """A copy of a model, node, tensor or type."""
    copy = type(message)()
    copy.CopyFrom(message)
    return copy


def default_opset(model: onnx.ModelProto) -> int:
    """The version of ONNX's default domain that a model imports; 1 if it does not import it."""
    return next((e.version for e in model.opset_import if e.domain in DEFAULT_DOMAINS), 1)


def is_standard(node: onnx.NodeProto, *op_types: str) -> bool:
    """Whether a node has one of the operators ``op_types`` of ONNX's default domain."""
    return node.op_type in op_types and node.domain in DEFAULT_DOMAINS


def node_label(node: onnx.NodeProto) -> str:
    """The name of a node (else its first output) and its operator, for error messages."""
    return f"node {node.name or next(filter(None, node.output), '')!r} ({node.op_type})"


def node_attributes(node: onnx.NodeProto) -> dict[str, Any]:
    """The attributes that a node sets, by name; strings are bytes."""
    return {entry.name: helper.get_attribute_value(entry) for entry in node.attribute}


def constant_node(name: str, array: NDArray[Any]) -> onnx.NodeProto:
    """A Constant node with the output ``name`` and the value ``array``."""
    return helper.make_node("Constant", [], [name], value=numpy_helper.from_array(array))


def constants(graph: onnx.GraphProto) -> Constants:
    """Initializers and Constant nodes of a graph, by the name of their value."""
    nodes = (node for node in graph.node if is_standard(node, "Constant"))
    return {node.output[0]: node for node in nodes} | {t.name: t for t in graph.initializer}


def constant_value(constant: onnx.TensorProto | onnx.NodeProto | None) -> NDArray[Any] | None:
    """The array of an initializer or Constant; None for other nodes, strings and sparse tensors."""
    if isinstance(constant, onnx.TensorProto):
        return numpy_helper.to_array(constant)
    if constant is None or not is_standard(constant, "Constant"):
        return None
    for name, value in node_attributes(constant).items():
        if name == "value":
            return numpy_helper.to_array(value)
        if name in _CONSTANT_TYPES:
            return np.array(value, _CONSTANT_TYPES[name])
    return None


def subgraphs(node: onnx.NodeProto) -> list[onnx.GraphProto]:
    """The graphs in the attributes of a node."""
    graphs = []
    for entry in node.attribute:
        # In protobuf, reading a missing graph field would create an empty graph.
        if entry.HasField("g"):
            graphs.append(entry.g)
        if entry.graphs:
            graphs.extend(entry.graphs)
    return graphs


def nested_nodes(nodes: Iterable[onnx.NodeProto]) -> Iterator[onnx.NodeProto]:
    """Yield the nodes, each followed by the nodes of the graphs in its attributes, at any depth."""
    for node in nodes:
        yield node
        for graph in subgraphs(node) if node.attribute else ():
            yield from nested_nodes(graph.node)


def all_nodes(model: onnx.ModelProto) -> Iterator[onnx.NodeProto]:
    """Yield the nodes of the graph and of the functions, with nested nodes at any depth."""
    for part in (model.graph, *model.functions):
        yield from nested_nodes(part.node)


def set_nodes(graph: onnx.GraphProto, nodes: Iterable[onnx.NodeProto]) -> None:
    """Replace the nodes of ``graph``, in place; ``nodes`` may come from ``graph``."""
    new = list(nodes)
    del graph.node[:]
    graph.node.extend(new)


def reads(node: onnx.NodeProto) -> Iterator[str]:
    """Yield the values that a node reads: its inputs, then outer values that its subgraphs read."""
    yield from filter(None, node.input)
    for graph in subgraphs(node) if node.attribute else ():
        local = {tensor.name for tensor in (*graph.input, *graph.initializer)}
        local.update(name for child in graph.node for name in child.output)
        for child in graph.node:
            yield from (name for name in reads(child) if name not in local)
        yield from (value.name for value in graph.output if value.name not in local)


def live_nodes(nodes: Sequence[onnx.NodeProto], outputs: Iterable[str]) -> list[onnx.NodeProto]:
    """The nodes on which ``outputs`` depend; ``nodes`` and the result are in topological order."""
    needed, live = set(outputs), []
    for node in reversed(nodes):
        if not needed.isdisjoint(node.output):
            needed.update(reads(node))
            live.append(node)
    return live[::-1]
