"""Convert all float tensors of a model to another type, in nested graphs too."""

from __future__ import annotations

import copy

import numpy as np
import onnx
from onnx import AttributeProto, TensorProto, helper, numpy_helper

from onnxstep.graphs.tensors import FLOAT_TYPES

# Attributes of ONNX operators that name an element type.
_TYPE_ATTRIBUTES = frozenset(
    {"to", "dtype", "output_dtype", "output_datatype", "softmax_precision"}
)
# Operators whose statistics are float32 unless an attribute sets another type.
_COMPUTES_IN_ANOTHER = frozenset({"GroupNormalization"})


def in_type(model: onnx.ModelProto, elem_type: int) -> onnx.ModelProto:
    """Copy of a model in which all floats have the type ``elem_type``."""
    converted = copy.deepcopy(model)
    _convert_graph(converted.graph, elem_type)
    return converted


def _convert_graph(graph: onnx.GraphProto, elem_type: int) -> None:
    for value in [*graph.input, *graph.output, *graph.value_info]:
        if value.type.tensor_type.elem_type in FLOAT_TYPES:
            value.type.tensor_type.elem_type = elem_type
    for tensor in graph.initializer:
        _convert_tensor(tensor, elem_type)
    for node in graph.node:
        _convert_node(node, elem_type)


def _convert_node(node: onnx.NodeProto, elem_type: int) -> None:
    if node.op_type == "Constant":
        _store_floats_as_tensor(node)
    if node.op_type in _COMPUTES_IN_ANOTHER:
        attributes = [attribute for attribute in node.attribute if attribute.name != "stash_type"]
        del node.attribute[:]
        node.attribute.extend([*attributes, helper.make_attribute("stash_type", elem_type)])
    for attribute in node.attribute:
        _convert_attribute(attribute, elem_type)


def _store_floats_as_tensor(node: onnx.NodeProto) -> None:
    for attribute in node.attribute:
        if attribute.name in ("value_float", "value_floats"):
            tensor = numpy_helper.from_array(
                np.array(helper.get_attribute_value(attribute), np.float32)
            )
            attribute.CopyFrom(helper.make_attribute("value", tensor))


def _convert_attribute(attribute: AttributeProto, elem_type: int) -> None:
    if attribute.type == AttributeProto.GRAPH:
        _convert_graph(attribute.g, elem_type)
    elif attribute.type == AttributeProto.TENSOR:
        _convert_tensor(attribute.t, elem_type)
    elif attribute.name in _TYPE_ATTRIBUTES and attribute.i in FLOAT_TYPES:
        attribute.i = elem_type


def _convert_tensor(tensor: TensorProto, elem_type: int) -> None:
    if tensor.data_type in FLOAT_TYPES and tensor.data_type != elem_type:
        array = numpy_helper.to_array(tensor)
        wider = array.astype(helper.tensor_dtype_to_np_dtype(elem_type))
        tensor.CopyFrom(numpy_helper.from_array(wider, tensor.name))
