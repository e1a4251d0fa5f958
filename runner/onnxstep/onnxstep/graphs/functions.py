"""Inline a model's local functions, after checking how large the graph becomes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import onnx
from onnx import inliner

from onnxstep.errors import ModelError
from onnxstep.graphs.nodes import nested_nodes
from onnxstep.graphs.tensors import one_line

# Nested calls multiply a graph. Files of exporters stay far below the limits; a graph at the limits
# takes some seconds to inline.
_MAX_NODES, _MAX_NODES_PER_WRITTEN = 8_192, 16
_MAX_BYTES, _MAX_BYTES_PER_WRITTEN = 2**26, 16
_DEEPEST = 100  # onnx's limit
_Key = tuple[str, str, str]


def inline_functions(model: onnx.ModelProto) -> onnx.ModelProto:
    """Copy of the model in which calls of local functions are replaced by their bodies.

    Raises ModelError for a call that does not fit its function, and in the cases of
    ``check_calls``.
    """
    check_calls(model)
    try:
        return inliner.inline_local_functions(model)
    except (RuntimeError, onnx.checker.ValidationError) as error:
        raise ModelError(
            f"a call does not fit the model's own function: {one_line(error)}"
        ) from None


def check_calls(model: onnx.ModelProto) -> None:
    """Raise ModelError if functions call themselves, or if inlining makes the graph too large.

    The limits grow with the number of nodes and bytes in the file.
    """
    if not model.functions:
        return
    written = _written(model.graph.node)
    bodies = {(body.domain, body.name, body.overload): body for body in model.functions}
    sizes: dict[_Key, _Size] = {}
    for key, function in bodies.items():
        _measure(key, bodies, sizes, ())
        written += _written(function.node)
    called = _called(model.graph.node, sizes)
    most_nodes = _MAX_NODES + _MAX_NODES_PER_WRITTEN * written.nodes
    most_bytes = _MAX_BYTES + _MAX_BYTES_PER_WRITTEN * written.size_bytes
    if called.nodes > most_nodes or called.size_bytes > most_bytes:
        raise ModelError(
            f"the model's functions expand to {called.nodes} nodes of {called.size_bytes} bytes; "
            f"expected at most {most_nodes} nodes and {most_bytes} bytes for the {written.nodes} "
            "nodes in the file"
        )


@dataclass(frozen=True)
class _Size:
    nodes: int = 0
    size_bytes: int = 0

    def __add__(self, other: _Size) -> _Size:
        return _Size(self.nodes + other.nodes, self.size_bytes + other.size_bytes)


def _written(nodes: Iterable[onnx.NodeProto]) -> _Size:
    return _called(nodes, {})


def _called(nodes: Iterable[onnx.NodeProto], sizes: dict[_Key, _Size]) -> _Size:
    """Number and bytes of nodes, including nested graphs and bodies of the functions they call."""
    total = _Size(0, sum(node.ByteSize() for node in nodes))
    for node in nested_nodes(nodes):
        total += sizes.get(_call_key(node), _Size()) + _Size(1)
    return total


def _measure(
    key: _Key,
    bodies: dict[_Key, onnx.FunctionProto],
    sizes: dict[_Key, _Size],
    callers: tuple[_Key, ...],
) -> None:
    """Store the size of a function's body in ``sizes``, after those of the functions it calls.

    Raises ModelError if calls are nested too deeply or a function calls itself.
    """
    if key in callers or len(callers) >= _DEEPEST:
        raise ModelError(
            f"function {key[1]!r}: expected calls nested at most {_DEEPEST} deep, got more, or a "
            "function that calls itself"
        )
    if key in sizes:
        return
    for callee in dict.fromkeys(map(_call_key, nested_nodes(bodies[key].node))):
        if callee in bodies:
            _measure(callee, bodies, sizes, (*callers, key))
    sizes[key] = _called(bodies[key].node, sizes)


def _call_key(node: onnx.NodeProto) -> _Key:
    return node.domain, node.op_type, node.overload
