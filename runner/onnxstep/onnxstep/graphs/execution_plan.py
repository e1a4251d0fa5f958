"""What ONNX Runtime makes of a graph before it runs it, as far as memory depends on it.

Equal nodes become one, what only constants go into is computed beforehand, and the rest is ordered.
Fusions that change no tensor's life are left out. What the nodes hold is known in ``peak_memory``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import onnx
from onnx import numpy_helper

from onnxstep.graphs.nodes import RANDOM, copied, live_nodes, reads

# Constants above this size are not compared: graphs share those on purpose.
_MOST_COMPARED = 64


@dataclass(frozen=True)
class ExecutionPlan:
    """The nodes in the order of their run, and the values that are there before it.

    ``constants`` are initializers and what follows from them alone.
    """

    nodes: tuple[onnx.NodeProto, ...]
    constants: frozenset[str]


def execution_plan(model: onnx.ModelProto) -> ExecutionPlan:
    """How ONNX Runtime runs the main graph of a model."""
    graph = model.graph
    outputs = {value.name for value in graph.output}
    merging = _Merging(graph.initializer, outputs)
    merged = [node for node in graph.node if merging.keeps(node)]
    renamed = [_reading(node, merging.names) for node in merged]
    live = live_nodes(renamed, outputs)
    return ExecutionPlan(tuple(_ordered(live)), frozenset(merging.constants))


class _Merging:
    """Which nodes stay; ``names`` maps a value of one that does not to its equal."""

    def __init__(self, initializers: Sequence[onnx.TensorProto], outputs: set[str]) -> None:
        self.names: dict[str, str] = dict(_equal_constants(initializers))
        self.constants = {tensor.name for tensor in initializers}
        self._outputs = outputs
        self._known: dict[object, Sequence[str]] = {}

    def keeps(self, node: onnx.NodeProto) -> bool:
        """Whether a node runs; nodes come in topological order."""
        if node.op_type in RANDOM or not self._outputs.isdisjoint(node.output):
            return True
        inputs = [self.names.get(name, name) for name in node.input]
        folded = self.constants.issuperset(filter(None, reads(node)))
        if folded:
            self.constants.update(node.output)
        attributes = sorted(entry.SerializeToString() for entry in node.attribute)
        key = (node.domain, node.op_type, *inputs, "|", *attributes)
        known = self._known.setdefault(key, node.output)
        if known is not node.output and len(known) >= len(node.output):
            self.names.update(zip(node.output, known, strict=False))
            return False
        return not folded


def _equal_constants(initializers: Sequence[onnx.TensorProto]) -> Iterator[tuple[str, str]]:
    seen: dict[object, str] = {}
    for tensor in initializers:
        array = numpy_helper.to_array(tensor) if _is_small(tensor) else None
        if array is not None:
            key = (tensor.data_type, array.shape, array.tobytes())
            yield tensor.name, seen.setdefault(key, tensor.name)


def _is_small(tensor: onnx.TensorProto) -> bool:
    size = 1
    for dim in tensor.dims:
        size *= dim
    return size <= _MOST_COMPARED and tensor.data_location != onnx.TensorProto.EXTERNAL


def _reading(node: onnx.NodeProto, names: Mapping[str, str]) -> onnx.NodeProto:
    """The node with its inputs under the names of what stayed.

    CastLike is written out as a Cast, late enough not to be folded: what it is cast like is not
    waited for.
    """
    is_like = node.op_type == "CastLike"
    if names.keys().isdisjoint(node.input) and not is_like:
        return node
    copy = copied(node)
    copy.op_type = "Cast" if is_like else node.op_type
    read = node.input[:1] if is_like else node.input
    copy.input[:] = [names.get(name, name) for name in read]
    return copy


def _ordered(nodes: Sequence[onnx.NodeProto]) -> Iterator[onnx.NodeProto]:
    """Depth first from the last node that nobody reads: its operands, the latest first, then it.

    So ONNX Runtime orders by default (graph_viewer.cc, Graph::ReverseDFSFrom).
    """
    makers = {name: place for place, node in enumerate(nodes) for name in node.output if name}
    operands = [sorted({makers[n] for n in reads(node) if n in makers}) for node in nodes]
    read = {place for places in operands for place in places}
    stack = [(place, False) for place in range(len(nodes)) if place not in read]
    seen: set[int] = set()
    while stack:
        place, is_ready = stack.pop()
        if is_ready:
            yield nodes[place]
        elif place not in seen:
            seen.add(place)
            stack.append((place, True))
            stack += [(operand, False) for operand in operands[place] if operand not in seen]
