"""Which tensors of a file are running statistics: read by BatchNormalization, trained by nothing.

What a training step does with them is left to ``autodiff``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import onnx

from epochcost.graphs.functions import inlined

DEFAULT_DOMAINS = ("", "ai.onnx")
# Of BatchNormalization's inputs: the running mean and the running variance.
STATISTICS = (3, 4)


def running_statistics(model: onnx.ModelProto) -> frozenset[str]:
    """The values that BatchNormalization reads as mean or variance, and nothing else reads.

    Reading through Identity counts as reading: exporters put it where they merged equal tensors.
    """
    graph = (inlined(model) if model.functions else model).graph
    origin = origins(graph.node)
    statistics: set[str] = set()
    others = {origin.get(value.name, value.name) for value in graph.output}
    for name, is_statistic in _reads(graph.node):
        (statistics if is_statistic else others).add(origin.get(name, name))
    return frozenset(statistics - others)


def origins(nodes: Iterable[onnx.NodeProto]) -> dict[str, str]:
    """By the output of each Identity, the value that it copies, through chains of them."""
    found: dict[str, str] = {}
    for node in nodes:
        if _is(node, "Identity"):
            found[node.output[0]] = found.get(node.input[0], node.input[0])
    return found


def is_batch_normalization(node: onnx.NodeProto) -> bool:
    """Whether a node is ONNX's own BatchNormalization."""
    return _is(node, "BatchNormalization")


def _reads(nodes: Iterable[onnx.NodeProto]) -> Iterator[tuple[str, bool]]:
    """Each value that a node takes, Identity apart, and whether it does so as a statistic."""
    for node in nodes:
        if _is(node, "Identity"):
            continue
        for index, name in enumerate(node.input):
            yield name, is_batch_normalization(node) and index in STATISTICS
        for inner in _subgraphs(node):
            yield from _reads(inner.node)


def _subgraphs(node: onnx.NodeProto) -> Iterator[onnx.GraphProto]:
    for attribute in node.attribute:
        if attribute.type == onnx.AttributeProto.GRAPH:
            yield attribute.g
        yield from attribute.graphs


def _is(node: onnx.NodeProto, op_type: str) -> bool:
    return node.op_type == op_type and node.domain in DEFAULT_DOMAINS
