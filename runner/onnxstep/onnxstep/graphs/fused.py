"""Rewrite fused normalizations as operators of current ONNX versions.

ONNX Runtime's optimizers write nodes with operators that ONNX's domain lacks at the file's opset,
so onnx's checker refuses the file. ONNX Runtime fuses the rewritten nodes again when it loads the
model.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

from onnxstep.errors import ModelError
from onnxstep.graphs.nodes import copied, is_standard, node_attributes
from onnxstep.graphs.tensors import FLOAT_TYPES, HALF_TYPES, declared_values

# First opset with LayerNormalization, and first opset in which the axes of ReduceMean are an input.
_LAYER_NORMALIZATION, _AXES_ARE_INPUTS = 17, 18
_EPSILON = 1e-5


def unfuse(model: onnx.ModelProto) -> onnx.ModelProto:
    """Copy of the model with fused nodes rewritten; the model itself if there are none.

    Raises ModelError for a fused node whose inputs or attributes do not fit its operator.
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
    """Nodes that replace the fused ``node``; new names begin with the name of its first output."""

    def __init__(self, node: onnx.NodeProto, opset: int, elem_type: int) -> None:
        self.node, self.opset, self.elem_type = node, opset, elem_type
        self.nodes: list[onnx.NodeProto] = []
        self.attributes: Mapping[str, Any] = node_attributes(node)

    def add(self, op_type: str, *inputs: str, output: str = "", **attributes: Any) -> str:
        """Append a node with one output; return the output's name."""
        name = output or f"{self.node.output[0]}/{op_type}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(op_type, list(inputs), [name], **attributes))
        return name

    def output(self, place: int) -> str:
        """Name of the fused node's output with the index ``place``; "" if the node omits it."""
        return self.node.output[place] if place < len(self.node.output) else ""

    def constant(self, number: float, elem_type: int) -> str:
        dtype = helper.tensor_dtype_to_np_dtype(elem_type)
        return self.add("Constant", value=numpy_helper.from_array(np.array(number, dtype)))

    def cast(self, x: str, before: int, after: int) -> str:
        """Cast x from type ``before`` to ``after`` unless they are equal; return the new name."""
        return x if before == after else self.add("Cast", x, to=after)


def element_types(graph: onnx.GraphProto) -> Mapping[str, int]:
    """Element types of all values of a graph by name.

    onnx infers no types after an operator that it does not know. An undeclared value therefore gets
    the type in its node's attributes, or else the type of the node's first float operand.
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
    if is_standard(node, "SimplifiedLayerNormalization") and _over_last(node):
        return _simplified_layer_normalization
    is_early = is_standard(node, "LayerNormalization") and opset < _LAYER_NORMALIZATION
    return _layer_normalization if is_early and _over_last(node) else None


def _over_last(node: onnx.NodeProto) -> bool:
    return all(entry.i == -1 for entry in node.attribute if entry.name == "axis")


def _simplified_layer_normalization(parts: _Parts) -> None:
    """Emit x / √(mean x² + ε) · scale; the second output is 1 / √(mean x² + ε)."""
    _normalized(parts, _wide(parts))


def _layer_normalization(parts: _Parts) -> None:
    """Emit (x - mean) · r · scale + bias, mean and r, with r = 1 / √(variance + ε)."""
    x = _wide(parts)
    mean = _mean(parts, x, parts.output(1))
    _normalized(parts, parts.add("Sub", x, mean), place=2)


def _wide(parts: _Parts) -> str:
    """Cast the node's input to the type of mean and variance; return the name of the result."""
    return parts.cast(parts.node.input[0], parts.elem_type, _statistics(parts))


def _statistics(parts: _Parts) -> int:
    """Element type of mean and variance: float32 for half inputs, in which squares overflow."""
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
