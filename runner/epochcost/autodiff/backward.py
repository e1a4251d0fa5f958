"""Reverse-mode differentiation of a list of nodes: prune, walk backwards, accumulate.

The algorithm only; what each operator's derivative is stands in ``rules``.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping, Sequence

import onnx

from epochcost.autodiff import registry
from epochcost.autodiff.builder import Builder, Value
from epochcost.autodiff.cotangent_sums import plus, unbroadcast
from epochcost.autodiff.forward import used_names
from epochcost.autodiff.registry import Node
from epochcost.errors import CapabilityError, ModelError

# How many values of a long path an error names at either end.
_PATH_END = 4
# numpy's ValueError for an array beyond any address space.
_TOO_BIG = "array is too big"
HOW_TO_ADD_A_RULE = "docs/adding-an-operator.md"


def pull_back(
    op: Builder,
    nodes: Sequence[onnx.NodeProto],
    cotangents: Mapping[str, Value],
    wanted: Iterable[str],
) -> dict[str, Value]:
    """The cotangents of ``wanted`` values, given those of outputs; emits nodes through ``op``.

    ``nodes`` are the forward nodes in topological order. A wanted value that no given output
    depends on is absent from the answer. Raises ModelError for an operator without a rule.
    """
    # In the order given: that of a set differs from process to process, and the graph with it.
    ordered = tuple(dict.fromkeys(wanted))
    targets = frozenset(ordered)
    dependent = dependents(op, nodes, targets)
    sums = {name: [value] for name, value in cotangents.items()}
    for proto in reversed(nodes):
        if dependent.isdisjoint(proto.output):
            continue
        received = [_total(sums, name) for name in proto.output if not name or _is_float(op, name)]
        if any(value is not None for value in received):
            for name, value in _node_cotangents(op, proto, received, dependent, nodes, targets):
                sums.setdefault(name, []).append(value)
    totals = ((name, _total(sums, name)) for name in ordered)
    return {name: value for name, value in totals if value is not None}


def dependents(
    op: Builder, nodes: Sequence[onnx.NodeProto], sources: frozenset[str]
) -> frozenset[str]:
    """The float values that ``sources`` reach through operators with a derivative."""
    reached = set(sources)
    for proto in nodes:
        if not reached.isdisjoint(used_names(proto)) and not isinstance(
            _answer(op, proto), registry.Zero
        ):
            reached.update(name for name in proto.output if name and op.values[name].is_float)
    return frozenset(reached)


def _is_float(op: Builder, name: str) -> bool:
    return op.values[name].is_float


def _total(sums: dict[str, list[Value]], name: str) -> Value | None:
    """Add up what a value has received, once; it is then kept as a single contribution."""
    received = sums.get(name)
    if not received:
        return None
    if len(received) > 1:
        sums[name] = [functools.reduce(plus, received)]
    return sums[name][0]


def _node_cotangents(
    op: Builder,
    proto: onnx.NodeProto,
    received: Sequence[Value | None],
    dependent: frozenset[str],
    nodes: Sequence[onnx.NodeProto],
    targets: frozenset[str],
) -> Iterable[tuple[str, Value]]:
    known = _answer(op, proto)
    if not isinstance(known, registry.Gradient):
        raise _no_rule(op, proto, known, nodes, targets, dependent)
    node = Node(op, proto, dependent)
    try:
        given = known.rule(op, node, *received)
    except (MemoryError, ValueError) as error:
        if isinstance(error, ValueError) and _TOO_BIG not in str(error):
            raise
        raise CapabilityError(
            f"{node.label}: its gradient needs constants larger than this machine's memory"
        ) from None
    cotangents = [given] if isinstance(given, Value) else list(given)
    for name, value in zip(proto.input, cotangents, strict=False):
        if value is not None and name in dependent:
            yield name, unbroadcast(value, op.values[name].shape)


def _answer(op: Builder, proto: onnx.NodeProto) -> registry.Answer | None:
    return registry.answer(proto.domain, proto.op_type, op.since_version(proto))


def _no_rule(
    op: Builder,
    proto: onnx.NodeProto,
    known: registry.Answer | None,
    nodes: Sequence[onnx.NodeProto],
    targets: frozenset[str],
    dependent: frozenset[str],
) -> ModelError:
    version = op.since_version(proto)
    reason = known.reason if isinstance(known, registry.Refused) else "it has no gradient rule"
    path = " -> ".join(_shortened(_path_to(proto, nodes, targets, dependent)))
    return ModelError(
        f"node {proto.name or proto.output[0]!r}: operator {proto.domain or 'ai.onnx'}::"
        f"{proto.op_type} (version {version}) cannot be differentiated: {reason}; "
        f"it lies on the path {path} -> loss. How to add a rule: {HOW_TO_ADD_A_RULE}"
    )


def _shortened(path: list[str]) -> list[str]:
    """The ends of a long path: where the parameter is, and where the operator is."""
    left_out = len(path) - 2 * _PATH_END
    if left_out <= 1:
        return path
    return [*path[:_PATH_END], f"({left_out} more)", *path[-_PATH_END:]]


def _path_to(
    proto: onnx.NodeProto,
    nodes: Sequence[onnx.NodeProto],
    targets: frozenset[str],
    dependent: frozenset[str],
) -> list[str]:
    """The names from a wanted value to the node's output, by the first dependent input of each."""
    producers = {name: node for node in nodes for name in node.output}
    path = [proto.output[0]]
    current: onnx.NodeProto | None = proto
    while current is not None:
        captured = sorted(used_names(current) - set(current.input))
        name = next(name for name in [*current.input, *captured] if name in dependent)
        path.append(name)
        current = None if name in targets else producers.get(name)
    return path[::-1]
