"""LSTM layers unrolled over time on the CPU, so that their gates are saved for the backward pass.

Unrolling is faster on the CPU (benchmarks/rules/kept_gates.py); CUDA would start too many kernels.
The gates have ONNX's order: i, o, f, and the candidate c. ``rules.recurrent`` has the equations.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from onnxstep.axes import materialized_transpose, split_at
from onnxstep.builder import Builder, Value
from onnxstep.recurrence import (
    MOST_STEPS,
    DirectionInputs,
    Directions,
    concat,
    rare_options,
    split,
    total,
)
from onnxstep.registry import Cotangents, Node

_DEFAULTS = ["Sigmoid", "Tanh", "Tanh"]
_LENGTHS = 4


class Step(NamedTuple):
    """Saved values of a time step: the three gates, the candidate ``c``, and states.

    ``tanh_cell`` is tanh(C') for the cell state C' after the step; ``h`` is after the step, too.
    """

    i: Value
    o: Value
    f: Value
    c: Value
    tanh_cell: Value
    cell_before: Value
    h: Value


@dataclass(frozen=True)
class LstmActivations:
    """Saved values of an unrolled LSTM, with the steps in processing order.

    ``layout`` describes the shapes of the first hidden state ``h0`` and of the values in ``steps``.
    """

    layout: TimeLayout
    inputs: Sequence[DirectionInputs]
    h0: Value
    steps: list[Step] = field(default_factory=list)

    @property
    def h_before(self) -> list[Value]:
        """Hidden states before each step, one value per step."""
        return [self.h0, *(step.h for step in self.steps[:-1])]


def _is_unrollable(node: Node) -> bool:
    ranks = [node.input(index).rank for index in range(3)]
    activations = [name.capitalize() for name in node.attribute("activations") or []]
    usual = activations in ([], _DEFAULTS, _DEFAULTS * 2)
    if ranks != [3, 3, 3] or not usual or node.optional_input(_LENGTHS) or rare_options(node):
        return False
    return node.x.shape[0] <= MOST_STEPS and node.input(1).shape[0] in (1, 2)


def unroll(node: Node) -> Sequence[Value | None]:
    """Emit separate operators for each time step of an LSTM; return its outputs Y, Y_h and Y_c.

    The result is empty if the provider is not the CPU, or if the LSTM cannot be unrolled.
    """
    if node.op.provider != "cpu" or not _is_unrollable(node):
        return ()
    op, view = node.op, Directions(node)
    saved, last_cell = _emit_forward_steps(view, TimeLayout(op, view.steps, view.directions))
    op.saved[node.y.name], layout = saved, saved.layout
    h = [step.h for step in saved.steps]
    rows = (op.Transpose(run, perm=[1, 0]) for run in layout.rows(h))
    ordered = [op.Unsqueeze(view.sequence(*run), op.integers(1)) for run in enumerate(rows)]
    last = [view.stacked(layout.as_states(state)) for state in (h[-1], last_cell)]
    return concat(ordered, axis=1), *last


def _emit_forward_steps(view: Directions, layout: TimeLayout) -> tuple[LstmActivations, Value]:
    """Emit h' = o tanh(C') and C' = f C + i c; return the saved values and the last cell state."""
    op = layout.op
    direction_inputs = [view.inputs_of(index) for index in range(view.directions)]
    h, cell = (
        layout.from_states(states)
        for states in zip(*((g.h0, g.c0) for g in direction_inputs), strict=True)
    )
    saved = LstmActivations(layout, direction_inputs, h)
    # Gates and candidate are separate products, so that ONNX Runtime fuses each product with its
    # activation.
    parts = list(zip(*map(_split_gates_and_candidate, direction_inputs), strict=True))
    of_gates, of_candidate = (layout.stacked([run.r for run in part]) for part in parts)
    inputs = (layout.each([_input_terms(run) for run in part]) for part in parts)
    for gates_z, candidate_z in zip(*inputs, strict=True):
        gates = op.Sigmoid(layout.product(of_gates, h, gates_z))
        c = op.Tanh(layout.product(of_candidate, h, candidate_z))
        i, o, f = split(gates, 3, axis=UNITS)
        before, cell = cell, f * cell + i * c
        tanh_cell = op.Tanh(cell)
        h = o * tanh_cell
        saved.steps.append(Step(i, o, f, c, tanh_cell, before, h))
    return saved, cell


def _split_gates_and_candidate(
    direction: DirectionInputs,
) -> tuple[DirectionInputs, DirectionInputs]:
    hidden = direction.r.shape[1]
    cut = [
        (None, None) if value is None else split_at(value, [3 * hidden, hidden], axis=0)
        for value in (direction.w, direction.r, direction.bias)
    ]
    gates, candidate = (
        direction._replace(w=w, r=r, bias=bias) for w, r, bias in zip(*cut, strict=True)
    )
    return gates, candidate


def _input_terms(run: DirectionInputs) -> Value:
    """W x + b for the inputs x of all time steps, with the shape [n, T·B] (see ``TimeLayout``)."""
    op = run.x.op
    if run.bias is None:
        return op.Gemm(run.w, run.x, transB=1)
    return op.Gemm(run.w, run.x, op.Unsqueeze(run.bias, op.integers(1)), transB=1)


# Axis of the hidden units, or of stacked gates, in a value of one step or of all steps.
UNITS = -2


@dataclass(frozen=True)
class TimeLayout:
    """Layout of the values of an unrolled LSTM: T steps, one or two directions, B sequences.

    A value of one step is [n, B]. With two directions it is [2, n, B]: forward in time, then
    backward. A value of all steps is a list with a tensor [n, T·B] for each direction.
    """

    op: Builder
    steps: int
    directions: int

    def each(self, rows: Sequence[Value]) -> list[Value]:
        """Convert a tensor [n, T·B] per direction to a tensor [n, B] or [2, n, B] per step."""
        return split(self.stacked(rows), self.steps, axis=-1)

    def rows(self, values: Sequence[Value]) -> list[Value]:
        """Join the tensors [n, B] or [2, n, B] of the T steps to [n, T·B] for each direction."""
        rows, batch = values[0].shape[-2:]
        shape = self.op.integers(self.directions * rows, len(values) * batch)
        return split(self.op.Reshape(concat(values, axis=-1), shape), self.directions, axis=0)

    def product(self, weights: Value, value: Value, added: Value | None = None) -> Value:
        """Multiply ``weights`` [m, n] by a step's ``value`` [n, B], and add ``added`` [m, B].

        With two directions, all three have a first axis of length 2. None adds nothing.
        """
        op = self.op
        if added is None:
            return op.MatMul(weights, value)
        if self.directions == 1:
            return op.Gemm(weights, value, added)
        return op.MatMul(weights, value) + added

    def from_states(self, states: Sequence[Value]) -> Value:
        """Transpose the states [B, n] of all directions and join them to [n, B] or [2, n, B]."""
        return self.stacked([self.op.Transpose(state, perm=[1, 0]) for state in states])

    def as_states(self, value: Value) -> list[Value]:
        """Convert a time step's tensor [n, B] or [2, n, B] to states [B, n], one per direction."""
        op, (rows, batch) = self.op, value.shape[-2:]
        flat = value.reshape(self.directions * rows, batch)
        return [op.Transpose(s, perm=[1, 0]) for s in split(flat, self.directions, axis=0)]

    def stacked(self, values: Sequence[Value]) -> Value:
        """Stack the values [m, n] of all directions; a single value stays as it is."""
        op = self.op
        if len(values) == 1:
            return values[0]
        return concat([op.Unsqueeze(value, op.integers(0)) for value in values], axis=0)


def lstm_backward(node: Node, saved: LstmActivations, *received: Value | None) -> Cotangents:
    """Gradients of an LSTM's inputs X to initial_c, given those of its outputs Y, Y_h and Y_c."""
    view, layout, op = Directions(node), saved.layout, node.op
    dz, dh0, dc0 = _gradients_through_time(view, saved, *received)
    by_direction, before = layout.rows(dz), layout.rows(saved.h_before)
    pairs = list(zip(by_direction, saved.inputs, strict=True))
    dx = [
        view.sequence(index, d.op.Gemm(d, run.w, transA=1)) for index, (d, run) in enumerate(pairs)
    ]
    return (
        dx[0] if len(dx) == 1 else dx[0] + dx[1],
        view.stacked([op.Gemm(d, run.x) for d, run in pairs]),
        view.stacked([op.Gemm(d, h, transB=1) for d, h in zip(by_direction, before, strict=True)]),
        view.stacked(
            [
                concat([op.ReduceSum(d, op.integers(1), keepdims=0)] * 2, axis=0)
                for d, run in pairs
                if run.bias
            ]
        ),
        None,
        view.stacked(layout.as_states(dh0)),
        view.stacked(layout.as_states(dc0)),
    )


def _gradients_through_time(
    view: Directions,
    saved: LstmActivations,
    dy: Value | None,
    dy_h: Value | None = None,
    dy_c: Value | None = None,
) -> tuple[Sequence[Value], Value, Value]:
    """Gradients of z = W x + R h + b for each step, and of the first hidden and cell states."""
    layout, op = saved.layout, saved.h0.op
    right = materialized_transpose(layout.stacked([run.r for run in saved.inputs]))
    outside = _received(view, layout, dy)
    dh = total(outside[-1], _last(view, layout, dy_h))
    dh = op.zeros(saved.h0.shape, saved.h0.elem_type) if dh is None else dh
    dc, swept = _last(view, layout, dy_c), []
    for step, received in zip(reversed(saved.steps), [*outside[-2::-1], None], strict=True):
        dz, dc = _gradients_through_step(step, dh, dc)
        swept.append(dz)
        dh = layout.product(right, dz, received)
    assert dc is not None
    return swept[::-1], dh, dc


def _gradients_through_step(step: Step, dh: Value, d_cell: Value | None) -> tuple[Value, Value]:
    """Gradients of z = W x + R h + b and of the cell state before the step, from those after it."""
    i, o, f, c, tanh_cell, cell_before, h = step
    d_out = dh * h
    d_cell = total(dh * o - d_out * tanh_cell, d_cell)
    assert d_cell is not None
    d_before, d_candidate = d_cell * f, d_cell * i
    forgotten, gained = d_before * cell_before, d_candidate * c
    slopes = [
        gained - gained * i,
        d_out - d_out * o,
        forgotten - forgotten * f,
        d_candidate - gained * c,
    ]
    return concat(slopes, axis=UNITS), d_before


def _received(view: Directions, layout: TimeLayout, dy: Value | None) -> Sequence[Value | None]:
    if dy is None:
        return [None] * layout.steps
    ordered = [view.ordered(index, dy) for index in range(view.directions)]
    return layout.each([layout.op.Transpose(view.as_rows(y), perm=[1, 0]) for y in ordered])


def _last(view: Directions, layout: TimeLayout, received: Value | None) -> Value | None:
    if received is None:
        return None
    return layout.from_states([view.state(i, received) for i in range(view.directions)])
