"""Replace an If by the nodes of the branch that a constant condition selects."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import onnx
from onnx import helper

from onnxstep.graphs.nodes import copied, subgraphs


def branch_nodes(node: onnx.NodeProto, condition: bool, number: int) -> Iterator[onnx.NodeProto]:
    """The nodes of the branch that an If takes; they compute the If's outputs.

    The branch's own values get the suffix ``number``, so that names of different branches differ.
    """
    name_of_branch = "then_branch" if condition else "else_branch"
    [branch] = (attribute.g for attribute in node.attribute if attribute.name == name_of_branch)
    local = [tensor.name for tensor in branch.initializer]
    local += [name for child in branch.node for name in child.output if name]
    names = {name: f"{name}/branch_{number}" for name in local}
    for tensor in branch.initializer:
        yield helper.make_node("Constant", [], [names[tensor.name]], value=tensor)
    for child in branch.node:
        copy = copied(child)
        _rename_values(copy, names)
        yield copy
    for inner, outer in zip(branch.output, node.output, strict=False):
        if outer:
            yield helper.make_node("Identity", [names.get(inner.name, inner.name)], [outer])


def _rename_values(node: onnx.NodeProto, new_names: Mapping[str, str]) -> None:
    node.input[:] = [new_names.get(name, name) for name in node.input]
    node.output[:] = [new_names.get(name, name) for name in node.output]
    for graph in subgraphs(node):
        for child in graph.node:
            _rename_values(child, new_names)
        for value in graph.output:
            value.name = new_names.get(value.name, value.name)
