"""An If whose condition is known: the nodes of its branch, ready to stand in its place."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import onnx
from onnx import helper


def branch_nodes(node: onnx.NodeProto, condition: bool, number: int) -> Iterator[onnx.NodeProto]:
    """The branch taken, as nodes of the surrounding graph, which yield the If's own outputs.

    ``number`` tells it from other branches, which may use the same names: values get it as an end.
    Names of what surrounds the branch would double with each If in it that hides its parent's.
    """
    taken = "then_branch" if condition else "else_branch"
    [branch] = (attribute.g for attribute in node.attribute if attribute.name == taken)
    own = [tensor.name for tensor in branch.initializer]
    own += [name for child in branch.node for name in child.output if name]
    names = {name: f"{name}/branch_{number}" for name in own}
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
