# /// script
# requires-python = ">=3.11"
# dependencies = ["onnx==1.23.2"]
# ///
"""Turning an exported ONNX model weightless, and writing it the same byte for byte every time.

The exporters beside this module import it by path. It owns what the files in this folder have in
common; what a network looks like is known in its exporter.

A weightless file holds no weights: its parameters and running statistics are graph inputs, and the
metadata says how their first values are drawn. What exporters leave behind of the machine that ran
them (stack traces, names of Python classes, paths) is taken out, so that the file can be reviewed
and made again.
"""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Iterable, Iterator, Mapping
from fnmatch import fnmatchcase
from pathlib import Path
from types import MappingProxyType

import onnx

Distribution = Mapping[str, str | float]
METADATA_KEY = "epochcost.parameters"
STATE_KEY = "epochcost.state"
# Of batch normalization, as PyTorch names and starts them.
_RUNNING = {".running_mean": 0.0, ".running_var": 1.0}


def weightless(
    exported: onnx.ModelProto,
    name: str,
    trainable: Collection[str],
    initial: Mapping[str, Distribution] = MappingProxyType({}),
) -> onnx.ModelProto:
    """The checked weightless form of an exported model, its graph called ``name``.

    The initializers named in ``trainable`` and the running statistics become graph inputs after
    the data inputs, in the exporter's order; others stay. ``initial`` gives distributions by shell
    pattern of names; the first that matches is taken, before the defaults. Raises ValueError when a
    trainable one is not in the graph.
    """
    model = onnx.ModelProto()
    model.CopyFrom(exported)
    model.graph.name = name
    parameters = _take(model.graph, trainable)
    state = _take(model.graph, _running(model.graph))
    model.graph.input.extend(
        onnx.helper.make_tensor_value_info(tensor.name, tensor.data_type, list(tensor.dims))
        for tensor in (*parameters, *state)
    )
    _to_inference(model.graph)
    _strip(model)
    listed = {METADATA_KEY: _metadata(parameters, initial)}
    if state:
        listed[STATE_KEY] = _metadata(state, {})
    onnx.helper.set_model_props(model, listed)
    onnx.checker.check_model(model, full_check=True)
    return model


def save(model: onnx.ModelProto, path: Path) -> None:
    """Write the file; the same model gives the same bytes."""
    path.write_bytes(model.SerializeToString(deterministic=True))


def parameter_count(model: onnx.ModelProto) -> int:
    """How many numbers the listed parameters have."""
    listed = json.loads({entry.key: entry.value for entry in model.metadata_props}[METADATA_KEY])
    return sum(
        math.prod(dim.dim_value for dim in value.type.tensor_type.shape.dim)
        for value in model.graph.input
        if value.name in listed
    )


def _take(graph: onnx.GraphProto, trainable: Collection[str]) -> list[onnx.TensorProto]:
    """The trainable initializers, taken out of the graph."""
    parameters = [tensor for tensor in graph.initializer if tensor.name in trainable]
    lost = set(trainable) - {tensor.name for tensor in parameters}
    if lost:
        raise ValueError(f"the exporter renamed or folded {sorted(lost)}; export unoptimized")
    for tensor in parameters:
        graph.initializer.remove(tensor)
    return parameters


def _running(graph: onnx.GraphProto) -> list[str]:
    return [tensor.name for tensor in graph.initializer if tensor.name.endswith(tuple(_RUNNING))]


def _metadata(parameters: Iterable[onnx.TensorProto], initial: Mapping[str, Distribution]) -> str:
    """The list of tensors as JSON, each with a seed of its own."""
    listed = {
        tensor.name: {**_chosen(tensor, initial), "seed": seed}
        for seed, tensor in enumerate(parameters)
    }
    return json.dumps(listed, separators=(",", ":"))


def _chosen(tensor: onnx.TensorProto, initial: Mapping[str, Distribution]) -> Distribution:
    for pattern, distribution in initial.items():
        if fnmatchcase(tensor.name, pattern):
            return distribution
    return _distribution(tensor.name, tuple(tensor.dims))


def _distribution(name: str, shape: tuple[int, ...]) -> dict[str, str | float]:
    """Keras' defaults: biases are zero, a weight [out, in, *kernel] is Glorot-uniform.

    The gain of a normalization, a weight of one dimension, is one.

    Glorot and Bengio, "Understanding the difficulty of training deep feedforward neural networks"
    (AISTATS 2010), equation 16.
    """
    if name.endswith(".bias"):
        return {"distribution": "constant", "scale": 0.0}
    for suffix, first in _RUNNING.items():
        if name.endswith(suffix):
            return {"distribution": "constant", "scale": first}
    if name.endswith(".weight") and len(shape) == 1:
        return {"distribution": "constant", "scale": 1.0}
    if len(shape) < 2:
        raise ValueError(f"{name}: no initial distribution is known for the shape {shape}")
    kernel = math.prod(shape[2:])
    fan_out, fan_in = shape[0] * kernel, shape[1] * kernel
    return {"distribution": "uniform", "scale": math.sqrt(6 / (fan_in + fan_out))}


def _to_inference(graph: onnx.GraphProto) -> None:
    """Leave out Dropout's third input and BatchNormalization's further outputs: inference form."""
    for node in graph.node:
        if node.op_type == "BatchNormalization":
            del node.output[1:]
            kept = [entry for entry in node.attribute if entry.name != "training_mode"]
            del node.attribute[:]
            node.attribute.extend(kept)
        if node.op_type == "Dropout":
            del node.input[2:]
            del node.output[1:]
    used = {name for node in graph.node for name in node.input}
    for node in list(graph.node):
        if node.op_type == "Constant" and node.output[0] not in used:
            graph.node.remove(node)


def _strip(model: onnx.ModelProto) -> None:
    """Remove what describes the exporting machine, and put attributes in one order."""
    model.doc_string = model.producer_name = model.producer_version = ""
    del model.metadata_props[:]
    del model.graph.value_info[:]
    for message in _described(model.graph):
        message.doc_string = ""
        del message.metadata_props[:]
    for node in model.graph.node:
        node.attribute.sort(key=lambda attribute: attribute.name)


def _described(
    graph: onnx.GraphProto,
) -> Iterator[onnx.GraphProto | onnx.NodeProto | onnx.ValueInfoProto | onnx.TensorProto]:
    yield graph
    yield from graph.initializer
    yield from graph.node
    yield from graph.input
    yield from graph.output
