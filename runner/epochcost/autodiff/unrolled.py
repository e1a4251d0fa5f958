"""LSTM layers of a step written out over time, so that the gates are kept for the backward pass.

The runtime's LSTM tells its states alone, and to compute gates again from them takes the arithmetic
of the forward pass. Written out, a step of time is a product and a few small operators, which pays
on the CPU (benchmarks/rules/kept_gates.py); on CUDA they would be as many kernels, and the operator
stays. The derivative stands in ``rules.written_out``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from onnx import helper

from epochcost.autodiff.builder import Builder, Value
from epochcost.autodiff.columns import UNITS, Columns
from epochcost.autodiff.node import Node
from epochcost.autodiff.recurrence import Given, View, joined, split

_DEFAULTS = ["Sigmoid", "Tanh", "Tanh"]
_LENGTHS, _PEEPHOLES = 4, 7


@dataclass(frozen=True)
class Kept:
    """What a written-out LSTM has kept of its steps, in the order of processing.

    ``given`` is what went into each direction; the others are values of ``columns``: ``h0`` and
    ``c0`` the first states, ``gates`` i, o and k above each other, ``new`` values n,
    ``out`` = tanh(c), and the states ``c`` and ``h``.
    """

    columns: Columns
    given: Sequence[Given]
    h0: Value
    c0: Value
    gates: list[Value] = field(default_factory=list)
    new: list[Value] = field(default_factory=list)
    c: list[Value] = field(default_factory=list)
    out: list[Value] = field(default_factory=list)
    h: list[Value] = field(default_factory=list)

    @property
    def h_before(self) -> list[Value]:
        """The hidden states before each step."""
        return [self.h0, *self.h[:-1]]

    @property
    def c_before(self) -> list[Value]:
        """The cell states before each step."""
        return [self.c0, *self.c[:-1]]


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
    kept = op.kept[node.y.name] = _walked(view, Columns(op, view.steps, view.directions))
    columns = kept.columns
    rows = enumerate(columns.as_sequences(columns.every(kept.h)))
    ordered = [op.Unsqueeze(view.sequence(*run), op.integers(1)) for run in rows]
    last = [view.states(columns.as_states(states[-1])) for states in (kept.h, kept.c)]
    for name, value in zip(node.proto.output, [joined(ordered, axis=1), *last], strict=False):
        if name and value is not None:
            op.append(helper.make_node("Identity", [value.name], [name]))


def _walked(view: View, columns: Columns) -> Kept:
    """H' = o tanh(c'), c' = k c + i n, with the gates of W x + R h + b: ONNX's order i, o, k."""
    op = columns.op
    given = [view.given(index) for index in range(view.directions)]
    right = columns.stacked([run.r for run in given])
    h, c = (
        columns.from_states(states) for states in zip(*((g.h0, g.c0) for g in given), strict=True)
    )
    kept = Kept(columns, given, h, c)
    hidden = h.shape[UNITS]
    for z in columns.each(columns.from_rows([_inputs(run) for run in given])):
        sizes = op.integers(3 * hidden, hidden)
        whole = columns.product(right, h, z)
        open_, new = op.emit("Split", [whole, sizes], {"axis": UNITS}, outputs=2)
        gates, n = op.Sigmoid(open_), op.Tanh(new)
        i, o, k = split(gates, 3, axis=UNITS)
        c = k * c + i * n
        out = op.Tanh(c)
        h = o * out
        for values, value in zip(
            (kept.gates, kept.new, kept.c, kept.out, kept.h), (gates, n, c, out, h), strict=True
        ):
            values.append(value)
    return kept


def _inputs(run: Given) -> Value:
    """W x + b of all steps, [4·H, T·B]."""
    op = run.x.op
    if run.bias is None:
        return op.Gemm(run.w, run.x, transB=1)
    return op.Gemm(run.w, run.x, op.Unsqueeze(run.bias, op.integers(1)), transB=1)
