"""Replace some nodes of a forward pass by operators that are faster on the CPU.

``blocked_convolution`` and ``unrolled_lstm`` decide for which nodes. The original nodes are still
differentiated.
"""

from __future__ import annotations

from onnx import helper

from onnxstep import blocked_convolution, unrolled_lstm
from onnxstep.builder import Builder
from onnxstep.graphs.nodes import is_standard
from onnxstep.registry import Node


def convolve_in_blocks(op: Builder) -> None:
    """Compute convolutions among the nodes of ``op`` in the blocked layout if that is faster."""
    nodes, op.nodes = op.nodes, []
    for proto in nodes:
        node = Node(op, proto, frozenset())
        y = blocked_convolution.forward(node) if is_standard(proto, "Conv") else None
        op.append(helper.make_node("Identity", [y.name], [proto.output[0]]) if y else proto)


def unroll_lstms(op: Builder) -> None:
    """Unroll the LSTMs among the nodes of ``op`` over time; store their gates in ``op.saved``."""
    if op.provider != "cpu":
        return
    nodes, op.nodes = op.nodes, []
    for proto in nodes:
        node = Node(op, proto, frozenset())
        if is_standard(proto, "LSTM") and unrolled_lstm.is_plain(node):
            unrolled_lstm.unroll(node)
        else:
            op.nodes.append(proto)
