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

from epochcost.autodiff.axes import turned
from epochcost.autodiff.builder import Builder, Value
from epochcost.autodiff.recurrence import Given, View, joined, split
from epochcost.autodiff.registry import Cotangents, Node

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


# The axis of units, or of gates above each other, in the values of a step and of all steps.
UNITS = -2


@dataclass(frozen=True)
class Columns:
    """T steps of D directions and B sequences.

    The value of a step is [n, B], or [2, n, B] for both directions, the first in the order of time
    and the second against it. All steps are rows [n, T·B] for each direction.
    """

    op: Builder
    steps: int
    directions: int

    def each(self, rows: Sequence[Value]) -> list[Value]:
        """The steps of rows."""
        return split(self.stacked(rows), self.steps, axis=-1)

    def rows(self, values: Sequence[Value]) -> list[Value]:
        """All steps as rows."""
        rows, batch = values[0].shape[-2:]
        shape = self.op.integers(self.directions * rows, len(values) * batch)
        return split(self.op.Reshape(joined(values, axis=-1), shape), self.directions, axis=0)

    def product(self, weights: Value, value: Value, added: Value | None = None) -> Value:
        """Weights [m, n] or [2, m, n] by the value of a step, plus that of another."""
        op = self.op
        if added is None:
            return op.MatMul(weights, value)
        if self.directions == 1:
            return op.Gemm(weights, value, added)
        return op.MatMul(weights, value) + added

    def from_states(self, states: Sequence[Value]) -> Value:
        """A state [B, n] of each direction as the value of a step."""
        turned = [self.op.Transpose(state, perm=[1, 0]) for state in states]
        return self.stacked(turned)

    def as_states(self, value: Value) -> list[Value]:
        """The value of a step as [B, n] of each direction."""
        op, (rows, batch) = self.op, value.shape[-2:]
        flat = op.Reshape(value, op.integers(self.directions * rows, batch))
        return [op.Transpose(s, perm=[1, 0]) for s in split(flat, self.directions, axis=0)]

    def stacked(self, values: Sequence[Value]) -> Value:
        """Values [m, n] of each direction as one."""
        op = self.op
        if len(values) == 1:
            return values[0]
        return joined([op.Unsqueeze(value, op.integers(0)) for value in values], axis=0)


def pull_back(node: Node, kept: Kept, *received: Value | None) -> Cotangents:
    """The cotangents of X, W, R, B, sequence_lens, initial_h and initial_c.

    ``received`` are those of Y, Y_h and Y_c.
    """
    view, columns, op = View(node), kept.columns, node.op
    dz, dh0, dc0 = _walked_back(view, kept, *received)
    by_direction, before = columns.rows(dz), columns.rows(kept.h_before)
    both = list(zip(by_direction, kept.given, strict=True))
    dx = [view.sequence(index, _rows(d, run)) for index, (d, run) in enumerate(both)]
    return (
        dx[0] if len(dx) == 1 else dx[0] + dx[1],
        view.stacked([op.Gemm(d, run.x) for d, run in both]),
        view.stacked([op.Gemm(d, h, transB=1) for d, h in zip(by_direction, before, strict=True)]),
        view.stacked([joined([_summed(d)] * 2, axis=0) for d, run in both if run.bias]),
        None,
        view.states(columns.as_states(dh0)),
        view.states(columns.as_states(dc0)),
    )


def _walked_back(
    view: View, kept: Kept, dy: Value | None, dy_h: Value | None = None, dy_c: Value | None = None
) -> tuple[Sequence[Value], Value, Value]:
    """The cotangents of all W x + R h + b, and of the first states."""
    columns, op = kept.columns, kept.h0.op
    right = turned(columns.stacked([run.r for run in kept.given]))
    outside = _received(view, columns, dy)
    dh = _sum(outside[-1], _last(view, columns, dy_h))
    dh = op.zeros(kept.h0.shape, kept.h0.elem_type) if dh is None else dh
    dc, swept = _last(view, columns, dy_c), []
    for step, received in zip(reversed(kept.steps), [*outside[-2::-1], None], strict=True):
        dz, dc = _through(step, dh, dc)
        swept.append(dz)
        dh = columns.product(right, dz, received)
    assert dc is not None
    return swept[::-1], dh, dc


def _through(step: Step, dh: Value, dc: Value | None) -> tuple[Value, Value]:
    """From the cotangents of a step's states those of W x + R h + b and of the cell state before.

    Slopes of a few sequences in the order in which they are needed, so that they stay in a cache.
    """
    i, o, k, n, out, c_before, h = step
    opened = dh * h
    direct = dh * o - opened * out
    dc = _sum(direct, dc)
    assert dc is not None
    kept, new = dc * k, dc * i
    stayed, gained = kept * c_before, new * n
    slopes = [gained - gained * i, opened - opened * o, stayed - stayed * k, new - gained * n]
    return joined(slopes, axis=UNITS), kept


def _received(view: View, columns: Columns, dy: Value | None) -> Sequence[Value | None]:
    """What the hidden state after each step receives from outside."""
    if dy is None:
        return [None] * columns.steps
    ordered = [view.ordered(index, dy) for index in range(view.directions)]
    return columns.each([_turned(sequence) for sequence in ordered])


def _turned(sequence: Value) -> Value:
    """[T, B, n] as rows [n, T·B]."""
    op, (steps, batch, width) = sequence.op, sequence.shape
    rows = op.Reshape(sequence, op.integers(steps * batch, width))
    return op.Transpose(rows, perm=[1, 0])


def _last(view: View, columns: Columns, received: Value | None) -> Value | None:
    if received is None:
        return None
    return columns.from_states([view.state(i, received) for i in range(view.directions)])


def _sum(one: Value | None, other: Value | None) -> Value | None:
    if one is None or other is None:
        return one if other is None else other
    return one + other


def _rows(dz: Value, run: Given) -> Value:
    """The cotangent of x [T·B, I] from that of its products [4·H, T·B]."""
    return dz.op.Gemm(dz, run.w, transA=1)


def _summed(dz: Value) -> Value:
    return dz.op.ReduceSum(dz, dz.op.integers(1), keepdims=0)
