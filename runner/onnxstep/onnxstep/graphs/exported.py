"""Origins of tensors and nodes, from the notes that PyTorch's exporters write into a file.

The tracing exporter stores one of several equal tensors, and Identity nodes for the others. The
dynamo exporter writes the kind of each input, and from what its optimizer computed a tensor.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection
from dataclasses import dataclass

import onnx
from onnx import numpy_helper

from onnxstep.graphs.nodes import copied, is_standard, set_nodes
from onnxstep.graphs.tensors import FLOAT_TYPES

KIND = "pkg.torch.export.graph_signature.InputSpec.kind"
PARAMETER = "PARAMETER"
# Metadata key with which onnxstep marks a tensor that the exporter had merged.
_APART = "epochcost.apart"
_FOLDED = "pkg.onnxscript.optimizer.folded_from"
_RULE = "pkg.onnxscript.rewriter.rule_name"
_FUSED_NORM = "FuseBatchNorm"
_SCOPES = "pkg.torch.onnx.name_scopes"
_TEXTS = re.compile(r"'([^']*)'")
_ATTRIBUTE = re.compile(r"(?!\d+$)[\w.]+")
_NUMBERED = re.compile(r"_\d+$")
# Name of a weight that tracing computed, by BatchNormalization or by weight normalization.
_TRACED_WEIGHT = re.compile(r"onnx::Conv(Transpose)?_\d+")
_OF_ONNX = re.compile(r"val_\d+")
_BUFFER = re.compile(
    r"(^|[._])(pe|freqs?|embed_(positions|scale)|ids|index|\w*mask|lifted_tensor_\d+)$"
)


@dataclass(frozen=True)
class Folded:
    """Parameters, buffers and operators from which an exporter's optimizer computed a tensor."""

    parameters: tuple[str, ...]
    buffers: tuple[str, ...]
    operators: frozenset[str]


def kinds(model: onnx.ModelProto) -> dict[str, str]:
    """Kind, such as "PARAMETER", of each input and initializer, as the dynamo exporter writes it.

    An initializer's kind counts before that of a graph input or ``value_info`` of the same name.
    """
    graph = model.graph
    return {
        value.name: entry.value
        for value in (*graph.value_info, *graph.input, *graph.initializer)
        for entry in value.metadata_props
        if entry.key == KIND
    }


def folded(model: onnx.ModelProto) -> dict[str, Folded]:
    """Origins of the tensors that the dynamo exporter's optimizer computed, by tensor name."""
    computed = {name for node in model.graph.node for name in node.output}
    return {
        value.name: _sort_origins(value.name, _TEXTS.findall(entry.value), computed)
        for value in model.graph.value_info
        for entry in value.metadata_props
        if entry.key == _FOLDED
    }


def _sort_origins(
    tensor_name: str, origins: Collection[str], node_outputs: Collection[str]
) -> Folded:
    """Sort a computed tensor's origins by name into parameters, buffers and operators.

    A parameter or buffer has a dot in its name, or is the only origin. The other names are those of
    operators' results: ``expand_1`` is a result of ``expand``. Names like ``val_3`` are ignored.
    """
    steps = {
        step
        for step in (tensor_name, *origins)
        if step not in node_outputs and not _OF_ONNX.fullmatch(step)
    }
    sources = {step for step in steps - {tensor_name} if "." in step or len(origins) == 1}
    buffers = {step for step in sources if _BUFFER.search(step)}
    operators = frozenset(_NUMBERED.sub("", step) for step in steps - sources)
    return Folded(tuple(sorted(sources - buffers)), tuple(sorted(buffers)), operators)


def is_attribute(name: str) -> bool:
    """Whether an initializer's ``name`` can be a PyTorch module's attribute, but not a buffer.

    In traced files, computed tensors are called ``onnx::Add_7``, say. Endings such as ``mask`` or
    ``ids`` mark buffers.
    """
    return bool(_ATTRIBUTE.fullmatch(name)) and not _BUFFER.search(name)


def is_traced(model: onnx.ModelProto) -> bool:
    """Whether PyTorch's tracing exporter wrote the file."""
    return model.producer_name == "pytorch" and not tells_origins(model)


def tells_origins(model: onnx.ModelProto) -> bool:
    """Whether the nodes have the metadata about origins that the dynamo exporter writes."""
    return any(node.metadata_props for node in model.graph.node)


def normalized(model: onnx.ModelProto) -> list[str]:
    """Names of weights and biases into which an exporter merged a batch or weight normalization."""
    traced = is_traced(model)
    names = (
        name
        for node in model.graph.node
        for name in node.input[1:]
        if any(e.key == _RULE and e.value.startswith(_FUSED_NORM) for e in node.metadata_props)
        or (traced and _TRACED_WEIGHT.fullmatch(name))
    )
    return list(dict.fromkeys(names))


def layer(node: onnx.NodeProto) -> str:
    """Path of the PyTorch module that contains a node; without a path, the node's name."""
    scopes = next((entry.value for entry in node.metadata_props if entry.key == _SCOPES), "")
    path = _TEXTS.findall(scopes)
    if path:
        return path[-2] if len(path) > 1 else ""
    if node.name.startswith("/"):
        return node.name[1:].rpartition("/")[0].replace("/", ".")
    return node.name or "".join(node.output[:1])


def merged(model: onnx.ModelProto) -> dict[str, str]:
    """Map each tensor that tracing probably merged into an equal tensor to the stored tensor.

    A tensor is listed if its numbers are all equal, or if the same operator reads it and the stored
    tensor. For a file that was not traced, the result is empty.
    """
    if not is_traced(model):
        return {}
    graph = model.graph
    floats = {
        tensor.name: tensor for tensor in graph.initializer if tensor.data_type in FLOAT_TYPES
    }
    outputs = {value.name for value in graph.output}
    readers: dict[str, set[str]] = defaultdict(set)
    copies: dict[str, str] = {}
    for node in graph.node:
        source, name = "".join(node.input[:1]), "".join(node.output[:1])
        if is_standard(node, "Identity") and source in floats:
            if not name.startswith("/") and not name.isdigit() and name not in outputs:
                copies[name] = source
        else:
            for read in node.input:
                readers[read].add(node.op_type)
    # Tensors read by different operators are probably shared on purpose, such as an embedding
    # and a tied last layer.
    return {
        name: source
        for name, source in copies.items()
        if is_uniform(floats[source]) or readers[name] & readers[source]
    }


def separated(model: onnx.ModelProto) -> onnx.ModelProto:
    """Copy that stores the tensors of ``merged`` separately; the model itself if there are none."""
    origins = merged(model)
    if not origins:
        return model
    answer = copied(model)
    graph = answer.graph
    stored = {tensor.name: tensor for tensor in model.graph.initializer}
    for name, source in origins.items():
        tensor = graph.initializer.add()
        tensor.CopyFrom(stored[source])
        tensor.name = name
        tensor.metadata_props.add(key=_APART, value=source)
    set_nodes(graph, (node for node in graph.node if origins.keys().isdisjoint(node.output)))
    return answer


def taken_apart(model: onnx.ModelProto) -> list[str]:
    """Names of the initializers that ``separated`` added for tensors that tracing had merged."""
    tensors = model.graph.initializer
    return [t.name for t in tensors if any(entry.key == _APART for entry in t.metadata_props)]


def is_uniform(tensor: onnx.TensorProto) -> bool:
    """Whether all numbers of a tensor are equal, as in untrained biases and scales."""
    array = numpy_helper.to_array(tensor)
    return bool(array.size) and bool((array == array.flat[0]).all())
