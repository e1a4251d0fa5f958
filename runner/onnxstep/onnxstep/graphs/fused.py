"""Rewrite normalizations that ONNX Runtime fused as operators of the file's opset.

onnx's checker refuses the fused operators. ONNX Runtime fuses the rewritten nodes again.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

from onnxstep.errors import ModelError
from onnxstep.graphs.nodes import (
    copied,
    default_opset,
    is_standard,
    node_attributes,
    set_nodes,
)
from onnxstep.graphs.tensors import FLOAT_TYPES, HALF_TYPES, declared_values

# First opset with LayerNormalization, and first opset in which the axes of ReduceMean are an input.
_LAYER_NORMALIZATION, _AXES_ARE_INPUTS = 17, 18
_EPSILON = 1e-5


def unfuse(model: onnx.ModelProto) -> onnx.ModelProto:
    """Copy of the model with fused nodes rewritten; the model itself if there are none.

    Raises ModelError for a fused node whose inputs or attributes do not fit its operator.
    """
    opset = default_opset(model)
    if not any(_is_fused(node, opset) for node in model.graph.node):
        return model
    answer = copied(model)
    types = element_types(model.graph)
    parts = (part for node in model.graph.node for part in _parts(node, opset, types))
    set_nodes(answer.graph, parts)
    return answer


class _UnfusedNodes:
    def __init__(self, node: onnx.NodeProto, opset: int, elem_type: int) -> None:
        self.fused_node, self.opset, self.elem_type = node, opset, elem_type
        self.nodes: list[onnx.NodeProto] = []
        self.attributes: Mapping[str, Any] = node_attributes(node)

    def add_node(
        self, op_type: str, *input_names: str, output_name: str = "", **attributes: Any
    ) -> str:
        output_name = output_name or f"{self.fused_node.output[0]}/{op_type}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(op_type, list(input_names), [output_name], **attributes))
        return output_name

    def output_name(self, index: int) -> str:
        return self.fused_node.output[index] if index < len(self.fused_node.output) else ""

    def constant(self, number: float, elem_type: int) -> str:
        dtype = helper.tensor_dtype_to_np_dtype(elem_type)
        return self.add_node("Constant", value=numpy_helper.from_array(np.array(number, dtype)))

    def cast_if_needed(self, x: str, old_type: int, new_type: int) -> str:
        return x if old_type == new_type else self.add_node("Cast", x, to=new_type)


def element_types(graph: onnx.GraphProto) -> Mapping[str, int]:
    """Element types of all values of a graph by name, also after operators unknown to onnx.

    An undeclared type comes from the node's attributes, or else from its first float operand.
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
    if not _is_fused(node, opset):
        return [node]
    try:
        parts = _UnfusedNodes(node, opset, types[node.input[:2][-1]])
        _write_parts(parts)
    except (ValueError, TypeError, AttributeError, IndexError, KeyError):
        raise ModelError(
            f"node {node.name!r}: the fused operator {node.op_type!r} does not fit its definition"
        ) from None
    return parts.nodes


def _is_fused(node: onnx.NodeProto, opset: int) -> bool:
    is_early = is_standard(node, "LayerNormalization") and opset < _LAYER_NORMALIZATION
    over_last = all(entry.i == -1 for entry in node.attribute if entry.name == "axis")
    return over_last and (is_early or is_standard(node, "SimplifiedLayerNormalization"))


def _write_parts(parts: _UnfusedNodes) -> None:
    """Emit (x - mean) · r · scale + bias, mean and r, with r = 1 / √(variance + ε).

    SimplifiedLayerNormalization has neither mean nor bias; its outputs are x · r · scale and r.
    """
    x = _input_in_statistics_type(parts)
    if parts.fused_node.op_type == "LayerNormalization":
        mean = _mean(parts, x, parts.output_name(1))
        _normalized(parts, parts.add_node("Sub", x, mean), place=2)
    else:
        _normalized(parts, x)


def _input_in_statistics_type(parts: _UnfusedNodes) -> str:
    return parts.cast_if_needed(parts.fused_node.input[0], parts.elem_type, _statistics_type(parts))


def _statistics_type(parts: _UnfusedNodes) -> int:
    # Squares overflow in float16.
    return onnx.TensorProto.FLOAT if parts.elem_type in HALF_TYPES else parts.elem_type


def _normalized(parts: _UnfusedNodes, x: str, place: int = 1) -> None:
    scale, *bias = parts.fused_node.input[1:]
    mean = _mean(parts, parts.add_node("Mul", x, x))
    epsilon = parts.constant(parts.attributes.get("epsilon", _EPSILON), _statistics_type(parts))
    root = parts.add_node("Sqrt", parts.add_node("Add", mean, epsilon))
    inverse = parts.add_node("Reciprocal", root, output_name=parts.output_name(place))
    unit = parts.cast_if_needed(
        parts.add_node("Mul", x, inverse), _statistics_type(parts), parts.elem_type
    )
    output_name = parts.output_name(0)
    if any(bias):
        parts.add_node("Add", parts.add_node("Mul", unit, scale), bias[0], output_name=output_name)
    else:
        parts.add_node("Mul", unit, scale, output_name=output_name)


def _mean(parts: _UnfusedNodes, x: str, output_name: str = "") -> str:
    if parts.opset < _AXES_ARE_INPUTS:
        return parts.add_node("ReduceMean", x, output_name=output_name, axes=[-1], keepdims=1)
    return parts.add_node(
        "ReduceMean", x, parts.add_node("Constant", value_ints=[-1]), output_name=output_name
    )
