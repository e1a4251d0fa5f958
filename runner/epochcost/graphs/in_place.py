"""Find the inputs that a step may overwrite with their values for the next step.

An output may overwrite an input if every reader of the input runs before the output's writer.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

import onnx

from onnxstep.graphs.nodes import VIEWS, reads

# These kernels read an element of an operand before they write the same element of the result.
_ELEMENTWISE = frozenset({"Add", "Div", "Mul", "Sub"})
# ONNX Runtime may merge these operators into the nodes that read their results, or swap both, so
# that those nodes read the operand. It may do the same with a product with a constant.
_MOVED = VIEWS | {"Cast", "Concat", "Expand", "Slice", "Split", "Transpose"}
_SCALES = frozenset({"Div", "Mul"})
# ONNX Runtime may merge an addition into the product whose result it reads.
_PRODUCTS = frozenset({"FusedMatMul", "Gemm", "MatMul"})


def in_place_updates(model: onnx.ModelProto, carried: Mapping[str, str]) -> frozenset[str]:
    """Inputs that a step may overwrite, for any order of nodes and any fusion by ONNX Runtime.

    ``carried`` maps each input to its next value, an output of the same type and static shape.
    """
    step = _StepDataFlow(model.graph, tuple(carried.values()))
    return frozenset(
        before for before, after in carried.items() if step.may_update_in_place(before, after)
    )


class _StepDataFlow:
    def __init__(self, graph: onnx.GraphProto, carried: Sequence[str]) -> None:
        self._nodes = graph.node
        self._outputs = {value.name for value in graph.output}
        self._makers = {
            name: place for place, node in enumerate(graph.node) for name in node.output
        }
        self._readers: dict[str, list[int]] = defaultdict(list)
        self._constants = {tensor.name for tensor in graph.initializer}
        for place, node in enumerate(graph.node):
            if node.op_type == "Constant":
                self._constants.update(node.output)
            for name in dict.fromkeys(reads(node)):
                self._readers[name].append(place)
        self._bit_by_output = {name: 1 << place for place, name in enumerate(carried)}
        self._dependent_outputs = self._dependent_output_bits()

    def _dependent_output_bits(self) -> list[int]:
        """For each node, a bit mask of the carried outputs that depend on it."""
        leads, targets = [0] * len(self._nodes), defaultdict(int, self._bit_by_output)
        for place in reversed(range(len(self._nodes))):
            for name in self._nodes[place].output:
                leads[place] |= targets[name]
            for name in reads(self._nodes[place]):
                targets[name] |= leads[place]
        return leads

    def may_update_in_place(self, before: str, after: str) -> bool:
        writer = self._makers.get(after)
        if writer is None or not self._may_overwrite(self._nodes[writer], before):
            return False
        # Another reader must be an ancestor of the writer, so that it runs earlier in any order.
        return all(
            self._dependent_outputs[place] & self._bit_by_output[after]
            for place in self._possible_readers(before)
        )

    def _may_overwrite(self, writer: onnx.NodeProto, before: str) -> bool:
        makers = [self._nodes[self._makers[name]] for name in writer.input if name in self._makers]
        fused = before in writer.input and any(maker.op_type in _PRODUCTS for maker in makers)
        viewed = any(name != before and self._memory_owner(name) == before for name in writer.input)
        return writer.op_type in _ELEMENTWISE and not writer.domain and not fused and not viewed

    def _memory_owner(self, name: str) -> str:
        while name in self._makers and self._nodes[self._makers[name]].op_type in VIEWS:
            name = self._nodes[self._makers[name]].input[0]
        return name

    def _possible_readers(self, before: str) -> set[int]:
        """Indices of nodes that read the input named ``before``, or would if nodes are fused."""
        pending, readers = [before], set[int]()
        while pending:
            new = set(self._readers[pending.pop()]) - readers
            readers |= new
            for place in filter(self._may_fuse_into_readers, new):
                pending += self._nodes[place].output
        return readers

    def _may_fuse_into_readers(self, place: int) -> bool:
        node = self._nodes[place]
        scales = node.op_type in _SCALES and not self._constants.isdisjoint(node.input)
        readers = [reader for name in node.output for reader in self._readers[name]]
        is_asked_for = not self._outputs.isdisjoint(node.output)
        return scales or node.op_type in _MOVED or (len(readers) == 1 and not is_asked_for)
