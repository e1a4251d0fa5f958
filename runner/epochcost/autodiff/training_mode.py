"""Putting a graph into training mode, or out of it: exporters write either form.

Dropout is rewritten here; BatchNormalization, whose training form has statistics to carry along,
in ``batch_statistics``.
"""

from __future__ import annotations

import numpy as np
import onnx
from onnx import numpy_helper

from epochcost.graphs.running_statistics import is_batch_normalization

_TRUE = "epochcost/training_mode"


def in_training_mode(model: onnx.ModelProto, seed: int | None = None) -> onnx.ModelProto:
    """A copy whose Dropout nodes drop, with a fresh mask at each run.

    BatchNormalization is brought to inference form, from which ``batch_statistics`` begins. The
    model is as ``spelling.respelled`` leaves it; ``seed`` makes the sequence of masks repeatable.
    """
    trained = onnx.ModelProto()
    trained.CopyFrom(model)
    dropouts = [node for node in trained.graph.node if _is_dropout(node)]
    for index, node in enumerate(dropouts):
        _drop(node, None if seed is None else seed + index)
    _normalize_by_given(trained.graph)
    if dropouts:
        trained.graph.initializer.append(numpy_helper.from_array(np.array(True), _TRUE))
    return trained


def in_inference_mode(model: onnx.ModelProto) -> onnx.ModelProto:
    """A copy whose Dropout keeps everything and whose BatchNormalization has fixed statistics."""
    plain = onnx.ModelProto()
    plain.CopyFrom(model)
    for node in plain.graph.node:
        if _is_dropout(node):
            del node.input[2:]
    _normalize_by_given(plain.graph)
    return plain


def _normalize_by_given(graph: onnx.GraphProto) -> None:
    """Put BatchNormalization into inference form, which has one output."""
    for node in graph.node:
        if is_batch_normalization(node):
            del node.output[1:]
            _set(node, "training_mode", None)


def _is_dropout(node: onnx.NodeProto) -> bool:
    return node.op_type == "Dropout" and not node.domain


def _drop(node: onnx.NodeProto, seed: int | None) -> None:
    ratio = node.input[1] if len(node.input) > 1 else ""
    del node.input[1:]
    node.input.extend([ratio, _TRUE])
    if seed is not None:
        _set(node, "seed", seed)


def _set(node: onnx.NodeProto, name: str, value: int | None) -> None:
    """Give an attribute another value; None takes it away."""
    kept = [attribute for attribute in node.attribute if attribute.name != name]
    del node.attribute[:]
    node.attribute.extend(kept)
    if value is not None:
        node.attribute.append(onnx.helper.make_attribute(name, value))
