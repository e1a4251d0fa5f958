"""The derivative of an LSTM that is written out over time: its gates were kept (``unrolled``).

The equations are those of ``rules.recurrent``; values are held as ``columns`` says.
"""

from __future__ import annotations

from collections.abc import Sequence

from epochcost.autodiff.axes import turned
from epochcost.autodiff.builder import Value
from epochcost.autodiff.columns import UNITS, Columns
from epochcost.autodiff.node import Node
from epochcost.autodiff.recurrence import Given, View, joined
from epochcost.autodiff.registry import Cotangents
from epochcost.autodiff.unrolled import Kept, Step


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
