"""Convert unusual notations of exporters, such as Paddle's, into standard ONNX."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterable
from graphlib import CycleError, TopologicalSorter

import onnx
from onnx import helper

from onnxstep.errors import ModelError, ModelWarning
from onnxstep.graphs.contrib import DOMAIN, VERSION
from onnxstep.graphs.functions import inline_functions
from onnxstep.graphs.inference import infer_shapes
from onnxstep.graphs.initial import METADATA_KEY
from onnxstep.graphs.nodes import (
    constant_value,
    copied,
    is_standard,
    nested_nodes,
    reads,
    set_nodes,
)
from onnxstep.graphs.tensors import FLOAT_TYPES, declared_values, graphs, keep_declarations

# Input indices of Resize.
_SCALES, _SIZES = 2, 3
# Input index of a convolution's bias.
_BIAS = 2
# First IR version in which initializers need not be inputs.
_INITIALIZERS_APART = 4


def initializers_apart(model: onnx.ModelProto) -> None:
    """Remove initializers, which IR version 3 lists as inputs, from the inputs, in place."""
    model.ir_version = max(model.ir_version, _INITIALIZERS_APART)
    stored = {tensor.name for tensor in model.graph.initializer}
    fed = [value for value in model.graph.input if value.name not in stored]
    if len(fed) < len(model.graph.input):
        del model.graph.input[:]
        model.graph.input.extend(fed)


def complete_header(model: onnx.ModelProto) -> None:
    """Add fields that onnx's checker requires and ONNX Runtime does not, in place.

    The fields are the graph's name, the version of ONNX Runtime's operators, and the IR version.
    """
    model.graph.name = model.graph.name or "graph"
    imported = {entry.domain for entry in model.opset_import}
    if DOMAIN not in imported and any(n.domain == DOMAIN for n in nested_nodes(model.graph.node)):
        model.opset_import.append(helper.make_opsetid(DOMAIN, VERSION))
    fed = {value.name for value in model.graph.input}
    if any(tensor.name not in fed for tensor in model.graph.initializer):
        model.ir_version = max(model.ir_version, _INITIALIZERS_APART)


def sort_nodes(model: onnx.ModelProto) -> None:
    """Sort nodes topologically, in place and with a warning; a sorted graph stays as it is.

    A graph with a cycle also stays as it is, because onnx's checker reports the cycle.
    """
    for graph in graphs(model):
        if _is_sorted(graph):
            continue
        makers = {
            name: place for place, node in enumerate(graph.node) for name in node.output if name
        }
        sorter = TopologicalSorter(
            {
                place: {makers[name] for name in reads(node) if name in makers}
                for place, node in enumerate(graph.node)
            }
        )
        try:
            order = list(sorter.static_order())
        except CycleError:
            return
        set_nodes(graph, (copied(graph.node[place]) for place in order))
        warnings.warn(
            f"graph {graph.name!r}: its nodes are not in topological order; onnxstep sorted them",
            ModelWarning,
            stacklevel=2,
        )


def _is_sorted(graph: onnx.GraphProto) -> bool:
    later = {name for node in graph.node for name in node.output if name}
    for node in graph.node:
        if not later.isdisjoint(reads(node)):
            return False
        later.difference_update(node.output)
    return True


def open_dimensions(model: onnx.ModelProto) -> None:
    """Turn dimensions of size -1, as Paddle writes them, into unnamed symbolic ones, in place."""
    for graph in graphs(model):
        for value in declared_values(graph):
            for dim in value.type.tensor_type.shape.dim:
                if dim.dim_value == -1:
                    dim.ClearField("dim_value")


def complete_declarations(model: onnx.ModelProto, check: Callable[[onnx.ModelProto], None]) -> None:
    """Give outputs without type or shape the type and shape that onnx infers, in place.

    Shapes may stay unknown. ``check`` validates the model. Raises ModelError if ``check`` does, if
    an output's type cannot be inferred, or if an input is declared without type or shape.
    """
    for nested in graphs(model):
        keep_declarations(nested, [v for v in nested.value_info if v.type.WhichOneof("value")])
    graph = model.graph
    for value in graph.input:
        if not _is_declared(value.type):
            raise ModelError(
                f"input {value.name!r}: expected an element type and a shape; declare "
                "them, with names for dimensions that vary"
            )
    partial = [value for value in graph.output if not _is_declared(value.type)]
    written = [copied(value.type) for value in partial]
    for value in partial:
        value.type.tensor_type.elem_type = onnx.TensorProto.FLOAT
        value.type.tensor_type.shape.SetInParent()
    # onnx's inference crashes on invalid nodes.
    check(model)
    for value, kind in zip(partial, written, strict=True):
        value.type.CopyFrom(kind)
    if partial:
        _infer_outputs(model, partial)


def _infer_outputs(model: onnx.ModelProto, outputs: Iterable[onnx.ValueInfoProto]) -> None:
    plain = inline_functions(model) if model.functions else model
    inferred = {v.name: v.type for v in infer_shapes(plain).graph.output}
    for value in outputs:
        if inferred[value.name].WhichOneof("value"):
            value.type.CopyFrom(inferred[value.name])
        if not value.type.WhichOneof("value") or _lacks_element_type(value.type):
            raise ModelError(
                f"output {value.name!r}: expected an element type, which onnx cannot infer; "
                "declare it"
            )


def _is_declared(kind: onnx.TypeProto) -> bool:
    if kind.WhichOneof("value") != "tensor_type":
        return kind.WhichOneof("value") is not None
    return not _lacks_element_type(kind) and kind.tensor_type.HasField("shape")


def _lacks_element_type(kind: onnx.TypeProto) -> bool:
    return kind.HasField("tensor_type") and not kind.tensor_type.elem_type


def drop_empty_scales(model: onnx.ModelProto) -> None:
    """Remove empty ``scales`` of a Resize with ``sizes``, in place; opsets after 11 forbid them."""
    empty = {tensor.name for tensor in model.graph.initializer if 0 in tensor.dims}
    for value in model.graph.input:
        dims = value.type.tensor_type.shape.dim
        if any(dim.HasField("dim_value") and dim.dim_value == 0 for dim in dims):
            empty.add(value.name)
    for node in model.graph.node:
        has_sizes = is_standard(node, "Resize") and len(node.input) > _SIZES
        if has_sizes and node.input[_SCALES] in empty:
            node.input[_SCALES] = ""


def without_zero_biases(model: onnx.ModelProto) -> onnx.ModelProto:
    """Remove zero biases of convolutions, in place; CUDA would add them in an extra pass."""
    zeros = {
        node.output[0]
        for node in model.graph.node
        if (array := constant_value(node)) is not None
        and array.dtype.kind == "f"
        and not array.any()
    }
    for node in model.graph.node:
        if is_standard(node, "Conv") and zeros.intersection(node.input[_BIAS:]):
            del node.input[_BIAS:]
    return model


def drop_constant_shapes(model: onnx.ModelProto) -> None:
    """Remove declarations of Constant outputs, in place; onnxruntime-genai writes wrong shapes."""
    for graph in graphs(model):
        origins = {
            name for node in graph.node if is_standard(node, "Constant") for name in node.output
        }
        keep_declarations(graph, [value for value in graph.value_info if value.name not in origins])


def weights_to_initializers(model: onnx.ModelProto) -> None:
    """Turn Constant nodes with more than one float into initializers, in place.

    A model is not changed if it has float initializers or if its metadata list the parameters.
    """
    graph = model.graph
    listed = any(entry.key == METADATA_KEY for entry in model.metadata_props)
    if listed or any(tensor.data_type in FLOAT_TYPES for tensor in graph.initializer):
        return
    for node in filter(_is_weight, graph.node):
        tensor = graph.initializer.add()
        tensor.CopyFrom(node.attribute[0].t)
        tensor.name = node.output[0]
    set_nodes(graph, (node for node in graph.node if not _is_weight(node)))


def _is_weight(node: onnx.NodeProto) -> bool:
    if node.op_type != "Constant" or node.domain or len(node.attribute) != 1:
        return False
    tensor = node.attribute[0].t
    return tensor.data_type in FLOAT_TYPES and math.prod(tensor.dims) > 1
