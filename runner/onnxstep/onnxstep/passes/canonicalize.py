"""Convert models to a common form, with static shapes, before differentiation."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

import onnx
from onnx import defs, helper, inliner

from onnxstep import registry
from onnxstep.errors import ModelError
from onnxstep.graphs.binding import UnknownShapeError, bind_dimensions
from onnxstep.graphs.cuda_kernels import has_body
from onnxstep.graphs.functions import inline_functions
from onnxstep.graphs.fused import unfuse
from onnxstep.graphs.importer_quirks import drop_empty_scales, initializers_apart
from onnxstep.graphs.inference import check_nodes, infer_shapes
from onnxstep.graphs.tensors import declared_values, keep_declarations, one_line, value_types
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


def expand(model: onnx.ModelProto) -> onnx.ModelProto:
    """Copy of a model in which ONNX's function bodies replace operators unknown to ``registry``.

    Operators without a body stay. Raises ModelError if onnx cannot inline a body.
    """
    plain = model
    for _ in range(_DEEPEST):
        if not any(_nodes_with_only_a_body(plain)):
            break
        plain = _inline_bodies(infer_shapes(plain))
    return plain


def _inline_bodies(model: onnx.ModelProto) -> onnx.ModelProto:
    chosen = dict.fromkeys((n.domain, n.op_type) for n, _ in _nodes_with_only_a_body(model))
    for node, schema in _nodes_with_only_a_body(model):
        # onnx does not insert the default values of attributes.
        written = {attribute.name for attribute in node.attribute}
        defaults = [a.default_value for a in schema.attributes.values() if a.name not in written]
        node.attribute.extend(value for value in defaults if value.name)
    # onnx does not know the types of initializers and of omitted inputs, which are called "".
    declared = {value.name for value in declared_values(model.graph)}
    types = {"": onnx.TypeProto(), **value_types(model.graph)}
    added = {name: kind for name, kind in types.items() if name not in declared}
    for name, kind in added.items():
        model.graph.value_info.add(name=name, type=kind)
    try:
        plain = inliner.inline_selected_functions(model, [*chosen], inline_schema_functions=True)
    except (RuntimeError, onnx.checker.ValidationError) as error:
        raise ModelError(f"onnx cannot inline an operator's body: {one_line(error)}") from None
    keep_declarations(plain.graph, [v for v in plain.graph.value_info if v.name not in added])
    return plain


def _nodes_with_only_a_body(
    model: onnx.ModelProto,
) -> Iterator[tuple[onnx.NodeProto, defs.OpSchema]]:
    """Yield nodes whose operator has a function body but no entry in ``registry``, with schema."""
    versions = {entry.domain: entry.version for entry in model.opset_import}
    for node in model.graph.node:
        version = versions.get(node.domain, 1)
        if not defs.has(node.op_type, version, node.domain):
            continue
        schema = defs.get_schema(node.op_type, version, node.domain)
        answer = registry.answer(node.domain, node.op_type, schema.since_version)
        if answer is None and has_body(schema):
            yield node, schema


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
