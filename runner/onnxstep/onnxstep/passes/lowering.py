"""Replace some nodes of a forward pass by operators that are faster on the CPU.

Each replacement has its own condition for the nodes that it replaces. The original nodes are still
differentiated.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from onnx import helper

from onnxstep import blocked_convolution, hashed_dropout, unrolled_lstm
from onnxstep.builder import Builder, Value
from onnxstep.graphs.nodes import is_standard
from onnxstep.registry import Node

# Each function emits a node's outputs, None for those that nothing reads; no outputs: the node
# stays.
_FASTER: Mapping[str, Callable[[Node], Sequence[Value | None]]] = {
    "Conv": blocked_convolution.forward,
    "LSTM": unrolled_lstm.unroll,
    "Dropout": hashed_dropout.forward,
}


def replace_slow_nodes(op: Builder, resumable: bool) -> None:
    """Replace convolutions, LSTMs and Dropout among the nodes of ``op`` where that is faster.

    Dropout is not replaced if masks must be ``resumable``.
    """
    for op_type, emit in _FASTER.items():
        if resumable and op_type == "Dropout":
            continue
        nodes, op.nodes = op.nodes, []
        for proto in nodes:
            outputs = emit(Node(op, proto, frozenset())) if is_standard(proto, op_type) else ()
            for name, value in zip(proto.output, outputs, strict=False):
                if name and value is not None:
                    op.append(helper.make_node("Identity", [value.name], [name]))
            if not outputs:
                op.nodes.append(proto)
