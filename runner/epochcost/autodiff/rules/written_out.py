"""The derivative of an LSTM that is written out over time: its gates were kept (``unrolled``).

The equations are those of ``rules.recurrent``; values are held as ``columns`` says.
"""

from __future__ import annotations

from collections.abc import Sequence

from epochcost.autodiff.axes import turned
from epochcost.autodiff.builder import Value
from epochcost.autodiff.columns import UNITS, Columns
from epochcost.autodiff.node import Node
from epochcost.autodiff.recurrence import Given, View, joined, split
from epochcost.autodiff.registry import Cotangents
from epochcost.autodiff.unrolled import Kept


def pull_back(node: Node, kept: Kept, *received: Value | None) -> Cotangents:
    """The cotangents of X, W, R, B, sequence_lens, initial_h and initial_c.

    ``received`` are those of Y, Y_h and Y_c.
    """
    view, columns, op = View(node), kept.columns, node.op
    dz, dh0, dc0 = _walked_back(view, kept, *received)
    by_direction = columns.as_rows(dz)
    before = columns.as_rows(columns.every(kept.h_before))
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
) -> tuple[Value, Value, Value]:
    """The cotangents of all W x + R h + b, and of the first states."""
    columns, op = kept.columns, kept.h0.op
    factors, from_h, from_c = map(columns.each, _factors(kept))
    right = turned(columns.stacked([run.r for run in kept.given]))
    outside = _received(view, columns, dy)
    dh = _sum(outside[-1], _last(view, columns, dy_h))
    dh = op.zeros(kept.h0.shape, kept.h0.elem_type) if dh is None else dh
    carried, swept = _last(view, columns, dy_c), []
    for step in reversed(range(columns.steps)):
        dc = dh * from_h[step]
        dc = dc if carried is None else dc + carried
        swept.append(joined([dc, dh, dc, dc], axis=UNITS) * factors[step])
        dh = columns.product(right, swept[-1], outside[step - 1] if step else None)
        carried = dc * from_c[step]
    assert carried is not None
    return columns.every(swept[::-1]), dh, carried


def _factors(kept: Kept) -> tuple[Value, Value, Value]:
    """Of all steps: dz over (dc, dh, dc, dc), dc over dh, and dc before a step over dc after it."""
    every = kept.columns.every
    i, o, k = split(every(kept.gates), 3, axis=UNITS)
    n, out, h = every(kept.new), every(kept.out), every(kept.h)
    gain, stayed = i * n, k * every(kept.c_before)
    slopes = [gain - gain * i, h - h * o, stayed - stayed * k, i - gain * n]
    return joined(slopes, axis=UNITS), o - h * out, k


def _received(view: View, columns: Columns, dy: Value | None) -> Sequence[Value | None]:
    """What the hidden state after each step receives from outside."""
    if dy is None:
        return [None] * columns.steps
    ordered = [view.ordered(index, dy) for index in range(view.directions)]
    return columns.each(columns.from_sequences(ordered))


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
