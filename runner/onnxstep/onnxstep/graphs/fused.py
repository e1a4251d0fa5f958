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
from onnxstep.graphs.nodes import copied, default_opset, is_standard, node_attributes, set_nodes
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
    """Nodes that replace a fused node; ``wide`` is the element type of its statistics."""

    def __init__(self, node: onnx.NodeProto, opset: int, elem_type: int) -> None:
        self.fused_node, self.opset, self.elem_type = node, opset, elem_type
        # Squares overflow in float16.
        self.wide = onnx.TensorProto.FLOAT if elem_type in HALF_TYPES else elem_type
        self.nodes: list[onnx.NodeProto] = []

    def add_node(
        self, op_type: str, *input_names: str, output_name: str = "", **attributes: Any
    ) -> str:
        output_name = output_name or f"{self.fused_node.output[0]}/{op_type}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(op_type, list(input_names), [output_name], **attributes))
        return output_name

    def output_name(self, index: int) -> str:
        return self.fused_node.output[index] if index < len(self.fused_node.output) else ""

    def cast(self, x: str, elem_type: int) -> str:
        return x if self.wide == self.elem_type else self.add_node("Cast", x, to=elem_type)

    def mean(self, x: str, output_name: str = "") -> str:
        if self.opset < _AXES_ARE_INPUTS:
            return self.add_node("ReduceMean", x, output_name=output_name, axes=[-1], keepdims=1)
        axes = self.add_node("Constant", value_ints=[-1])
        return self.add_node("ReduceMean", x, axes, output_name=output_name)


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
    node, add = parts.fused_node, parts.add_node
    x, place = parts.cast(node.input[0], parts.wide), 1
    if node.op_type == "LayerNormalization":
        x, place = add("Sub", x, parts.mean(x, parts.output_name(1))), 2
    variance = parts.mean(add("Mul", x, x))
    number = node_attributes(node).get("epsilon", _EPSILON)
    epsilon = np.array(number, helper.tensor_dtype_to_np_dtype(parts.wide))
    stored = add("Constant", value=numpy_helper.from_array(epsilon))
    root = add("Sqrt", add("Add", variance, stored))
    inverse = add("Reciprocal", root, output_name=parts.output_name(place))
    unit = parts.cast(add("Mul", x, inverse), parts.elem_type)
    scale, *bias = node.input[1:]
    if any(bias):
        add("Add", add("Mul", unit, scale), bias[0], output_name=parts.output_name(0))
    else:
        add("Mul", unit, scale, output_name=parts.output_name(0))
