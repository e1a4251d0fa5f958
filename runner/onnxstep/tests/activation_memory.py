"""Peak memory of a model's intermediate values if the nodes run in the order of the graph."""

from __future__ import annotations

import itertools
import math

import onnx

from onnxstep.graphs.nodes import reads
from onnxstep.graphs.tensors import static_shape, value_types


def value_bytes(model: onnx.ModelProto) -> dict[str, int]:
    """Size in bytes of each tensor whose type ``model`` declares, by tensor name."""
    return {
        name: math.prod(static_shape(kind) or ())
        * onnx.helper.tensor_dtype_to_np_dtype(kind.tensor_type.elem_type).itemsize
        for name, kind in value_types(model.graph).items()
    }


def running_nodes(model: onnx.ModelProto) -> list[onnx.NodeProto]:
    """The nodes that a runtime cannot fold: each reads at least one value that is not constant."""
    constants = {tensor.name for tensor in model.graph.initializer}
    nodes = []
    for node in model.graph.node:
        if constants.issuperset(filter(None, reads(node))):
            constants.update(node.output)
        else:
            nodes.append(node)
    return nodes


def peak_bytes(model: onnx.ModelProto) -> int:
    """Largest number of bytes of intermediate values that are alive at once.

    A value is alive from the node that writes it to the last node that reads it.
    """
    nodes, sizes = running_nodes(model), value_bytes(model)
    last = {name: place for place, node in enumerate(nodes) for name in reads(node)}
    change = [0] * (len(nodes) + 1)
    for place, node in enumerate(nodes):
        for name in node.output:
            if name in last:
                change[place] += sizes[name]
                change[last[name] + 1] -= sizes[name]
    return max(itertools.accumulate(change))
