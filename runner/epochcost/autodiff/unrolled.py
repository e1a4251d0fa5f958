"""LSTM layers of a step written out over time, so that the gates are kept for the backward pass.

The runtime's LSTM tells its states alone, and to compute gates again from them takes the arithmetic
of the forward pass. Written out, a step of time is a product and a few small operators, which pays
on the CPU (benchmarks/rules/kept_gates.py); on CUDA they would be as many kernels, and the operator
stays. The derivative stands in ``rules.written_out``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from onnx import helper

from epochcost.autodiff.builder import Builder, Value
from epochcost.autodiff.columns import UNITS, Columns
from epochcost.autodiff.node import Node
from epochcost.autodiff.recurrence import Given, View, joined, split

_DEFAULTS = ["Sigmoid", "Tanh", "Tanh"]
_LENGTHS, _PEEPHOLES = 4, 7


class Step(NamedTuple):
    """What is kept of a step: gates i, o, k, new values n, ``out`` = tanh(c'), states c and h'."""

    i: Value
    o: Value
    k: Value
    n: Value
    out: Value
    c_before: Value
    h: Value


@dataclass(frozen=True)
class Kept:
    """What a written-out LSTM has kept of its steps, in the order of processing.

    ``given`` is what went into each direction; the others are values of ``columns``: ``h0`` the
    first hidden state, and the steps.
    """

    columns: Columns
    given: Sequence[Given]
    h0: Value
    steps: list[Step] = field(default_factory=list)

    @property
    def h_before(self) -> list[Value]:
        """The hidden states before each step."""
        return [self.h0, *(step.h for step in self.steps[:-1])]


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
    kept, last_c = _walked(view, Columns(op, view.steps, view.directions))
    op.kept[node.y.name], columns = kept, kept.columns
    h = [step.h for step in kept.steps]
    rows = (op.Transpose(run, perm=[1, 0]) for run in columns.rows(h))
    ordered = [op.Unsqueeze(view.sequence(*run), op.integers(1)) for run in enumerate(rows)]
    last = [view.states(columns.as_states(state)) for state in (h[-1], last_c)]
    for name, value in zip(node.proto.output, [joined(ordered, axis=1), *last], strict=False):
        if name and value is not None:
            op.append(helper.make_node("Identity", [value.name], [name]))


def _walked(view: View, columns: Columns) -> tuple[Kept, Value]:
    """H' = o tanh(c'), c' = k c + i n, with the gates of W x + R h + b: ONNX's order i, o, k, n.

    Gates and new values are products apart, which the runtime makes one kernel with the sigmoid
    and the tangent. Returns the last cell state too.
    """
    op = columns.op
    given = [view.given(index) for index in range(view.directions)]
    h, c = (
        columns.from_states(states) for states in zip(*((g.h0, g.c0) for g in given), strict=True)
    )
    kept = Kept(columns, given, h)
    parts = list(zip(*map(_apart, given), strict=True))
    of_gates, of_new = (columns.stacked([run.r for run in part]) for part in parts)
    inputs = (columns.each([_inputs(run) for run in part]) for part in parts)
    for open_z, new_z in zip(*inputs, strict=True):
        gates = op.Sigmoid(columns.product(of_gates, h, open_z))
        n = op.Tanh(columns.product(of_new, h, new_z))
        i, o, k = split(gates, 3, axis=UNITS)
        before, c = c, k * c + i * n
        out = op.Tanh(c)
        h = o * out
        kept.steps.append(Step(i, o, k, n, out, before, h))
    return kept, c


def _apart(run: Given) -> tuple[Given, Given]:
    """A direction with the weights of its gates alone, and with those of its new values alone."""
    op, hidden = run.w.op, run.r.shape[1]
    sizes = op.integers(3 * hidden, hidden)
    cut = [
        (None, None) if value is None else op.emit("Split", [value, sizes], {"axis": 0}, outputs=2)
        for value in (run.w, run.r, run.bias)
    ]
    gates, new = (run._replace(w=w, r=r, bias=bias) for w, r, bias in zip(*cut, strict=True))
    return gates, new


def _inputs(run: Given) -> Value:
    """W x + b of all steps, [n, T·B]."""
    op = run.x.op
    if run.bias is None:
        return op.Gemm(run.w, run.x, transB=1)
    return op.Gemm(run.w, run.x, op.Unsqueeze(run.bias, op.integers(1)), transB=1)
