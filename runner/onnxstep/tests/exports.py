"""Small models like those that PyTorch's exporters write.

The exporters store equal tensors once (merged), compute tensors in advance (folded), or write the
origin of tensors into metadata.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import onnx
from numpy.typing import ArrayLike
from onnx import helper, numpy_helper

WEIGHTS = np.random.default_rng(0).standard_normal((3, 4, 4)).astype(np.float32)
ONES, ZEROS = np.ones(4, np.float32), np.zeros(4, np.float32)
_FOLDED = "pkg.onnxscript.optimizer.folded_from"
_KIND = "pkg.torch.export.graph_signature.InputSpec.kind"
_SCOPES = "pkg.torch.onnx.name_scopes"


def traced(nodes: Sequence[onnx.NodeProto], tensors: Mapping[str, ArrayLike]) -> onnx.ModelProto:
    """A model of ``nodes`` from x to y, both float[8, 4], as the tracing exporter writes it."""
    ends = [helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [8, 4]) for name in "xy"]
    initializers = [
        numpy_helper.from_array(np.asarray(a, np.float32), name) for name, a in tensors.items()
    ]
    graph = helper.make_graph(nodes, "main_graph", ends[:1], ends[1:], initializers)
    opsets = [helper.make_opsetid("", 17)]
    return helper.make_model(graph, producer_name="pytorch", opset_imports=opsets, ir_version=8)


def merged() -> onnx.ModelProto:
    """Two layers, each with a norm; Identity nodes let both norms share one scale and one bias."""
    return traced(
        [
            helper.make_node("Identity", ["0.norm.weight"], ["1.norm.weight"]),
            helper.make_node("Identity", ["0.norm.bias"], ["1.norm.bias"]),
            helper.make_node("MatMul", ["x", "0.weight"], ["a"], name="/0/MatMul"),
            _norm("a", "b", "0.norm"),
            helper.make_node("MatMul", ["b", "1.weight"], ["c"], name="/1/MatMul"),
            _norm("c", "y", "1.norm"),
        ],
        {
            "0.weight": WEIGHTS[0],
            "1.weight": WEIGHTS[1],
            "0.norm.weight": ONES,
            "0.norm.bias": ZEROS,
        },
    )


def _norm(x: str, y: str, layer: str, owner: str | None = None) -> onnx.NodeProto:
    scale, bias = (f"{owner or layer}.{name}" for name in ("weight", "bias"))
    path = "/" + layer.replace(".", "/")
    return helper.make_node("LayerNormalization", [x, scale, bias], [y], f"{path}/LayerNorm")


def without_identities() -> onnx.ModelProto:
    """Two layers whose norms read the same scale and bias directly, without Identity nodes."""
    model = merged()
    nodes = [node for node in model.graph.node if node.op_type != "Identity"]
    nodes[-1].input[1:] = ["0.norm.weight", "0.norm.bias"]
    del model.graph.node[:]
    model.graph.node.extend(nodes)
    return model


def optimised(
    origins: Mapping[str, Sequence[str]], tensors: Mapping[str, ArrayLike]
) -> onnx.ModelProto:
    """A model as the dynamo exporter writes it: y is x times ``0.weight``, plus all ``tensors``.

    ``origins`` gives, for each tensor that the exporter computed in advance (folded), the names of
    its source values. The metadata mark ``0.weight``, and the tensors that are not in ``origins``,
    as parameters.
    """
    names = ["product", *(f"sum_{index}" for index in range(1, len(tensors))), "y"]
    nodes = [helper.make_node("MatMul", ["x", "0.weight"], ["product"])]
    for index, name in enumerate(tensors):
        nodes.append(helper.make_node("Add", [names[index], name], [names[index + 1]]))
    model = traced(nodes, {"0.weight": WEIGHTS[0], **tensors})
    for index, node in enumerate(nodes):
        node.metadata_props.add(key=_SCOPES, value=f"['', '{index}', 'op_{index}']")
    for name in ("0.weight", *tensors):
        value = helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, None)
        if name in origins:
            value.metadata_props.add(key=_FOLDED, value=str(list(origins[name])))
        else:
            value.metadata_props.add(key=_KIND, value="PARAMETER")
        model.graph.value_info.append(value)
    return model
