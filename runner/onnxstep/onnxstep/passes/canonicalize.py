"""Convert models to a common form, with static shapes, before differentiation."""

from __future__ import annotations

from collections.abc import Collection, Mapping

import onnx
from onnx import defs, helper

from onnxstep import registry
from onnxstep.errors import ModelError
from onnxstep.graphs.binding import UnknownShapeError, bind_dimensions
from onnxstep.graphs.functions import inline_functions
from onnxstep.graphs.fused import unfuse
from onnxstep.graphs.importer_quirks import drop_empty_scales, initializers_apart
from onnxstep.graphs.inference import check_nodes, infer_shapes
from onnxstep.graphs.tensors import declared_values, value_types
from onnxstep.passes.upgrade import OLDEST_OPSET, upgrade

_ALIAS = "ai.onnx"


def canonicalize(model: onnx.ModelProto) -> onnx.ModelProto:
    """Copy of a model with inlined functions, opset 16 or newer, and "ai.onnx" written as "".

    Initializers stop being inputs, and normalizations that ONNX Runtime fused are split. Raises
    ModelError for an invalid node or function call, and if an older opset cannot be upgraded.
    """
    plain = inline_functions(unfuse(model))
    check_nodes(plain)
    initializers_apart(plain)
    for node in plain.graph.node:
        node.domain = "" if node.domain == _ALIAS else node.domain
    versions = {
        "" if entry.domain == _ALIAS else entry.domain: entry.version
        for entry in plain.opset_import
    }
    # A graph of contributed operators may not import ONNX's default domain, which gradients need.
    versions.setdefault("", OLDEST_OPSET)
    del plain.opset_import[:]
    plain.opset_import.extend(helper.make_opsetid(*entry) for entry in versions.items())
    recent = upgrade(plain, versions[""])
    drop_empty_scales(recent)
    return recent


# A body may contain operators that have only a body, too. ONNX's own bodies nest at most two deep.
_DEEPEST = 8
_DOMAIN = "epochcost.bodies"
Versions = Mapping[str, int]
Types = Mapping[str, onnx.TypeProto]


def expand(model: onnx.ModelProto) -> onnx.ModelProto:
    """Copy of a model in which ONNX's function bodies replace operators unknown to ``registry``.

    Operators without a body stay. Raises ModelError if onnx cannot inline a body.
    """
    versions = {entry.domain: entry.version for entry in model.opset_import}
    plain = model
    for _ in range(_DEEPEST):
        if not any(_schema_with_only_a_body(node, versions) for node in plain.graph.node):
            break
        plain = inline_functions(_with_bodies_as_functions(plain, versions))
    return plain


def _with_bodies_as_functions(model: onnx.ModelProto, versions: Versions) -> onnx.ModelProto:
    local = infer_shapes(model)
    types = value_types(local.graph)
    for node in local.graph.node:
        if schema := _schema_with_only_a_body(node, versions):
            body = _function_body(node, schema, versions, types)
            body.domain, body.name = _DOMAIN, f"{node.op_type}_{len(local.functions)}"
            local.functions.append(body)
            node.domain, node.op_type = body.domain, body.name
    local.opset_import.append(helper.make_opsetid(_DOMAIN, 1))
    return local


def _schema_with_only_a_body(node: onnx.NodeProto, versions: Versions) -> defs.OpSchema | None:
    """Schema of an operator with a function body but no entry in ``registry``, else None."""
    version = versions.get(node.domain, 1)
    if not defs.has(node.op_type, version, node.domain):
        return None
    schema = defs.get_schema(node.op_type, version, node.domain)
    answer = registry.answer(node.domain, node.op_type, schema.since_version)
    return schema if answer is None and _body_versions(schema) else None


def _function_body(
    node: onnx.NodeProto, schema: defs.OpSchema, versions: Versions, types: Types
) -> onnx.FunctionProto:
    """The function body that ONNX defines for ``node``; adds default attributes to ``node``."""
    attributes = {attribute.name for attribute in node.attribute}
    node.attribute.extend(
        declared.default_value
        for name, declared in schema.attributes.items()
        if name not in attributes and declared.default_value.name
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


def bind(
    model: onnx.ModelProto, dimensions: Mapping[str, int], varying: Collection[str] = ()
) -> onnx.ModelProto:
    """Copy of a model with a static shape for every tensor.

    ``dimensions`` has sizes of symbolic dimensions. ``varying`` names stored tensors that must not
    be folded into constants. Raises ModelError for unknown dimensions, missing or invalid sizes,
    contradicting or data-dependent shapes, and outputs of nodes that are not tensors.
    """
    try:
        bound = bind_dimensions(model, dimensions, varying, plain_sequences=True)
    except UnknownShapeError as error:
        raise _with_refusal(error, error.domain, error.op_type) from None
    kinds = {value.name: value.type for value in declared_values(bound.graph)}
    for node in bound.graph.node:
        for name in node.output:
            if name in kinds and not kinds[name].HasField("tensor_type"):
                where = f"node {node.name or node.output[0]!r}: operator "
                problem = f"{node.domain or 'ai.onnx'}::{node.op_type}: {name!r} is not a tensor"
                raise _with_refusal(ModelError(where + problem), node.domain, node.op_type)
    return bound


def _with_refusal(error: ModelError, domain: str, op_type: str) -> ModelError:
    reason = registry.refusal(domain, op_type)
    return ModelError(f"{error}; it also has no gradient: {reason}") if reason else error
