"""Code that the gradients of LSTM, GRU and RNN share: directions, layouts and sequence lengths.

Shapes have T steps, B sequences, I inputs, H hidden units and G gates. Each direction has rows
[T·B, ...] in processing order: a reverse direction flips each sequence within its length.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from onnx import TensorProto

from onnxstep.axes import flip, split_at
from onnxstep.builder import Builder, Value
from onnxstep.errors import ModelError
from onnxstep.registry import Cotangents, Node

# First opset in which Split needs either the sizes or the number of parts.
_SPLIT_COUNTS = 18
MOST_STEPS = 4096
_DEFAULT_ACTIVATIONS = {
    "LSTM": ("Sigmoid", "Tanh", "Tanh"),
    "GRU": ("Sigmoid", "Tanh"),
    "RNN": ("Tanh",),
}
# Compute factor · f'(x) from the result y = f(x) and the product p = factor · y.
_SLOPES: dict[str, Callable[[Value, Value, Value], Value]] = {
    "Sigmoid": lambda _, y, p: p - p * y,
    "Tanh": lambda factor, y, p: factor - p * y,
    "Relu": lambda factor, y, _: (
        factor * y.op.Cast(y.op.Cast(y, to=TensorProto.BOOL), to=y.elem_type)
    ),
}


@dataclass(frozen=True)
class Activation:
    """An activation function whose derivative can be computed from its result."""

    name: str

    def __call__(self, x: Value) -> Value:
        """Add a node that applies the function to ``x``; return its output."""
        return x.op.emit(self.name, [x])[0]

    def slope(self, factor: Value, y: Value, product: Value | None = None) -> Value:
        """Derivative at the result ``y``, times ``factor``; ``product`` is factor · y, if known."""
        return _SLOPES[self.name](factor, y, factor * y if product is None else product)


class DirectionInputs(NamedTuple):
    """Inputs of one direction; ``bias`` is the sum of the biases of x Wᵀ and h Rᵀ.

    ``x`` is [T·B, I], ``w`` [G·H, I], ``r`` [G·H, H], ``bias`` [G·H], ``h0`` and ``c0`` [B, H].
    """

    x: Value
    w: Value
    r: Value
    bias: Value | None
    h0: Value
    c0: Value


@dataclass(frozen=True)
class Direction:
    """A direction of a recurrent node; x, w, r and c0 are as in ``DirectionInputs``.

    ``biases`` has the biases [G·H] of x Wᵀ and h Rᵀ, or is empty. ``h`` and ``h_before`` [T·B, H]
    are the hidden states after and before each step. For each step, ``dh`` and ``dc`` have the
    gradients [B, H] of the hidden and the cell state from the node's outputs; None means zero.
    """

    op: Builder
    steps: int
    activations: tuple[Activation, ...]
    x: Value
    w: Value
    r: Value
    biases: Sequence[Value]
    h: Value
    h_before: Value
    c0: Value
    dh: Sequence[Value | None]
    dc: Sequence[Value | None]

    def per_step(self, rows: Value) -> list[Value]:
        """Split rows [T·B, n] into T values [B, n], one for each step."""
        return split(rows, self.steps, axis=0)

    def over_steps(self, values: Sequence[Value]) -> Value:
        """Join T values [B, n], listed from last to first step, to rows [T·B, n] in step order."""
        return concat(values[::-1], axis=0)

    def received(self) -> Value:
        """Gradient [B, H] of the last hidden state from Y and Y_h; zeros if neither has one."""
        cotangent = self.dh[-1]
        return self.op.zeros(self.c0.shape, self.c0.elem_type) if cotangent is None else cotangent


@dataclass(frozen=True)
class DirectionCotangents:
    """Gradients of the inputs that the fields are named after, in the shapes of the inputs.

    ``z`` [T·B, G·H] is the gradient of x Wᵀ, from which the caller computes the gradient of x.
    """

    z: Value
    w: Value
    r: Value
    biases: Sequence[Value]
    h0: Value
    c0: Value | None = None


def through_time(
    node: Node, sweep: Callable[[Direction], DirectionCotangents], *received: Value | None
) -> Cotangents:
    """Gradients of X, W, R, B, sequence_lens, initial_h and initial_c of a recurrent node.

    ``received`` are the gradients of Y, Y_h and Y_c. Raises ModelError for clipped or coupled
    gates, peepholes, layout 1, wrong ranks, and activations other than Sigmoid, Tanh and Relu.
    """
    if rare := rare_options(node):
        raise ModelError(f"{node.label}: {rare[0]} is not differentiated; export without it")
    ranks = [node.input(index).rank for index in range(3)]
    if ranks != [3, 3, 3]:
        raise ModelError(f"{node.label}: expected X, W and R of rank 3, got ranks {ranks}")
    view = Directions(node)
    if view.directions not in (1, 2):
        got = view.directions
        raise ModelError(f"{node.label}: expected weights of one or two directions, got {got}")
    runs = [view.direction(index, *received) for index in range(view.directions)]
    swept = [sweep(run) for run in runs]
    pairs = list(zip(runs, swept, strict=True))
    dx = [view.sequence(index, node.op.MatMul(s.z, run.w)) for index, (run, s) in enumerate(pairs)]
    return (
        dx[0] if len(dx) == 1 else dx[0] + dx[1],
        view.stacked([s.w for s in swept]),
        view.stacked([s.r for s in swept]),
        view.stacked([concat(s.biases, axis=0) for s in swept if s.biases]),
        None,
        view.stacked([s.h0 for s in swept]),
        view.stacked([s.c0 for s in swept if s.c0 is not None]),
    )


def rare_options(node: Node) -> list[str]:
    """Options of a recurrent node that are not differentiated."""
    rare = [name for name in ("clip", "input_forget", "layout") if node.attribute(name)]
    return [*rare, "peepholes"] if node.optional_input(7) else rare


def split(x: Value, count: int, axis: int) -> list[Value]:
    """Split x into ``count`` equal parts along ``axis``."""
    if count == 1:
        return [x]
    attributes = {"axis": axis} | ({"num_outputs": count} if x.op.opset >= _SPLIT_COUNTS else {})
    return list(x.op.emit("Split", [x], attributes, outputs=count))


def concat(values: Sequence[Value], axis: int) -> Value:
    """Concatenate the values along ``axis``; a single value is returned unchanged."""
    return values[0] if len(values) == 1 else values[0].op.Concat(*values, axis=axis)


def total(*terms: Value | None) -> Value | None:
    """The sum of the terms; None counts as zero, and is the sum of no terms."""
    present = [term for term in terms if term is not None]
    return functools.reduce(operator.add, present) if present else None


def affine(columns: Sequence[Value], weights: Sequence[Value], bias: Value | None) -> Value:
    """The sum of x Wᵀ over the pairs of x in ``columns`` and W in ``weights``, plus the bias.

    Shapes: x [rows, n], W [m, n], bias [m]; n can differ between pairs.
    """
    op = columns[0].op
    if bias is not None:
        weights = [*weights, op.Unsqueeze(bias, op.integers(1))]
    rows = _with_ones(columns, present=bias is not None)
    return op.Gemm(rows, concat(weights, axis=1), transB=1)


def weight_cotangents(dz: Value, columns: Sequence[Value], *, biased: bool) -> list[Value]:
    """Gradients of W₁, W₂, … and, if ``biased``, of b in z = x₁ W₁ᵀ + x₂ W₂ᵀ + … + b.

    ``columns`` are the factors x₁, x₂, …, and ``dz`` is the gradient of z.
    """
    op = dz.op
    all_of_them = op.Gemm(dz, _with_ones(columns, present=biased), transA=1)
    widths = [column.shape[1] for column in columns] + [1] * biased
    if len(widths) == 1:
        return [all_of_them]
    *parts, last = split_at(all_of_them, widths, axis=1)
    return [*parts, op.Squeeze(last, op.integers(1)) if biased else last]


def _with_ones(columns: Sequence[Value], *, present: bool) -> Value:
    if not present:
        return concat(columns, axis=1)
    op, rows = columns[0].op, columns[0].shape[0]
    unit = op.constant(np.ones((1, 1), columns[0].dtype))
    return concat([*columns, op.Expand(unit, op.integers(rows, 1))], axis=1)


def _require_no_projection(node: Node) -> None:
    w, r = node.input(1), node.input(2)
    gates = {"LSTM": 4, "GRU": 3}.get(node.proto.op_type, 1)
    if r.rank != w.rank or r.shape[1] != gates * r.shape[2]:
        raise ModelError(
            f"{node.label}: expected recurrent weights with {r.shape[1] // gates} columns, as many "
            f"as a gate has rows, got the shape {list(r.shape)}; ONNX has no LSTM with a "
            "projection (PyTorch's proj_size): export it as a layer of its own"
        )


class Directions:
    """Split the tensors of a recurrent node by direction, and join results in the node's layout."""

    def __init__(self, node: Node) -> None:
        self._node, self._op = node, node.op
        self._x = node.x
        self.steps, self._batch = self._x.shape[:2]
        if self.steps > MOST_STEPS:
            raise ModelError(
                f"{node.label}: expected at most {MOST_STEPS} steps of time, which are "
                f"differentiated one by one, got {self.steps}; cut the sequences into shorter ones"
            )
        _require_no_projection(node)
        self._lengths = self._lengths_unless_full(node.optional_input(4))
        self.directions = node.input(1).shape[0]

    def direction(
        self, index: int, dy: Value | None, dy_h: Value | None = None, dy_c: Value | None = None
    ) -> Direction:
        """Values for the backward pass, given the gradients of Y, Y_h and Y_c; None means zero."""
        node, op = self._node, self._op
        h = self.as_rows(self.ordered(index, node.y))
        h0 = self.state(index, node.optional_input(5))
        bias = self._bias(index)
        earlier = op.Slice(h, op.integers(0), op.integers(h.shape[0] - self._batch), op.integers(0))
        w, r = (_slice_at(node.input(place), 0, index) for place in (1, 2))
        return Direction(
            op=op,
            steps=self.steps,
            activations=self._activations(index),
            x=self.as_rows(self._switch_step_order(index, self._x)),
            w=w,
            r=r,
            biases=[] if bias is None else split(bias, 2, axis=0),
            h=h,
            h_before=h0 if self.steps == 1 else concat([h0, earlier], axis=0),
            c0=self.state(index, node.optional_input(6)),
            dh=self._state_gradients_by_step(index, dy, dy_h),
            dc=self._state_gradients_by_step(index, None, dy_c),
        )

    def inputs_of(self, index: int) -> DirectionInputs:
        """Inputs and weights of the direction ``index``, with the steps in processing order."""
        w, r = (_slice_at(self._node.input(place), 0, index) for place in (1, 2))
        biases = self._bias(index)
        halves = [] if biases is None else split(biases, 2, axis=0)
        return DirectionInputs(
            x=self.as_rows(self._switch_step_order(index, self._x)),
            w=w,
            r=r,
            bias=halves[0] + halves[1] if halves else None,
            h0=self.state(index, self._node.optional_input(5)),
            c0=self.state(index, self._node.optional_input(6)),
        )

    def sequence(self, index: int, rows: Value) -> Value:
        """Convert a direction's rows [T·B, n], in processing order, to [T, B, n] in time order."""
        shape = self._op.integers(self.steps, self._batch, rows.shape[1])
        return self._switch_step_order(index, self._op.Reshape(rows, shape))

    def stacked(self, values: Sequence[Value]) -> Value | None:
        """Stack the tensors of all directions along a new first axis; None for an empty list."""
        op = self._op
        return concat([op.Unsqueeze(v, op.integers(0)) for v in values], axis=0) if values else None

    def _activations(self, index: int) -> tuple[Activation, ...]:
        default = _DEFAULT_ACTIVATIONS[self._node.proto.op_type]
        listed = self._node.attribute("activations") or default * self.directions
        names = [name.capitalize() for name in listed]
        for name in names:
            if name not in _SLOPES:
                raise ModelError(
                    f"{self._node.label}: expected activations among {', '.join(_SLOPES)}, "
                    f"got {name!r}"
                )
        activations = names[index * len(default) : (index + 1) * len(default)]
        return tuple(Activation(name) for name in activations)

    def _state_gradients_by_step(
        self, index: int, dy: Value | None, d_last: Value | None
    ) -> list[Value | None]:
        """Gradients [B, H] that outputs give each state, in processing order; None means zero.

        ``dy`` is the gradient of the output Y, and ``d_last`` that of Y_h or Y_c.
        """
        every = None if dy is None else self.ordered(index, dy)
        last = None if d_last is None else self.state(index, d_last)
        if self._lengths is not None:
            every, last = self._gradients_within_lengths(every, last), None
        steps: list[Value | None] = [None] * self.steps
        if every is not None:
            steps = [*split(self.as_rows(every), self.steps, axis=0)]
        steps[-1] = total(steps[-1], last)
        return steps

    def _gradients_within_lengths(self, dy: Value | None, d_last: Value | None) -> Value | None:
        """Set ``dy`` [T, B, H] to 0 beyond each length; add ``d_last`` [B, H] at the last step."""
        op = self._op
        times = op.constant(np.arange(1, self.steps + 1, dtype=np.int64).reshape(-1, 1))
        terms = []
        if dy is not None:
            terms.append(dy * self._mask(op.LessOrEqual(times, self._lengths), dy))
        if d_last is not None:
            terms.append(d_last * self._mask(op.Equal(times, self._lengths), d_last))
        return total(*terms)

    def _mask(self, chosen: Value, like: Value) -> Value:
        op = self._op
        return op.Cast(op.Unsqueeze(chosen, op.integers(-1)), to=like.elem_type)

    def _lengths_unless_full(self, lengths: Value | None) -> Value | None:
        constant = self._op.array_of(lengths)
        if lengths is None or (constant is not None and bool(np.all(constant == self.steps))):
            return None
        return self._op.Cast(lengths, to=TensorProto.INT64)

    def ordered(self, index: int, y: Value) -> Value:
        """Slice [T, B, H] of ``y`` (Y or its gradient) for one direction, in processing order."""
        return self._switch_step_order(index, _slice_at(y, 1, index))

    def as_rows(self, value: Value) -> Value:
        """Reshape [T, B, n] to rows [T·B, n]."""
        return value.reshape(self.steps * self._batch, value.shape[-1])

    def _switch_step_order(self, index: int, value: Value) -> Value:
        """Convert [T, B, n] from time order to processing order, or back."""
        if index == 0 and self._node.attribute("direction") != "reverse":
            return value
        if self._lengths is None:
            return flip(value, [0])
        return self._op.ReverseSequence(value, self._lengths, time_axis=0, batch_axis=1)

    def _bias(self, index: int) -> Value | None:
        value = self._node.optional_input(3)
        return None if value is None else _slice_at(value, 0, index)

    def state(self, index: int, value: Value | None) -> Value:
        """The slice [B, H] of the state ``value`` for the direction ``index``; zeros for None."""
        if value is None:
            hidden = self._node.input(2).shape[-1]
            return self._op.zeros((self._batch, hidden), self._x.elem_type)
        return _slice_at(value, 0, index)


def _slice_at(value: Value, axis: int, index: int) -> Value:
    """Take the slice of ``value`` at ``index`` along ``axis``, and remove this axis."""
    op = value.op
    if value.shape[axis] == 1:
        return op.Squeeze(value, op.integers(axis))
    return op.Gather(value, op.constant(np.array(index, dtype=np.int64)), axis=axis)
