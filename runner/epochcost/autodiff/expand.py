"""Operators that ONNX itself defines by others: without a rule of their own they become their body.

What has a rule, or is refused for a reason, stays as it is.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import onnx
from onnx import defs, helper, numpy_helper, shape_inference

from epochcost.autodiff import registry
from epochcost.errors import ModelError
from epochcost.graphs.functions import inlined

# A body may again contain such operators; ONNX's definitions nest two deep.
_DEEPEST = 8
_DOMAIN = "epochcost.bodies"
_LOSSES = frozenset({"NegativeLogLikelihoodLoss", "SoftmaxCrossEntropyLoss"})
Versions = Mapping[str, int]
Types = Mapping[str, onnx.TypeProto]


def expanded(model: onnx.ModelProto) -> onnx.ModelProto:
    """The model without operators that are known only by their body.

    Raises ModelError where onnx cannot put a body in its place.
    """
    versions = {entry.domain: entry.version for entry in model.opset_import}
    plain = model
    for _ in range(_DEEPEST):
        if not any(_has_only_a_body(node, versions) for node in plain.graph.node):
            break
        plain = inlined(_with_local_functions(plain, versions))
    return plain


def _with_local_functions(model: onnx.ModelProto, versions: Versions) -> onnx.ModelProto:
    """A copy in which each such node calls a local function with the body for its inputs."""
    local = shape_inference.infer_shapes(model)
    types = _types(local.graph)
    labels = _constants(local.graph)
    for node in local.graph.node:
        if _has_only_a_body(node, versions):
            _demand_classes(node, labels, types)
            body = _body(node, versions, types)
            body.domain, body.name = _DOMAIN, f"{node.op_type}_{len(local.functions)}"
            local.functions.append(body)
            node.domain, node.op_type = body.domain, body.name
    local.opset_import.append(helper.make_opsetid(_DOMAIN, 1))
    return local


def _constants(graph: onnx.GraphProto) -> Mapping[str, onnx.TensorProto]:
    nodes = (node for node in graph.node if node.op_type == "Constant" and not node.domain)
    held = {node.output[0]: entry.t for node in nodes for entry in node.attribute if entry.t.dims}
    return held | {tensor.name: tensor for tensor in graph.initializer}


def _demand_classes(
    node: onnx.NodeProto, held: Mapping[str, onnx.TensorProto], types: Types
) -> None:
    """Constant labels of a loss are classes: its body would count negative ones from the last."""
    if node.op_type not in _LOSSES or node.input[1] not in held or node.input[0] not in types:
        return
    labels = numpy_helper.to_array(held[node.input[1]])
    counted = labels != next((e.i for e in node.attribute if e.name == "ignore_index"), None)
    sizes = [dim.dim_value for dim in types[node.input[0]].tensor_type.shape.dim]
    classes = sizes[1] if len(sizes) > 1 and sizes[1] else np.inf
    wrong = labels[counted & ((labels < 0) | (labels >= classes))]
    if wrong.size:
        raise ModelError(
            f"node {node.name or node.output[0]!r} ({node.op_type}): demanded labels from 0 to "
            f"below the number of classes, {classes}; got {wrong.flat[0]}"
        )


def _has_only_a_body(node: onnx.NodeProto, versions: Versions) -> bool:
    version = versions.get(node.domain, 1)
    if not defs.has(node.op_type, version, node.domain):
        return False
    schema = defs.get_schema(node.op_type, version, node.domain)
    known = registry.answer(node.domain, node.op_type, schema.since_version)
    return known is None and bool(_body_versions(schema))


def _body(node: onnx.NodeProto, versions: Versions, types: Types) -> onnx.FunctionProto:
    """The definition of a node's operator; what the node leaves to defaults is written out."""
    version = versions.get(node.domain, 1)
    schema = defs.get_schema(node.op_type, version, node.domain)
    given = {attribute.name for attribute in node.attribute}
    node.attribute.extend(
        declared.default_value
        for name, declared in schema.attributes.items()
        if name not in given and declared.default_value.name
    )
    newest = max(v for v in _body_versions(schema) if v <= versions.get("", v))
    body = onnx.FunctionProto()
    body.ParseFromString(_serialized(schema, newest, node, types))
    del body.opset_import[:]
    body.opset_import.extend(helper.make_opsetid(*entry) for entry in versions.items())
    return body


def _body_versions(schema: defs.OpSchema) -> list[int]:
    plain = schema.function_opset_versions  # type: ignore[attr-defined]
    return [*plain, *schema.context_dependent_function_opset_versions]  # type: ignore[attr-defined]


def _serialized(schema: defs.OpSchema, version: int, node: onnx.NodeProto, types: Types) -> bytes:
    if version in schema.function_opset_versions:  # type: ignore[attr-defined]
        return bytes(schema.get_function_with_opset_version(version))  # type: ignore[attr-defined]
    inputs = [types.get(name, onnx.TypeProto()).SerializeToString() for name in node.input]
    return bytes(
        schema.get_context_dependent_function_with_opset_version(  # type: ignore[attr-defined]
            version, node.SerializeToString(), inputs
        )
    )


def _types(graph: onnx.GraphProto) -> Types:
    declared = {v.name: v.type for v in [*graph.input, *graph.value_info, *graph.output]}
    return declared | {
        tensor.name: helper.make_tensor_type_proto(tensor.data_type, list(tensor.dims))
        for tensor in graph.initializer
    }
