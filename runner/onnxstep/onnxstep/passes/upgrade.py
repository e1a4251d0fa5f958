"""Convert models of opsets before 16 to opset 16, without changing what their nodes compute.

It corrects onnx's conversion of Upsample, Resize and Clip, and refuses Hardmax before opset 13.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
import onnx
from onnx import helper, version_converter

from onnxstep.errors import ModelError
from onnxstep.graphs.fused import element_types
from onnxstep.graphs.inference import require_operators
from onnxstep.graphs.nodes import (
    constant_node,
    constant_value,
    constants,
    is_standard,
    node_attributes,
    node_label,
    set_nodes,
)
from onnxstep.graphs.tensors import graphs, without_shapes

# Backward passes have the model's opset. From 13 on, axes of ReduceSum, Squeeze and Unsqueeze are
# inputs. From 14 on, Reshape has ``allowzero``. From 16 on, ScatterElements and ScatterND can add.
OLDEST_OPSET = 16
_ROWS_ARE_ONE_AXIS = 13
_COORDINATES_ARE_CHOSEN = _BOUNDS_ARE_INPUTS = 11
_SCALES = 2
_REFUSALS = (RuntimeError, onnx.shape_inference.InferenceError)


def upgrade(model: onnx.ModelProto, version: int) -> onnx.ModelProto:
    """Convert a model older than opset 16 to 16; raises ModelError if this is impossible."""
    if version >= OLDEST_OPSET:
        return model
    try:
        upgraded = _convert_with_onnx(model)
    except _REFUSALS as error:
        require_operators(model)
        reason = str(error).strip().splitlines()[0]
        raise ModelError(
            f"opset {version}: expected {OLDEST_OPSET} or newer, and onnx cannot convert "
            f"this model ({reason}); export it again at a newer opset"
        ) from None
    for graph in graphs(upgraded):
        types = element_types(graph)
        parts = (part for node in graph.node for part in _as_meant(node, graph, types, version))
        set_nodes(graph, parts)
    return upgraded


def _convert_with_onnx(model: onnx.ModelProto) -> onnx.ModelProto:
    try:
        return version_converter.convert_version(model, OLDEST_OPSET)
    except _REFUSALS:
        # Declared shapes may contradict the nodes.
        return version_converter.convert_version(without_shapes(model), OLDEST_OPSET)


def _as_meant(
    node: onnx.NodeProto, graph: onnx.GraphProto, types: Mapping[str, int], version: int
) -> Iterator[onnx.NodeProto]:
    # Before opset 13, Hardmax flattens all axes from its axis on into a row.
    if is_standard(node, "Hardmax") and version < _ROWS_ARE_ONE_AXIS:
        raise ModelError(
            f"{node_label(node)}: Hardmax of opset {version} is not converted; export the model "
            "again at a newer opset"
        )
    elif is_standard(node, "Resize") and version < _COORDINATES_ARE_CHOSEN:
        yield from _asymmetric_resize_nodes(node, graph)
    elif is_standard(node, "Clip") and version < _BOUNDS_ARE_INPUTS:
        yield from _clip_by_own_type(node, types)
    else:
        yield node


# onnx converts the bounds of Clip 6 to float32 inputs, even if Clip's data has another type.
def _clip_by_own_type(node: onnx.NodeProto, types: Mapping[str, int]) -> Iterator[onnx.NodeProto]:
    kind = types.get(node.input[0], onnx.TensorProto.FLOAT)
    for place, bound in enumerate(node.input):
        if bound and types.get(bound, kind) != kind:
            node.input[place] = f"{node.output[0]}/bound_{place}"
            yield helper.make_node("Cast", [bound], [node.input[place]], to=kind)
    yield node


def _asymmetric_resize_nodes(
    node: onnx.NodeProto, graph: onnx.GraphProto
) -> Iterator[onnx.NodeProto]:
    """Yield the nodes that replace a Resize from before opset 11, with asymmetric coordinates.

    In mode "nearest", coordinates are rounded as in ONNX Runtime: down along axes that grow, up
    along axes that shrink. If the scales are computed at run time, axes are assumed to grow.
    """
    mode = node_attributes(node).get("mode", b"nearest")
    scales = constant_value(constants(graph).get(node.input[_SCALES]))
    if mode != b"nearest" or scales is None or (scales >= 1).all():
        yield _resize(node, node.input[0], node.output[0], node.input[_SCALES], "floor")
    elif (scales <= 1).all():
        yield _resize(node, node.input[0], node.output[0], node.input[_SCALES], "ceil")
    else:
        grown = f"{node.output[0]}/grown"
        yield constant_node(f"{grown}/scales", np.maximum(scales, 1))
        yield _resize(node, node.input[0], grown, f"{grown}/scales", "floor")
        yield constant_node(f"{grown}/rest", np.minimum(scales, 1))
        yield _resize(node, grown, node.output[0], f"{grown}/rest", "ceil")


def _resize(node: onnx.NodeProto, x: str, y: str, scales: str, nearest_mode: str) -> onnx.NodeProto:
    attributes = {"mode": "nearest"} | node_attributes(node)
    attributes |= {"coordinate_transformation_mode": "asymmetric", "nearest_mode": nearest_mode}
    inputs = [x, node.input[1], scales]
    return helper.make_node("Resize", inputs, [y], name=node.name, **attributes)
