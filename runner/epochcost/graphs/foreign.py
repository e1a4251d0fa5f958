"""Habits of exporters that ONNX allows or overlooks, brought to the form that the rest reads.

Some (Paddle's among them) write an open dimension as -1, and weights as Constant nodes instead of
initializers. Old ones list every initializer among the inputs, as IR version 3 demands.
"""

from __future__ import annotations

import math

import onnx

from epochcost.graphs.metadata import METADATA_KEY
from epochcost.graphs.tensors import FLOATS, declared_values, graphs

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


def open_dimensions(model: onnx.ModelProto) -> None:
    """Sizes of -1 become unnamed open dimensions, in place."""
    for graph in graphs(model):
        for value in declared_values(graph):
            for dim in value.type.tensor_type.shape.dim:
                if dim.dim_value == -1:
                    dim.ClearField("dim_value")


def weights_to_initializers(model: onnx.ModelProto) -> None:
    """Constant nodes of several floats become initializers where a model has none, in place.

    A model with float initializers, or with a list of parameters, has its weights there.
    """
    graph = model.graph
    listed = any(entry.key == METADATA_KEY for entry in model.metadata_props)
    if listed or any(tensor.data_type in FLOATS for tensor in graph.initializer):
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
    return tensor.data_type in FLOATS and math.prod(tensor.dims) > 1
