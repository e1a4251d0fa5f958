"""A model's graph opened for differentiation, every value known, and closed as a model again.

The nodes are copies, in the order of the file; what is done with them is left to ``passes``,
``vjp`` and ``step``.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

import onnx
from onnx import helper

from onnxstep.builder import Builder, Provider, Value
from onnxstep.errors import ModelError
from onnxstep.graphs.nodes import (
    constant_value,
    copied,
    is_standard,
    live_nodes,
    node_attributes,
    reads,
)
from onnxstep.update import Transition

# onnx stamps its newest IR version, which an ONNX Runtime released before it refuses.
NEWEST_IR_VERSION = 10
# Of a batch of images and their axes; places of scales and sizes among the inputs of Resize.
_IMAGE_RANK, _SPATIAL, _SCALES, _SIZES = 4, (2, 3), 2, 3


@dataclass(frozen=True)
class Forward:
    """A model's graph inside a Builder: values by name, nodes in topological order.

    ``op.nodes`` are those that run, ``nodes`` those that are differentiated: a pass may let other
    operators run in place of a node, whose derivative stays that of the node. ``moves`` are the
    values that a pass carries from step to step.
    """

    op: Builder
    inputs: tuple[Value, ...]
    outputs: tuple[Value, ...]
    metadata: Mapping[str, str]
    nodes: tuple[onnx.NodeProto, ...] = ()
    moves: tuple[Transition, ...] = ()

    def value(self, name: str) -> Value:
        """A value of the graph by name; raises ModelError with the graph's outputs otherwise."""
        if name not in self.op.values:
            outputs = ", ".join(value.name for value in self.outputs)
            raise ModelError(f"no value is named {name!r}; the graph's outputs are {outputs}")
        return self.op.values[name]


def open_model(
    model: onnx.ModelProto,
    provider: Provider | None = None,
    builder: type[Builder] = Builder,
    *,
    blocked_convolutions: bool = False,
) -> Forward:
    """A copy of a model inside a Builder; the model is as ``passes.prepare`` leaves it.

    ``provider`` and ``blocked_convolutions`` say where the graph will run, as in ``Builder``.
    """
    graph, ir_version = model.graph, min(model.ir_version, NEWEST_IR_VERSION)
    op = builder(model.opset_import, ir_version, provider, blocked_convolutions)
    for tensor in graph.initializer:
        op.add_initializer(tensor)
    inputs = tuple(op.declare(i.name, i.type) for i in graph.input if i.name not in op.values)
    # A file may declare values whose nodes are gone, under dimensions that nobody binds.
    outputs_of_nodes = {name for node in graph.node for name in node.output}
    for info in [*graph.value_info, *graph.output]:
        if info.name in outputs_of_nodes and info.name not in op.values:
            op.declare(info.name, info.type)
    for node in graph.node:
        _adopt(op, node)
    for info in graph.output:
        if info.name not in op.values:
            raise ModelError(
                f"output {info.name!r}: no node makes it; export the model again, or leave it out"
            )
    outputs = tuple(op.values[info.name] for info in graph.output)
    metadata = {entry.key: entry.value for entry in model.metadata_props}
    return Forward(op, inputs, outputs, metadata, tuple(op.nodes))


def close_model(
    forward: Forward, inputs: Sequence[Value], outputs: Sequence[Value], name: str
) -> onnx.ModelProto:
    """A checked ModelProto of the Builder's graph, without what no output needs."""
    op = forward.op
    nodes = live_nodes(relabelled(op.nodes, op.labels), [value.name for value in outputs])
    used = {name for node in nodes for name in reads(node)} | {v.name for v in outputs}
    input_names = set(names(inputs))
    graph = helper.make_graph(
        nodes,
        name,
        [_info(value) for value in inputs],
        [_info(value) for value in outputs],
        [t for t in op.initializers if t.name in used and t.name not in input_names],
        value_info=_between(op, nodes, input_names | set(names(outputs))),
    )
    _name_apart(graph.node)
    model = helper.make_model(
        graph, opset_imports=op.opset_imports, ir_version=op.ir_version, producer_name="epochcost"
    )
    helper.set_model_props(model, dict(forward.metadata))
    try:
        onnx.checker.check_model(model)
    except onnx.checker.ValidationError as error:
        raise ModelError(f"the built graph is not valid ONNX: {error}") from None
    return model


def _name_apart(nodes: Iterable[onnx.NodeProto]) -> None:
    """Give every node a name of its own, after its output where it has none.

    ONNX Runtime names what it fuses after the nodes, and up to 1.20 refuses two of one name.
    """
    used: set[str] = set()
    for node in nodes:
        name = node.name
        while not name or name in used:
            name += next(filter(None, node.output))
        node.name = name
        used.add(name)


def _adopt(op: Builder, node: onnx.NodeProto) -> None:
    if _breaks_when_transposed(op, node):
        _resize_planes(op, node)
        return
    ranks = [op.values[name].rank for name in node.input if is_standard(node, "MatMul")]
    if ranks and ranks[0] > ranks[1] == 1:
        _multiply_column(op, node)
        return
    op.append(node)
    array = constant_value(node)
    if array is not None:
        op.learn_constant(node.output[0], array)


def _multiply_column(op: Builder, node: onnx.NodeProto) -> None:
    """Append the product of a matrix and a vector as that with a matrix of one column.

    ONNX Runtime 1.31 computes the former wrongly if the matrix comes from a Transpose, or if its
    optimizer moves one there.
    """
    b, y = op.values[node.input[1]], op.values[node.output[0]]
    inner = copied(node)
    inner.name = node.name or y.name
    inner.input[1] = op.Reshape(b, op.integers(b.size, 1)).name
    inner.output[0] = op.fresh("MatMul")
    op.append(inner)
    whole = op.integers(*y.shape)
    op.append(helper.make_node("Reshape", [inner.output[0], whole.name], [y.name]))


def _breaks_when_transposed(op: Builder, node: onnx.NodeProto) -> bool:
    """Whether ONNX Runtime refuses a Resize of images once its optimizer took a Transpose through.

    Up to 1.31 it does so on the CPU with whatever has four dimensions, but its cubic kernel demands
    the channels first, and ``axes`` stay those of before.
    """
    if node.op_type != "Resize" or node.domain:
        return False
    attributes = node_attributes(node)
    into, out = op.values[node.input[0]].shape, op.values[node.output[0]].shape
    constant = any(name and op.known(op.values[name]) is not None for name in node.input[_SCALES:])
    if len(into) != _IMAGE_RANK or into[:2] != out[:2] or not constant:
        return False
    if "axes" in attributes:
        return all(axis % _IMAGE_RANK in _SPATIAL for axis in attributes["axes"])
    return attributes.get("mode") == b"cubic"


def _resize_planes(op: Builder, node: onnx.NodeProto) -> None:
    """Append a Resize of [N, C, H, W] as one of [N · C, 1, H, W]: no Transpose passes a Reshape."""
    x, y = op.values[node.input[0]], op.values[node.output[0]]
    planes = (x.shape[0] * x.shape[1], 1)
    inner = copied(node)
    inner.name = node.name or y.name
    inner.input[0] = op.Reshape(x, op.integers(*planes, *x.shape[2:])).name
    inner.output[0] = op.fresh("Resize")
    if len(node.input) > _SIZES and not any(entry.name == "axes" for entry in node.attribute):
        sizes = op.known(op.values[node.input[_SIZES]])
        inner.input[_SIZES] = op.integers(*planes, *(y.shape if sizes is None else sizes)[2:]).name
    op.append(inner)
    whole = op.integers(*y.shape)
    op.append(helper.make_node("Reshape", [inner.output[0], whole.name], [y.name]))


def _info(value: Value) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(value.name, value.elem_type, list(value.shape))


def _between(
    op: Builder, nodes: Sequence[onnx.NodeProto], outer: set[str]
) -> list[onnx.ValueInfoProto]:
    """The intermediate values, declared so that readers of the graph need not infer shapes."""
    yielded = [name for node in nodes for name in node.output if name]
    return [_info(op.values[name]) for name in yielded if name not in outer]


def names(values: Iterable[Value]) -> tuple[str, ...]:
    """The names of values, in order."""
    return tuple(value.name for value in values)


def keep_outputs(model: onnx.ModelProto, outputs: Collection[str]) -> onnx.ModelProto:
    """A copy that yields these of the model's outputs, without what only the others need.

    Inputs stay, so that what is fed does not depend on what is asked for.
    """
    copy = copied(model)
    graph = copy.graph
    for place in reversed(range(len(graph.output))):
        if graph.output[place].name not in outputs:
            del graph.output[place]
    nodes = live_nodes(graph.node, outputs)
    del graph.node[:]
    graph.node.extend(nodes)
    return copy


def relabelled(nodes: Sequence[onnx.NodeProto], labels: Mapping[str, str]) -> list[onnx.NodeProto]:
    """The nodes with values renamed as ``labels`` says; unaffected nodes are not copied."""
    return [_relabel(node, labels) for node in nodes]


def _relabel(node: onnx.NodeProto, labels: Mapping[str, str]) -> onnx.NodeProto:
    if labels.keys().isdisjoint([*node.input, *node.output]):
        return node
    copy = copied(node)
    copy.input[:] = [labels.get(name, name) for name in node.input]
    copy.output[:] = [labels.get(name, name) for name in node.output]
    return copy
