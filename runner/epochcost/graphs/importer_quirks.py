"""What exporters and optimizers write that the rest does not read, brought to plain ONNX.

Some exporters (Paddle's among them) write an open dimension as -1, and weights as Constant nodes
instead of initializers. Old ones list every initializer among the inputs, as IR version 3 demands.
ONNX Runtime's optimizers fuse operators: some of the fused stand in ONNX's own domain, which does
not know them (onnx's checker refuses the file), and some are a product or convolution with an
activation in one node. ONNX Runtime fuses them again when it loads the model. What onnx's checker
demands of a file and ONNX Runtime does not is completed.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterable, Mapping
from graphlib import CycleError, TopologicalSorter
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

from epochcost.errors import ModelError, ModelWarning
from epochcost.graphs.contrib import DOMAIN, VERSION
from epochcost.graphs.functions import inline_functions
from epochcost.graphs.inference import infer_shapes
from epochcost.graphs.initial import METADATA_KEY
from epochcost.graphs.nodes import copied, is_standard, nested_nodes, node_attributes, reads
from epochcost.graphs.tensors import (
    FLOAT_TYPES,
    HALF_TYPES,
    declared_values,
    graphs,
    keep_declarations,
    one_line,
)

# From this IR version on, an initializer need not be an input; one that is can be overridden.
_INITIALIZERS_APART = 4


def initializers_apart(model: onnx.ModelProto) -> None:
    """Inputs that the file gives a value are initializers only, in place: nobody feeds them."""
    model.ir_version = max(model.ir_version, _INITIALIZERS_APART)
    held = {tensor.name for tensor in model.graph.initializer}
    fed = [value for value in model.graph.input if value.name not in held]
    if len(fed) < len(model.graph.input):
        del model.graph.input[:]
        model.graph.input.extend(fed)


def complete_header(model: onnx.ModelProto) -> None:
    """Write what onnx's checker demands and ONNX Runtime does not, in place.

    That is a name of the graph, the version of ONNX Runtime's own operators where some are used,
    and an IR version by which initializers need not be inputs where some are none.
    """
    model.graph.name = model.graph.name or "graph"
    imported = {entry.domain for entry in model.opset_import}
    if DOMAIN not in imported and any(n.domain == DOMAIN for n in nested_nodes(model.graph.node)):
        model.opset_import.append(helper.make_opsetid(DOMAIN, VERSION))
    fed = {value.name for value in model.graph.input}
    if any(tensor.name not in fed for tensor in model.graph.initializer):
        model.ir_version = max(model.ir_version, _INITIALIZERS_APART)


def sort_nodes(model: onnx.ModelProto) -> None:
    """Bring nodes behind those that they read, in place; a graph whose nodes are stays as it is.

    Nodes on a circle stay behind all others, for the checker to name.
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
        nodes = [copied(graph.node[place]) for place in order]
        del graph.node[:]
        graph.node.extend(nodes)
        warnings.warn(
            f"graph {graph.name!r}: its nodes are not in the order of their computation; sorted",
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
    """Sizes of -1 become unnamed open dimensions, in place."""
    for graph in graphs(model):
        for value in declared_values(graph):
            for dim in value.type.tensor_type.shape.dim:
                if dim.dim_value == -1:
                    dim.ClearField("dim_value")


def complete_declarations(model: onnx.ModelProto, check: Callable[[onnx.ModelProto], None]) -> None:
    """Give outputs without a type or shape those that onnx infers, in place.

    A shape may stay unknown until the dimensions are bound. Values between inputs and outputs that
    are listed without a type go. Raises ModelError for an output whose type onnx cannot tell, for
    an input without a type, and as ``check``, which sees the model with a type and shape of every
    output: onnx's inference, which runs after it, bears no invalid nodes.
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
    check(model)
    for value, kind in zip(partial, written, strict=True):
        value.type.CopyFrom(kind)
    if partial:
        _infer_outputs(model, partial)


def _infer_outputs(model: onnx.ModelProto, outputs: Iterable[onnx.ValueInfoProto]) -> None:
    plain = inline_functions(model) if model.functions else model
    try:
        inferred = {v.name: v.type for v in infer_shapes(plain).graph.output}
    except onnx.shape_inference.InferenceError as error:
        raise ModelError(f"the types of outputs cannot be inferred: {one_line(error)}") from None
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
    """Leave out the empty scales that a Resize by sizes has beside them, in place.

    Up to opset 11 all inputs had to be there; onnx allows one of the two since.
    """
    empty = {tensor.name for tensor in model.graph.initializer if 0 in tensor.dims}
    for value in model.graph.input:
        if any(
            dim.dim_value == 0 and dim.HasField("dim_value")
            for dim in value.type.tensor_type.shape.dim
        ):
            empty.add(value.name)
    for node in model.graph.node:
        if (
            is_standard(node, "Resize")
            and len(node.input) > _SIZES
            and node.input[_SCALES] in empty
        ):
            node.input[_SCALES] = ""


def constants_speak_for_themselves(model: onnx.ModelProto) -> None:
    """Shapes that are declared of Constant nodes go, in place; the nodes say them themselves.

    onnxruntime-genai's builder declares scalars where its constants are lists of one number.
    """
    for graph in graphs(model):
        said = {
            name for node in graph.node if is_standard(node, "Constant") for name in node.output
        }
        keep_declarations(graph, [value for value in graph.value_info if value.name not in said])


def weights_to_initializers(model: onnx.ModelProto) -> None:
    """Constant nodes of several floats become initializers where a model has none, in place.

    A model with float initializers, or with a list of parameters, has its weights there.
    """
    graph = model.graph
    listed = any(entry.key == METADATA_KEY for entry in model.metadata_props)
    if listed or any(tensor.data_type in FLOAT_TYPES for tensor in graph.initializer):
        return
    for node in filter(_is_weight, graph.node):
        tensor = graph.initializer.add()
        tensor.CopyFrom(node.attribute[0].t)
        tensor.name = node.output[0]
    kept = [node for node in graph.node if not _is_weight(node)]
    del graph.node[:]
    graph.node.extend(kept)


def _is_weight(node: onnx.NodeProto) -> bool:
    if node.op_type != "Constant" or node.domain or len(node.attribute) != 1:
        return False
    tensor = node.attribute[0].t
    return tensor.data_type in FLOAT_TYPES and math.prod(tensor.dims) > 1


# LayerNormalization came into ONNX at 17, and the axes of ReduceMean became an input at 18. From
# 18 to 20, GroupNormalization had a scale for each group; onnx takes it for deprecated there.
_GROUP_NORMALIZATION = 21
_LAYER_NORMALIZATION, _AXES_ARE_INPUTS = 17, 18
# Add and Mul have broadcast as numpy does since then.
_BROADCASTS = 7
# Places among the inputs of Resize.
_SCALES, _SIZES = 2, 3
_PARAMETERS = ("alpha", "beta", "gamma")
_EPSILON = 1e-5


def unfuse(model: onnx.ModelProto) -> onnx.ModelProto:
    """The model without fused nodes; a copy where there are any.

    Raises ModelError for a fused node that does not fit its definition.
    """
    opset = next((e.version for e in model.opset_import if e.domain in ("", "ai.onnx")), 1)
    if not any(_rule(node, opset) for node in model.graph.node):
        return model
    answer = copied(model)
    types = element_types(model.graph)
    parts = [part for node in model.graph.node for part in _parts(node, opset, types)]
    del answer.graph.node[:]
    answer.graph.node.extend(parts)
    return answer


class _Parts:
    """The nodes that take a fused node's place; their values are named after its first output."""

    def __init__(self, node: onnx.NodeProto, opset: int, elem_type: int) -> None:
        self.node, self.opset, self.elem_type = node, opset, elem_type
        self.nodes: list[onnx.NodeProto] = []
        self.attributes: Mapping[str, Any] = node_attributes(node)

    def add(self, op_type: str, *inputs: str, output: str = "", **attributes: Any) -> str:
        """Append a node of one output and return the output's name."""
        name = output or f"{self.node.output[0]}/{op_type}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(op_type, list(inputs), [name], **attributes))
        return name

    def output(self, place: int) -> str:
        """The fused node's output, "" where it is left out."""
        return self.node.output[place] if place < len(self.node.output) else ""

    def constant(self, number: float, elem_type: int) -> str:
        """A scalar of an element type."""
        dtype = helper.tensor_dtype_to_np_dtype(elem_type)
        return self.add("Constant", value=numpy_helper.from_array(np.array(number, dtype)))

    def shape(self, *sizes: int) -> str:
        """A constant shape."""
        return self.add("Constant", value=numpy_helper.from_array(np.array(sizes, np.int64)))

    def cast(self, x: str, before: int, after: int) -> str:
        """A value in another element type; itself where it has that type already."""
        return x if before == after else self.add("Cast", x, to=after)


def element_types(graph: onnx.GraphProto) -> Mapping[str, int]:
    """Element types by name; of values that nobody declares, that of the first float operand.

    onnx infers nothing behind an operator that it does not know.
    """
    types = {tensor.name: tensor.data_type for tensor in graph.initializer}
    types |= {v.name: v.type.tensor_type.elem_type for v in declared_values(graph)}
    for node in graph.node:
        operands = [types[name] for name in node.input if types.get(name) in FLOAT_TYPES]
        written = [entry.i for entry in node.attribute if entry.name == "to"]
        written += [entry.t.data_type for entry in node.attribute if entry.name == "value"]
        for name in node.output:
            types.setdefault(name, next(iter([*written, *operands]), onnx.TensorProto.FLOAT))
    return types


def _parts(node: onnx.NodeProto, opset: int, types: Mapping[str, int]) -> list[onnx.NodeProto]:
    rule = _rule(node, opset)
    if rule is None:
        return [node]
    try:
        parts = _Parts(node, opset, types[node.input[:2][-1]])
        rule(parts)
    except (ValueError, TypeError, AttributeError, IndexError, KeyError):
        raise ModelError(
            f"node {node.name!r}: the fused operator {node.op_type!r} does not fit its definition"
        ) from None
    return parts.nodes


def _rule(node: onnx.NodeProto, opset: int) -> Callable[[_Parts], None] | None:
    if node.domain in ("", "ai.onnx"):
        if node.op_type == "SimplifiedLayerNormalization" and _over_last(node):
            return _simplified_layer_normalization
        if node.op_type == "ImageScaler" and opset >= _BROADCASTS:
            return _image_scaler
        if node.op_type == "GroupNormalization" and opset < _GROUP_NORMALIZATION:
            return _group_normalization
        if node.op_type == "LayerNormalization" and opset < _LAYER_NORMALIZATION:
            return _layer_normalization if _over_last(node) else None
    return _FUSED.get(node.op_type) if node.domain == DOMAIN else None


def _over_last(node: onnx.NodeProto) -> bool:
    return all(entry.i == -1 for entry in node.attribute if entry.name == "axis")


def _simplified_layer_normalization(parts: _Parts) -> None:
    """X / √(mean x² + ε) · scale; the second output is the reciprocal."""
    _normalized(parts, _wide(parts))


def _layer_normalization(parts: _Parts) -> None:
    """The same of x - mean, plus a bias; the second output is the mean."""
    x = _wide(parts)
    mean = _mean(parts, x, parts.output(1))
    _normalized(parts, parts.add("Sub", x, mean), place=2)


def _group_normalization(parts: _Parts) -> None:
    """InstanceNormalization of the groups as channels: scale and bias are those of groups."""
    x, scale, bias = parts.node.input
    groups = parts.attributes["num_groups"]
    rows = parts.add("Reshape", x, parts.shape(0, groups, -1))
    scale, bias = (parts.add("Expand", given, parts.shape(groups)) for given in (scale, bias))
    epsilon = parts.attributes.get("epsilon", _EPSILON)
    unit = parts.add("InstanceNormalization", rows, scale, bias, epsilon=epsilon)
    parts.add("Reshape", unit, parts.add("Shape", x), output=parts.output(0))


def _image_scaler(parts: _Parts) -> None:
    """Images times a number, plus one for each channel: ONNX had it on trial."""
    bias = np.array(parts.attributes["bias"]).reshape(-1, 1, 1)
    dtype = helper.tensor_dtype_to_np_dtype(parts.elem_type)
    added = parts.add("Constant", value=numpy_helper.from_array(bias.astype(dtype)))
    factor = parts.constant(parts.attributes.get("scale", 1.0), parts.elem_type)
    scaled = parts.add("Mul", parts.node.input[0], factor)
    parts.add("Add", scaled, added, output=parts.output(0))


def _wide(parts: _Parts) -> str:
    """The input in the element type of the statistics."""
    return parts.cast(parts.node.input[0], parts.elem_type, _statistics(parts))


def _statistics(parts: _Parts) -> int:
    """The runtime takes the squares of half numbers, which overflow, in float32."""
    return onnx.TensorProto.FLOAT if parts.elem_type in HALF_TYPES else parts.elem_type


def _normalized(parts: _Parts, x: str, place: int = 1) -> None:
    scale, *bias = parts.node.input[1:]
    mean = _mean(parts, parts.add("Mul", x, x))
    epsilon = parts.constant(parts.attributes.get("epsilon", _EPSILON), _statistics(parts))
    root = parts.add("Sqrt", parts.add("Add", mean, epsilon))
    inverse = parts.add("Reciprocal", root, output=parts.output(place))
    unit = parts.cast(parts.add("Mul", x, inverse), _statistics(parts), parts.elem_type)
    if not any(bias):
        parts.add("Mul", unit, scale, output=parts.output(0))
        return
    parts.add("Add", parts.add("Mul", unit, scale), bias[0], output=parts.output(0))


def _mean(parts: _Parts, x: str, output: str = "") -> str:
    if parts.opset < _AXES_ARE_INPUTS:
        return parts.add("ReduceMean", x, output=output, axes=[-1], keepdims=1)
    return parts.add("ReduceMean", x, parts.add("Constant", value_ints=[-1]), output=output)


def _fused_gemm(parts: _Parts) -> None:
    """A Gemm, then its activation."""
    own = {key: v for key, v in parts.attributes.items() if not key.startswith("activation")}
    product = parts.add("Gemm", *parts.node.input, **own)
    given = (parts.attributes.get(f"activation_{key}") for key in _PARAMETERS)
    numbers = {key: v for key, v in zip(_PARAMETERS, given, strict=True) if v is not None}
    _activated(parts, product, numbers)


def _fused_conv(parts: _Parts) -> None:
    """A Conv, plus its fourth input, then its activation."""
    own = {key: v for key, v in parts.attributes.items() if not key.startswith("activation")}
    inputs = [*parts.node.input, "", ""]
    product = parts.add("Conv", *inputs[: 3 if inputs[2] else 2], **own)
    total = parts.add("Add", product, inputs[3]) if inputs[3] else product
    numbers = parts.attributes.get("activation_params", [])
    _activated(parts, total, dict(zip(_PARAMETERS, numbers, strict=False)))


def _activated(parts: _Parts, x: str, numbers: Mapping[str, float]) -> None:
    """The activation by its name; "Clip" of a fused convolution is bounded by its numbers."""
    op_type = parts.attributes.get("activation", b"").decode()
    if op_type == "Clip":
        bounds = [parts.constant(number, parts.elem_type) for number in numbers.values()]
        parts.add("Clip", x, *bounds, output=parts.output(0))
        return
    parts.add(op_type or "Identity", x, output=parts.output(0), **numbers)


_FUSED: Mapping[str, Callable[[_Parts], None]] = {
    "FusedConv": _fused_conv,
    "FusedGemm": _fused_gemm,
}
