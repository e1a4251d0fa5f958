"""Type and shape inference by onnx, after checks for nodes that crash onnx.

Such nodes end the process, or send onnx 1.23 into an endless loop that ignores signals. The script
tests/fuzzing.py searches for further ones.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import onnx
from numpy.typing import NDArray
from onnx import helper, numpy_helper, shape_inference

from onnxstep.errors import ModelError
from onnxstep.graphs.contrib import DOMAIN
from onnxstep.graphs.nodes import (
    DEFAULT_DOMAINS,
    all_nodes,
    default_opset,
    nested_nodes,
    node_attributes,
    node_label,
)
from onnxstep.graphs.tensors import FLOAT_TYPES, one_line

# Largest number of elements of a constant that inference reads, such as a shape. A constant with a
# number for each output of a node may be longer.
MAX_SHAPE_CONSTANT = 64
_TERM = rb"[A-Za-z ]*(?:\.\.\.[A-Za-z ]*)?"
_EQUATION = re.compile(rb"%b(?:,%b)*(?:->%b)?" % (_TERM, _TERM, _TERM))
# A product with weights of few bits reads the other factor, the weights and their scales.
_FEW_BITS_INPUTS = 3
# onnx stores an axis in a C++ int.
_AXES = range(-(2**31), 2**31)


def infer_shapes(model: onnx.ModelProto, *, strict: bool = False) -> onnx.ModelProto:
    """Copy of a model with the types and shapes that onnx infers.

    Raises ModelError for types that contradict the declared types, and for nodes that crash onnx.
    With ``strict``, also raises ModelError for nodes that do not fit their inputs.
    """
    check_nodes(model)
    try:
        return shape_inference.infer_shapes(model, check_type=strict, strict_mode=strict)
    except (shape_inference.InferenceError, ValueError, TypeError, RuntimeError) as error:
        raise ModelError(f"shapes or types contradict each other: {one_line(error)}") from None


def inferred_types(
    node: onnx.NodeProto,
    schema: onnx.defs.OpSchema,
    types: Mapping[str, onnx.TypeProto],
    constants: Mapping[str, NDArray[Any]],
    opset_imports: list[onnx.OperatorSetIdProto],
    ir_version: int,
) -> dict[str, onnx.TypeProto]:
    """Types of a node's outputs by name; raises InferenceError if the inputs do not fit.

    ``constants`` has arrays of constant inputs. Raises ModelError for a node that crashes onnx.
    """
    _check([node])
    names = [name for name in node.input if name]
    longest = max(MAX_SHAPE_CONSTANT, len(node.output))
    data = {
        name: numpy_helper.from_array(constants[name], name)
        for name in names
        if name in constants and constants[name].size <= longest
    }
    operand_types = {name: types[name] for name in names}
    try:
        if not schema.has_type_and_shape_inference_function:
            # onnx infers the types from the operator's function body.
            return _infer_types_from_body(node, operand_types, opset_imports, ir_version)
        return shape_inference.infer_node_outputs(
            schema, node, operand_types, data, None, opset_imports, ir_version
        )
    except (onnx.checker.ValidationError, ValueError) as error:
        raise shape_inference.InferenceError(str(error)) from None


def _infer_types_from_body(
    node: onnx.NodeProto,
    input_types: Mapping[str, onnx.TypeProto],
    opset_imports: list[onnx.OperatorSetIdProto],
    ir_version: int,
) -> dict[str, onnx.TypeProto]:
    inputs = [helper.make_value_info(name, kind) for name, kind in input_types.items()]
    outputs = [helper.make_empty_tensor_value_info(name) for name in filter(None, node.output)]
    graph = helper.make_graph([node], "node", inputs, outputs)
    model = helper.make_model(graph, opset_imports=opset_imports, ir_version=ir_version)
    inferred = shape_inference.infer_shapes(model, check_type=True, strict_mode=True)
    return {value.name: value.type for value in inferred.graph.output}


def check_nodes(model: onnx.ModelProto) -> None:
    """Raise ModelError if the model, a nested graph or a function has a node that crashes onnx."""
    _check(all_nodes(model))


def require_operators(model: onnx.ModelProto) -> None:
    """Raise ModelError if a node's operator does not exist in the model's opset of ONNX."""
    opset = default_opset(model)
    if opset not in range(1, onnx.defs.onnx_opset_version() + 1):
        return  # The opset itself is unknown, so no operator is to blame.
    for node in nested_nodes(model.graph.node):
        if node.domain in DEFAULT_DOMAINS and not onnx.defs.has(node.op_type, opset, ""):
            raise ModelError(
                f"{node_label(node)}: opset {opset} of ONNX has no such operator; export the "
                "model again at a newer opset, or as other operators"
            )


def _check(nodes: Iterable[onnx.NodeProto]) -> None:
    for node in nodes:
        if node.domain in (*DEFAULT_DOMAINS, DOMAIN) and node.op_type in _CHECKED:
            for fault in _CHECKED[node.op_type](node):
                raise ModelError(
                    f"{node_label(node)}: expected {fault}; correct the node, or export the model "
                    "again"
                )


def _einsum(node: onnx.NodeProto) -> Iterator[str]:
    for entry in node.attribute:
        if entry.name == "equation" and not _EQUATION.fullmatch(entry.s):
            yield (
                "an equation of letters, commas, one arrow and at most one ellipsis for each "
                f"operand, got {entry.s!r:.80}"
            )


def _gather_nd(node: onnx.NodeProto) -> Iterator[str]:
    axes = node_attributes(node).get("batch_dims", 0)
    if axes < 0:
        yield f"batch_dims of at least 0, got {axes}"


def _layer_normalization(node: onnx.NodeProto) -> Iterator[str]:
    attributes = node_attributes(node)
    if attributes.get("axis", -1) not in _AXES:
        yield f"an axis of its input, got {attributes['axis']}"
    if attributes.get("stash_type", onnx.TensorProto.FLOAT) not in FLOAT_TYPES:
        yield f"a float type as stash_type, such as 1 (float32), got {attributes['stash_type']}"


def _few_bits_matmul(node: onnx.NodeProto) -> Iterator[str]:
    if not node_attributes(node).keys() >= {"K", "N"} or len(node.input) < _FEW_BITS_INPUTS:
        yield "the attributes K and N, and weights and scales as inputs"


def _split(node: onnx.NodeProto) -> Iterator[str]:
    parts = node_attributes(node).get("num_outputs", len(node.output))
    if parts != len(node.output):
        yield f"as many outputs as num_outputs, {parts}, got {len(node.output)}"


_CHECKED = {
    "Einsum": _einsum,
    "GatherND": _gather_nd,
    "LayerNormalization": _layer_normalization,
    "MatMulNBits": _few_bits_matmul,
    "Split": _split,
}
