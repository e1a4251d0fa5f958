"""Reverse-mode differentiation of a list of nodes, with the gradient rules from ``rules``.

A cotangent is the gradient of the loss with respect to a value.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping, Sequence, Set

import onnx

import onnxstep.rules  # noqa: F401  (fills the registry)
from onnxstep import registry
from onnxstep.builder import Builder, Value
from onnxstep.cotangent_sums import add_cotangents, unbroadcast
from onnxstep.errors import CapabilityError, ModelError
from onnxstep.graphs.nodes import node_attributes, reads
from onnxstep.graphs.tensors import one_line
from onnxstep.registry import Node

# Part of numpy's error message for an array that is too big for any memory.
_TOO_BIG = "array is too big"
# Exceptions that a rule raises if a node's attributes or inputs do not fit the operator.
_MISFITS = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)
_LONGEST = 300


def pull_back(
    op: Builder,
    nodes: Sequence[onnx.NodeProto],
    cotangents: Mapping[str, Value],
    names: Iterable[str],
) -> dict[str, Value]:
    """Add the gradient nodes to ``op``; return the cotangents of the values ``names``.

    Values that no output in ``cotangents`` depends on are left out. Raises ModelError for an
    invalid node or an operator without a rule, CapabilityError for constants larger than memory.
    """
    # A tuple keeps the order. The order of a set differs between processes and would change the
    # graph.
    ordered = tuple(dict.fromkeys(names))
    targets = frozenset(ordered)
    dependent = dependents(op, nodes, targets)
    sums = {name: [value] for name, value in cotangents.items()}
    for proto in reversed(nodes):
        if dependent.isdisjoint(proto.output):
            continue
        named = list(proto.output)
        while not named[-1]:  # a trailing "" is an omitted output
            named.pop()
        received = [
            _sum_cotangents(sums, name) for name in named if not name or op.values[name].is_float
        ]
        if any(value is not None for value in received):
            node = Node(op, proto, dependent)
            for name, value in _node_cotangents(node, received, nodes, targets):
                sums.setdefault(name, []).append(value)
    totals = ((name, _sum_cotangents(sums, name)) for name in ordered)
    return {name: value for name, value in totals if value is not None}


def dependents(op: Builder, nodes: Sequence[onnx.NodeProto], sources: Set[str]) -> frozenset[str]:
    """The ``sources``, and names of float values whose derivative by a source may be nonzero."""
    reached = set(sources)
    for proto in nodes:
        if not reached.isdisjoint(reads(proto)) and not isinstance(
            registry.answer_for(op, proto), registry.Zero
        ):
            reached.update(name for name in proto.output if name and op.values[name].is_float)
    return frozenset(reached)


def _sum_cotangents(cotangents: dict[str, list[Value]], name: str) -> Value | None:
    """Replace the list ``cotangents[name]`` by its sum; return the sum, None without gradients."""
    received = cotangents.get(name)
    if not received:
        return None
    if len(received) > 1:
        cotangents[name] = [functools.reduce(add_cotangents, received)]
    return cotangents[name][0]


def _node_cotangents(
    node: Node, received: Sequence[Value | None], nodes: Sequence[onnx.NodeProto], targets: Set[str]
) -> Iterable[tuple[str, Value]]:
    answer = registry.answer_for(node.op, node.proto)
    if not isinstance(answer, registry.Gradient):
        raise registry.undifferentiable(node, answer, nodes, targets)
    try:
        emitted = answer.rule(node.op, node, *received)
        cotangents = [emitted] if isinstance(emitted, Value) else list(emitted)
        for name, value in zip(node.proto.input, cotangents, strict=False):
            if value is not None and name in node.dependent:
                yield name, unbroadcast(value, node.op.values[name].shape)
    except ModelError as error:
        raise _with_node_label(node, error) from None
    except (MemoryError, *_MISFITS) as error:
        if isinstance(error, MemoryError) or _TOO_BIG in str(error):
            raise CapabilityError(
                f"{node.label}: its gradient needs constants larger than this machine's memory"
            ) from None
        raise _error_of_invalid_node(node, error) from error


def _error_of_invalid_node(node: Node, error: Exception) -> ModelError:
    """The error for a node whose attributes or inputs made its gradient rule raise ``error``."""
    attributes = node_attributes(node.proto).items()
    written = " ".join(", ".join(f"{key} {value!r}" for key, value in attributes).split())
    shapes = ", ".join("none" if x is None else str(list(x.shape)) for x in node.inputs)
    return ModelError(
        f"{node.label}: its gradient cannot be built with inputs of the shapes {shapes} and "
        f"{written[:_LONGEST] or 'no attributes'}, which do not fit the operator "
        f"({one_line(error)}); correct the node, or export the model again"
    )


def _with_node_label(node: Node, error: ModelError) -> ModelError:
    """Copy the rule's ``error``; add the node's label, and a remedy if the message has none."""
    reason = str(error)
    if node.label not in reason:
        reason = f"{node.label}: its gradient cannot be built: {reason}"
    # A rule that knows a remedy puts it after a semicolon.
    remedy = "freeze the parameters before it, or export it as other operators"
    return ModelError(reason if ";" in reason else f"{reason}; {remedy}")
