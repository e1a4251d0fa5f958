"""Finishing a list of nodes: final names, and no node that no output needs."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

import onnx


def pruned(model: onnx.ModelProto, outputs: Collection[str]) -> onnx.ModelProto:
    """A copy that yields these of the model's outputs, without what only the others need.

    Inputs stay, so that what is fed does not depend on what is asked for.
    """
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    graph = copy.graph
    for place in reversed(range(len(graph.output))):
        if graph.output[place].name not in outputs:
            del graph.output[place]
    nodes = live_nodes(graph.node, outputs)
    del graph.node[:]
    graph.node.extend(nodes)
    return copy


def relabelled(nodes: Sequence[onnx.NodeProto], labels: Mapping[str, str]) -> list[onnx.NodeProto]:
    """The nodes with values renamed as ``labels`` says; unaffected nodes are not copied."""
    return [_relabel(node, labels) for node in nodes]


def _relabel(node: onnx.NodeProto, labels: Mapping[str, str]) -> onnx.NodeProto:
    if labels.keys().isdisjoint([*node.input, *node.output]):
        return node
    copy = onnx.NodeProto()
    copy.CopyFrom(node)
    copy.input[:] = [labels.get(name, name) for name in node.input]
    copy.output[:] = [labels.get(name, name) for name in node.output]
    return copy


def live_nodes(nodes: Sequence[onnx.NodeProto], outputs: Iterable[str]) -> list[onnx.NodeProto]:
    """The nodes that ``outputs`` depend on, in their order.

    ``nodes`` are in topological order.
    """
    needed = set(outputs)
    live: list[onnx.NodeProto] = []
    for node in reversed(nodes):
        if needed.isdisjoint(node.output):
            continue
        needed.update(used_names(node))
        live.append(node)
    return live[::-1]


def used_names(node: onnx.NodeProto) -> set[str]:
    """Every value that a node reads, those that its subgraphs take from outside included."""
    names = {name for name in node.input if name}
    for attribute in node.attribute:
        # Asking for a graph that is not there makes an empty one.
        graphs = [attribute.g, *attribute.graphs] if _is_graph(attribute) else ()
        for graph in graphs:
            inner = {name for child in graph.node for name in used_names(child)}
            own = {name for child in graph.node for name in child.output}
            names |= inner - own - {value.name for value in graph.input}
            names |= {value.name for value in graph.output} - own
    return names


def _is_graph(attribute: onnx.AttributeProto) -> bool:
    return attribute.HasField("g") or bool(attribute.graphs)
