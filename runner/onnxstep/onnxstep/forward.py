"""Copy a model's graph into a Builder, in file order; build a model from a Builder's graph."""

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
    set_nodes,
)
from onnxstep.update import Transition

# onnx writes its newest IR version by default, which older releases of ONNX Runtime refuse.
NEWEST_IR_VERSION = 10
# Rank and spatial axes of a batch of images; input indices of scales and sizes in Resize.
_IMAGE_RANK, _SPATIAL, _SCALES, _SIZES = 4, (2, 3), 2, 3


@dataclass(frozen=True)
class Forward:
    """A model's graph inside a Builder, with its inputs, outputs and metadata.

    ``op.nodes`` are the nodes that run. Gradients are derived from ``nodes``, in topological order.
    If a pass replaces a node, ``nodes`` keeps a single node with the same result. ``moves`` are the
    changes of tensors without a gradient in a step, such as running statistics.
    """

    op: Builder
    inputs: tuple[Value, ...]
    outputs: tuple[Value, ...]
    metadata: Mapping[str, str]
    nodes: tuple[onnx.NodeProto, ...] = ()
    moves: tuple[Transition, ...] = ()

    def value(self, name: str) -> Value:
        """The value called ``name``; if there is none, raises ModelError that lists the outputs."""
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
    """Copy a result of ``passes.prepare`` into a Builder.

    Raises ModelError for an output that no node computes.
    """
    graph, ir_version = model.graph, min(model.ir_version, NEWEST_IR_VERSION)
    op = builder(model.opset_import, ir_version, provider, blocked_convolutions)
    for tensor in graph.initializer:
        op.add_initializer(tensor)
    inputs = tuple(op.declare(i.name, i.type) for i in graph.input if i.name not in op.values)
    # A file may also declare values that a pass removed; their dimensions are still symbolic.
    outputs_of_nodes = {name for node in graph.node for name in node.output}
    for info in [*graph.value_info, *graph.output]:
        if info.name in outputs_of_nodes and info.name not in op.values:
            op.declare(info.name, info.type)
    for node in graph.node:
        _adopt(op, node)
    for info in graph.output:
        if info.name not in op.values:
            raise ModelError(
                f"output {info.name!r}: no node computes it; export the model again, or remove it"
            )
    # A file may list an output twice.
    outputs = tuple(op.values[name] for name in dict.fromkeys(info.name for info in graph.output))
    metadata = {entry.key: entry.value for entry in model.metadata_props}
    return Forward(op, inputs, outputs, metadata, tuple(op.nodes))


def close_model(
    forward: Forward, inputs: Sequence[Value], outputs: Sequence[Value], name: str
) -> onnx.ModelProto:
    """Build a model without unused nodes; raises ModelError if onnx's checker refuses the model."""
    op = forward.op
    input_names, output_names = set(names(inputs)), set(names(outputs))
    nodes = live_nodes([_relabel(node, op.labels) for node in op.nodes], output_names)
    used = {name for node in nodes for name in reads(node)} | output_names
    outer_names = {"", *input_names, *output_names}
    inner_names = [name for node in nodes for name in node.output if name not in outer_names]
    graph = helper.make_graph(
        nodes,
        name,
        [_info(value) for value in inputs],
        [_info(value) for value in outputs],
        [t for t in op.initializers if t.name in used and t.name not in input_names],
        value_info=[_info(op.values[name]) for name in inner_names],
    )
    _make_names_unique(graph.node)
    model = helper.make_model(
        graph, opset_imports=op.opset_imports, ir_version=op.ir_version, producer_name="epochcost"
    )
    helper.set_model_props(model, dict(forward.metadata))
    try:
        onnx.checker.check_model(model)
    except onnx.checker.ValidationError as error:
        raise ModelError(f"the built graph is not valid ONNX: {error}") from None
    return model


def _make_names_unique(nodes: Iterable[onnx.NodeProto]) -> None:
    # ONNX Runtime derives the names of fused nodes from these names. Versions up to 1.20 refuse
    # duplicates.
    used: set[str] = set()
    for node in nodes:
        name = node.name
        while not name or name in used:
            name += next(filter(None, node.output))
        node.name = name
        used.add(name)


def _adopt(op: Builder, node: onnx.NodeProto) -> None:
    if _breaks_when_transposed(op, node):
        _append_resize_of_planes(op, node)
        return
    ranks = [op.values[name].rank for name in node.input if is_standard(node, "MatMul")]
    if ranks and ranks[0] > ranks[1] == 1:
        _append_matrix_vector_product(op, node)
        return
    op.append(node)
    array = constant_value(node)
    if array is not None:
        op.learn_constant(node.output[0], array)


def _append_matrix_vector_product(op: Builder, node: onnx.NodeProto) -> None:
    """Append the matrix-vector product ``node`` as a product with a matrix of one column."""
    # ONNX Runtime 1.31 computes a matrix-vector product wrongly if a Transpose makes the matrix, or
    # if the graph optimizer moves a Transpose before the product.
    b, y = op.values[node.input[1]], op.values[node.output[0]]
    inner = copied(node)
    inner.name = node.name or y.name
    inner.input[1] = b.reshape(b.size, 1).name
    inner.output[0] = op.fresh("MatMul")
    _append_reshaped(op, inner, y)


def _append_reshaped(op: Builder, inner: onnx.NodeProto, y: Value) -> None:
    """Append ``inner``, and a Reshape of its output to the value ``y`` of the model."""
    op.append(inner)
    whole = op.integers(*y.shape)
    op.append(helper.make_node("Reshape", [inner.output[0], whole.name], [y.name]))


def _breaks_when_transposed(op: Builder, node: onnx.NodeProto) -> bool:
    """Whether ONNX Runtime would move a Transpose across this Resize and then fail.

    On the CPU, versions up to 1.31 move a Transpose across every Resize of rank 4. They do not
    adapt ``axes``, and a cubic kernel needs the channels before the spatial axes.
    """
    if node.op_type != "Resize" or node.domain:
        return False
    attributes = node_attributes(node)
    into, out = op.values[node.input[0]].shape, op.values[node.output[0]].shape
    scales = [op.values[name] for name in node.input[_SCALES:] if name]
    constant = any(op.array_of(value) is not None for value in scales)
    if len(into) != _IMAGE_RANK or into[:2] != out[:2] or not constant:
        return False
    if "axes" in attributes:
        return all(axis % _IMAGE_RANK in _SPATIAL for axis in attributes["axes"])
    return attributes.get("mode") == b"cubic"


def _append_resize_of_planes(op: Builder, node: onnx.NodeProto) -> None:
    """Resize x [N, C, H, W] as [N · C, 1, H, W], between two Reshapes."""
    # ONNX Runtime moves no Transpose across a Reshape.
    x, y = op.values[node.input[0]], op.values[node.output[0]]
    planes = (x.shape[0] * x.shape[1], 1)
    inner = copied(node)
    inner.name = node.name or y.name
    inner.input[0] = x.reshape(*planes, *x.shape[2:]).name
    inner.output[0] = op.fresh("Resize")
    if len(node.input) > _SIZES and not any(entry.name == "axes" for entry in node.attribute):
        sizes = op.array_of(op.values[node.input[_SIZES]])
        inner.input[_SIZES] = op.integers(*planes, *(y.shape if sizes is None else sizes)[2:]).name
    _append_reshaped(op, inner, y)


def _info(value: Value) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(value.name, value.elem_type, list(value.shape))


def names(values: Iterable[Value]) -> tuple[str, ...]:
    """The names of ``values``, in the same order."""
    return tuple(value.name for value in values)


def keep_outputs(model: onnx.ModelProto, outputs: Collection[str]) -> onnx.ModelProto:
    """Copy a model with only ``outputs`` and the nodes that they need; all inputs stay."""
    copy = copied(model)
    graph = copy.graph
    for place in reversed(range(len(graph.output))):
        if graph.output[place].name not in outputs:
            del graph.output[place]
    set_nodes(graph, live_nodes(graph.node, outputs))
    return copy


def _relabel(node: onnx.NodeProto, labels: Mapping[str, str]) -> onnx.NodeProto:
    """Rename values in a copy of ``node``; ``labels`` maps old names to new names."""
    if labels.keys().isdisjoint([*node.input, *node.output]):
        return node
    copy = copied(node)
    copy.input[:] = [labels.get(name, name) for name in node.input]
    copy.output[:] = [labels.get(name, name) for name in node.output]
    return copy
