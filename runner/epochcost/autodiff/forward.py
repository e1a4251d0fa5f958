"""Opening a model for differentiation: functions expanded, opset recent, every value known.

The nodes are copies, in the order of the file; what is done with them is left to ``vjp`` and
``step``.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import helper, numpy_helper

from epochcost.autodiff import registry
from epochcost.autodiff.builder import Builder, Provider, Value
from epochcost.autodiff.mixed_precision import Mixed
from epochcost.autodiff.passes.canonicalize import expanded, respelled
from epochcost.errors import ModelError
from epochcost.graphs.binding import UnknownShapeError, bind_dimensions
from epochcost.graphs.tensors import declared_values

# onnx stamps its newest IR version, which an ONNX Runtime released before it refuses.
NEWEST_IR_VERSION = 10
# Of a batch of images and their axes; the place of the sizes among the inputs of Resize.
_IMAGE_RANK, _SPATIAL, _SIZES = 4, (2, 3), 3
_CONSTANT_DTYPES: Mapping[str, type[np.generic]] = {
    "value_int": np.int64,
    "value_ints": np.int64,
    "value_float": np.float32,
    "value_floats": np.float32,
}


@dataclass(frozen=True)
class Forward:
    """A model's graph inside a Builder: values by name, nodes in topological order."""

    op: Builder
    inputs: tuple[Value, ...]
    outputs: tuple[Value, ...]
    metadata: Mapping[str, str]

    def value(self, name: str) -> Value:
        """A value of the graph by name; raises ModelError with the graph's outputs otherwise."""
        if name not in self.op.values:
            outputs = ", ".join(value.name for value in self.outputs)
            raise ModelError(f"no value is named {name!r}; the graph's outputs are {outputs}")
        return self.op.values[name]


def open_model(
    model: onnx.ModelProto,
    dimensions: Mapping[str, int] | None = None,
    provider: Provider | None = None,
    mixed: Mixed | None = None,
    varying: Collection[str] = (),
) -> Forward:
    """A copy of the model with static shapes inside a Builder.

    ``dimensions`` gives symbolic dimensions their sizes, ``provider`` says where the graph will
    run, ``mixed`` computes in half precision, ``varying`` is as for ``bind_dimensions``. Raises
    ModelError when a dimension stays unbound, or when an opset before 13 cannot be brought up to
    it.
    """
    bound = _bound(expanded(respelled(model)), dimensions or {}, varying)
    bound = mixed.rewritten(bound) if mixed else bound
    graph = bound.graph
    built = mixed.builder if mixed else Builder
    op = built(bound.opset_import, min(bound.ir_version, NEWEST_IR_VERSION), provider)
    for tensor in graph.initializer:
        op.add_initializer(tensor)
    held = {tensor.name for tensor in graph.initializer}
    inputs = tuple(
        op.declare(info.name, info.type) for info in graph.input if info.name not in held
    )
    for info in [*graph.value_info, *graph.output]:
        if info.name not in op.values:
            op.declare(info.name, info.type)
    for node in graph.node:
        _adopt(op, node)
    outputs = tuple(op.values[info.name] for info in graph.output)
    return Forward(op, inputs, outputs, {e.key: e.value for e in bound.metadata_props})


def _bound(
    model: onnx.ModelProto, dimensions: Mapping[str, int], varying: Collection[str]
) -> onnx.ModelProto:
    """With tensors of static shapes; an operator that yields others is named, with its refusal."""
    try:
        bound = bind_dimensions(model, dimensions, varying)
    except UnknownShapeError as error:
        raise _with_refusal(error, error.domain, error.op_type) from None
    kinds = {value.name: value.type for value in declared_values(bound.graph)}
    for node in bound.graph.node:
        for name in node.output:
            if name in kinds and not kinds[name].HasField("tensor_type"):
                where = f"node {node.name or node.output[0]!r}: operator "
                problem = f"{node.domain or 'ai.onnx'}::{node.op_type}: {name!r} is no tensor"
                raise _with_refusal(ModelError(where + problem), node.domain, node.op_type)
    return bound


def _with_refusal(error: ModelError, domain: str, op_type: str) -> ModelError:
    reason = registry.refusal(domain, op_type)
    return ModelError(f"{error}; nor can it be differentiated: {reason}") if reason else error


def close_model(
    forward: Forward, inputs: Sequence[Value], outputs: Sequence[Value], name: str
) -> onnx.ModelProto:
    """A checked ModelProto of the Builder's graph, without what no output needs."""
    op = forward.op
    nodes = live_nodes(relabelled(op.nodes, op.labels), [value.name for value in outputs])
    used = {name for node in nodes for name in used_names(node)} | {v.name for v in outputs}
    taken = set(names(inputs))
    graph = helper.make_graph(
        nodes,
        name,
        [_info(value) for value in inputs],
        [_info(value) for value in outputs],
        [t for t in op.initializers if t.name in used and t.name not in taken],
        value_info=_between(op, nodes, taken | set(names(outputs))),
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
    taken: set[str] = set()
    for node in nodes:
        name = node.name
        while not name or name in taken:
            name += next(filter(None, node.output))
        node.name = name
        taken.add(name)


def _adopt(op: Builder, node: onnx.NodeProto) -> None:
    if _breaks_when_transposed(op, node):
        _resize_planes(op, node)
        return
    op.append(node)
    if node.op_type == "Constant" and not node.domain:
        array = _constant(node.attribute[0])
        if array is not None:
            op.learn_constant(node.output[0], array)


def _breaks_when_transposed(op: Builder, node: onnx.NodeProto) -> bool:
    """Whether ONNX Runtime refuses a Resize of images once its optimizer took a Transpose through.

    Up to 1.31 it does so on the CPU with whatever has four dimensions, but its cubic kernel demands
    the channels first, and ``axes`` stay those of before.
    """
    if node.op_type != "Resize" or node.domain:
        return False
    given = {entry.name: helper.get_attribute_value(entry) for entry in node.attribute}
    into, out = op.values[node.input[0]].shape, op.values[node.output[0]].shape
    if len(into) != _IMAGE_RANK or into[:2] != out[:2]:
        return False
    if "axes" in given:
        return all(axis % _IMAGE_RANK in _SPATIAL for axis in given["axes"])
    return given.get("mode") == b"cubic" and "keep_aspect_ratio_policy" not in given


def _resize_planes(op: Builder, node: onnx.NodeProto) -> None:
    """Append a Resize of [N, C, H, W] as one of [N · C, 1, H, W]: no Transpose passes a Reshape."""
    x, y = op.values[node.input[0]], op.values[node.output[0]]
    planes = (x.shape[0] * x.shape[1], 1)
    inner = onnx.NodeProto()
    inner.CopyFrom(node)
    inner.name = node.name or y.name
    inner.input[0] = op.Reshape(x, op.integers(*planes, *x.shape[2:])).name
    inner.output[0] = op.fresh("Resize")
    if len(node.input) > _SIZES and not any(entry.name == "axes" for entry in node.attribute):
        inner.input[_SIZES] = op.integers(*planes, *y.shape[2:]).name
    op.append(inner)
    whole = op.integers(*y.shape)
    op.append(helper.make_node("Reshape", [inner.output[0], whole.name], [y.name]))


def _constant(attribute: onnx.AttributeProto) -> NDArray[Any] | None:
    """What a Constant node yields; None for strings and sparse tensors, which no rule reads."""
    value = helper.get_attribute_value(attribute)
    if attribute.name == "value":
        return numpy_helper.to_array(value)
    dtype = _CONSTANT_DTYPES.get(attribute.name)
    return None if dtype is None else np.array(value, dtype)


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


def pruned(model: onnx.ModelProto, outputs: Collection[str]) -> onnx.ModelProto:
    """A copy that yields these of the model's outputs, without what only the others need.

    Inputs stay, so that what is fed does not depend on what is asked for.
    """
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
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
    copy = onnx.NodeProto()
    copy.CopyFrom(node)
    copy.input[:] = [labels.get(name, name) for name in node.input]
    copy.output[:] = [labels.get(name, name) for name in node.output]
    return copy


def live_nodes(nodes: Sequence[onnx.NodeProto], outputs: Iterable[str]) -> list[onnx.NodeProto]:
    """The nodes that ``outputs`` depend on, in their order.

    ``nodes`` are in topological order.
    """
    needed = set(outputs)
    live: list[onnx.NodeProto] = []
    for node in reversed(nodes):
        if needed.isdisjoint(node.output):
            continue
        needed.update(used_names(node))
        live.append(node)
    return live[::-1]


def used_names(node: onnx.NodeProto) -> set[str]:
    """Every value that a node reads, those that its subgraphs take from outside included."""
    names = {name for name in node.input if name}
    for attribute in node.attribute:
        # Asking for a graph that is not there makes an empty one.
        graphs = [attribute.g, *attribute.graphs] if _is_graph(attribute) else ()
        for graph in graphs:
            inner = {name for child in graph.node for name in used_names(child)}
            own = {name for child in graph.node for name in child.output}
            names |= inner - own - {value.name for value in graph.input}
            names |= {value.name for value in graph.output} - own
    return names


def _is_graph(attribute: onnx.AttributeProto) -> bool:
    return attribute.HasField("g") or bool(attribute.graphs)
