"""Inline local functions, after a check of how large the graph becomes, and branches of If."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import onnx
from onnx import helper, inliner

from onnxstep.errors import ModelError
from onnxstep.graphs.nodes import copied, nested_nodes, subgraphs
from onnxstep.graphs.tensors import one_line

# Nested calls multiply a graph. Exporters' files stay far below the limit. A graph at the limit
# takes some seconds to inline. The cost of a node is its number of bytes plus a constant.
_MAX_COST, _MAX_COST_PER_WRITTEN, _COST_OF_A_NODE = 2**26, 16, 2**13
_DEEPEST = 100  # onnx's limit for nested calls
_Key = tuple[str, str, str]


def inline_functions(model: onnx.ModelProto) -> onnx.ModelProto:
    """Inline local functions in a copy; raises ModelError if onnx or ``check_calls`` refuses."""
    check_calls(model)
    try:
        return inliner.inline_local_functions(model)
    except (RuntimeError, onnx.checker.ValidationError) as error:
        raise ModelError(
            f"a call does not fit the model's local function: {one_line(error)}"
        ) from None


def check_calls(model: onnx.ModelProto) -> None:
    """Raise ModelError for recursive or too deep calls, or if inlining grows the graph too much."""
    if not model.functions:
        return
    bodies = {(body.domain, body.name, body.overload): body for body in model.functions}
    function_costs: dict[_Key, int] = {}
    for key in bodies:
        _store_function_cost(key, bodies, function_costs, ())
    written = [*model.graph.node, *(node for body in model.functions for node in body.node)]
    cost = _inlined_cost(model.graph.node, function_costs)
    if cost > _MAX_COST + _MAX_COST_PER_WRITTEN * _inlined_cost(written, {}):
        raise ModelError(
            f"the model's functions expand to a graph of about {cost // 2**20} MiB, too large for "
            f"the {len(written)} nodes in the file; export the model again without functions"
        )


def _inlined_cost(nodes: Sequence[onnx.NodeProto], function_costs: Mapping[_Key, int]) -> int:
    called = sum(
        _COST_OF_A_NODE + function_costs.get(_call_key(node), 0) for node in nested_nodes(nodes)
    )
    return int(called + sum(node.ByteSize() for node in nodes))


def _store_function_cost(
    key: _Key,
    bodies: dict[_Key, onnx.FunctionProto],
    function_costs: dict[_Key, int],
    callers: tuple[_Key, ...],
) -> None:
    if key in callers or len(callers) >= _DEEPEST:
        raise ModelError(
            f"function {key[1]!r}: expected calls nested at most {_DEEPEST} deep, got more, or a "
            "function that calls itself"
        )
    if key in function_costs:
        return
    for callee in dict.fromkeys(map(_call_key, nested_nodes(bodies[key].node))):
        if callee in bodies:
            _store_function_cost(callee, bodies, function_costs, (*callers, key))
    function_costs[key] = _inlined_cost(bodies[key].node, function_costs)


def _call_key(node: onnx.NodeProto) -> _Key:
    return node.domain, node.op_type, node.overload


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
