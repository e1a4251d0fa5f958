"""LSTM layers of a step written out over time, so that the gates are kept for the backward pass.

The runtime's LSTM tells its states alone, and to compute gates again from them takes the arithmetic
of the forward pass. Written out, a step of time is a product and a few small operators, which pays
on the CPU (benchmarks/rules/kept_gates.py); on CUDA they would be as many kernels, and the operator
stays. The derivative stands in ``rules.recurrent``.
"""

from __future__ import annotations

from collections.abc import Sequence

from onnx import helper

from epochcost.autodiff.builder import Builder, Value
from epochcost.autodiff.node import Node
from epochcost.autodiff.recurrence import Kept, View, affine, joined, split

_DEFAULTS = ["Sigmoid", "Tanh", "Tanh"]
_LENGTHS, _PEEPHOLES = 4, 7


def write_out(op: Builder) -> None:
    """Replace the LSTMs of a forward pass, the nodes of ``op``, where it will run on the CPU.

    For differentiation they stay the nodes that they were; ``op.kept`` has what they computed.
    """
    if op.provider != "cpu":
        return
    nodes, op.nodes = op.nodes, []
    for proto in nodes:
        if proto.op_type == "LSTM" and not proto.domain and _is_plain(Node(op, proto, frozenset())):
            _write_out(Node(op, proto, frozenset()))
        else:
            op.nodes.append(proto)


def _is_plain(node: Node) -> bool:
    """Whether the node has what nearly all have: whole sequences, the usual activations."""
    rare = any(node.optional_input(place) for place in (_LENGTHS, _PEEPHOLES))
    rare = rare or any(node.attribute(name) for name in ("clip", "input_forget", "layout"))
    ranks = [node.input(index).rank for index in range(3)] == [3, 3, 3]
    given = [name.decode().capitalize() for name in node.attribute("activations") or []]
    usual = given in ([], _DEFAULTS, _DEFAULTS * 2)
    return ranks and usual and not rare and node.input(1).shape[0] in (1, 2)


def _write_out(node: Node) -> None:
    op, view = node.op, View(node)
    runs = [_direction(view, index) for index in range(view.directions)]
    op.kept[node.y.name] = runs
    rows = [view.sequence(index, joined(run.h, axis=0)) for index, run in enumerate(runs)]
    every = joined([op.Unsqueeze(value, op.integers(1)) for value in rows], axis=1)
    last = [view.states([kept[-1] for kept in states]) for states in _states(runs)]
    for name, value in zip(node.proto.output, [every, *last], strict=False):
        if name and value is not None:
            op.append(helper.make_node("Identity", [value.name], [name]))


def _states(runs: Sequence[Kept]) -> tuple[list[Sequence[Value]], list[Sequence[Value]]]:
    return [run.h for run in runs], [run.c for run in runs]


def _direction(view: View, index: int) -> Kept:
    """H' = o tanh(c'), c' = k c + i n, with the gates of x Wᵀ + h Rᵀ + b: ONNX's order i, o, k."""
    given = view.given(index)
    hidden = given.c0.shape[1]
    op, right = given.x.op, given.r
    inputs = split(affine([given.x], [given.w], given.bias), view.steps, axis=0)
    h, c = given.h0, given.c0
    kept = Kept([], [], [], [], [])
    for z in inputs:
        whole = op.Gemm(h, right, z, transB=1)
        sizes = op.integers(3 * hidden, hidden)
        open_, new = op.emit("Split", [whole, sizes], {"axis": 1}, outputs=2)
        gates, n = op.Sigmoid(open_), op.Tanh(new)
        i, o, k = split(gates, 3, axis=1)
        c = k * c + i * n
        out = op.Tanh(c)
        h = o * out
        kept.add(gates, n, c, out, h)
    return kept
