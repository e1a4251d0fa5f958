"""Replace some nodes by faster operators; ``Forward.nodes`` keeps the originals for gradients."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from onnx import helper

from onnxstep import blocked_convolution, hashed_dropout, unrolled_lstm
from onnxstep.builder import Builder, Value
from onnxstep.graphs.nodes import is_standard
from onnxstep.registry import Node

# Each function emits the outputs of a node. An output is None if nothing reads it. If the function
# returns no outputs, the node stays.
_FASTER: Mapping[str, Callable[[Node], Sequence[Value | None]]] = {
    "Conv": blocked_convolution.forward,
    "LSTM": unrolled_lstm.unroll,
    "Dropout": hashed_dropout.forward,
}


def replace_slow_nodes(op: Builder, resumable: bool) -> None:
    """Replace convolutions, LSTMs and Dropout in ``op`` if faster operators are available.

    ``resumable`` keeps Dropout except on CUDA, so that an interruption does not change the masks.
    """
    for op_type, emit in _FASTER.items():
        if resumable and op_type == "Dropout" and op.provider != "cuda":
            continue
        nodes, op.nodes = op.nodes, []
        for proto in nodes:
            outputs = emit(Node(op, proto, frozenset())) if is_standard(proto, op_type) else ()
            for name, value in zip(proto.output, outputs, strict=False):
                if name and value is not None:
                    op.append(helper.make_node("Identity", [value.name], [name]))
            if not outputs:
                op.nodes.append(proto)
