"""An If whose condition is known: the nodes of its branch, ready to stand in its place."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import onnx
from onnx import helper


def branch_nodes(node: onnx.NodeProto, condition: bool) -> Iterator[onnx.NodeProto]:
    """The branch taken, as nodes of the surrounding graph, which yield the If's own outputs.

    Values of the branch get names that begin with the If's first output, since two branches may
    use the same.
    """
    taken = "then_branch" if condition else "else_branch"
    [branch] = (attribute.g for attribute in node.attribute if attribute.name == taken)
    own = [tensor.name for tensor in branch.initializer]
    own += [name for child in branch.node for name in child.output if name]
    names = {name: f"{node.output[0]}/{name}" for name in own}
    for tensor in branch.initializer:
        yield helper.make_node("Constant", [], [names[tensor.name]], value=tensor)
    for child in branch.node:
        yield _renamed(child, names)
    for inner, outer in zip(branch.output, node.output, strict=False):
        if outer:
            yield helper.make_node("Identity", [names.get(inner.name, inner.name)], [outer])


def _renamed(node: onnx.NodeProto, names: Mapping[str, str]) -> onnx.NodeProto:
    copy = onnx.NodeProto()
    copy.CopyFrom(node)
    _rename(copy, names)
    return copy


def _rename(node: onnx.NodeProto, names: Mapping[str, str]) -> None:
    """Names inside nested graphs follow too: ONNX forbids them to hide those outside."""
    node.input[:] = [names.get(name, name) for name in node.input]
    node.output[:] = [names.get(name, name) for name in node.output]
    for attribute in node.attribute:
        for graph in [attribute.g, *attribute.graphs]:
            for child in graph.node:
                _rename(child, names)
            for value in graph.output:
                value.name = names.get(value.name, value.name)
