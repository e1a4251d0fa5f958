"""Gradients of the recurrent layers LSTM, GRU and RNN, for sequence lengths of at least 1.

Gates that the forward pass did not save are recomputed from the hidden states. In RNN and LSTM, z =
x Wᵀ + h Rᵀ + b is the argument of the activations, and dz is its gradient.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Sequence
from dataclasses import dataclass, replace

from onnxstep.axes import split_at
from onnxstep.builder import Builder, Value
from onnxstep.errors import ModelError
from onnxstep.recurrence import (
    Direction,
    DirectionCotangents,
    affine,
    concat,
    split,
    through_time,
    weight_cotangents,
)
from onnxstep.registry import Cotangents, Node, gradient
from onnxstep.unrolled_lstm import LstmActivations, lstm_backward


@gradient("RNN", versions=(7, 14, 22))
def rnn(_: Builder, node: Node, dy: Value | None, dy_h: Value | None = None) -> Cotangents:
    """Gradient of h' = f(z), with z = x Wᵀ + h Rᵀ + b: dz = Df(z) dh' and dh = dz R."""
    return through_time(node, _sweep_rnn, dy, dy_h)


def _sweep_rnn(run: Direction) -> DirectionCotangents:
    [f] = run.activations
    unit = run.op.scalar(1.0, run.h.elem_type)
    factors = run.per_step(f.slope(unit, run.h, run.h))
    dh, swept = run.received(), []
    for step in reversed(range(run.steps)):
        swept.append(dh * factors[step])
        dh = _hidden_gradient_before(run, step, swept[-1], run.r)
    return _cotangents_from_dz(run, run.over_steps(swept), dh)


@gradient("LSTM", versions=(7, 14, 22))
def lstm(
    op: Builder, node: Node, dy: Value | None, dy_h: Value | None = None, dy_c: Value | None = None
) -> Cotangents:
    """Gradient of an LSTM with the activations σ, φ and ψ, by default sigmoid, tanh and tanh.

    A step computes the states C' and h' from C and h, with gates i, o and f and a candidate c:

        z = x Wᵀ + h Rᵀ + b, i = σ(z_i), o = σ(z_o), f = σ(z_f), c = φ(z_c)
        C' = f C + i c, h' = o ψ(C')

    Dσ is the derivative of σ. After dh' o Dψ(C') is added to dC', the gradients are

        dz = (dC' c Dσ(z_i), dh' ψ(C') Dσ(z_o), dC' C Dσ(z_f), dC' i Dφ(z_c))
        dC = dC' f, dh = dz R
    """
    saved = op.saved.get(node.y.name)
    if isinstance(saved, LstmActivations):
        return lstm_backward(node, saved, dy, dy_h, dy_c)
    return through_time(node, _sweep_lstm, dy, dy_h, dy_c)


def _sweep_lstm(run: Direction) -> DirectionCotangents:
    sigma, phi, psi = run.activations
    z = affine([run.x, run.h_before], [run.w, run.r], _summed(run.biases))
    cell = _recomputed_lstm_values(run, split(z, 4, axis=1))
    out = psi(cell.after)
    into_i, into_c = sigma.slope(cell.c, cell.i, cell.gain), phi.slope(cell.i, cell.c, cell.gain)
    into_o, from_h = sigma.slope(out, cell.o, run.h), psi.slope(cell.o, out, run.h)
    into_f = sigma.slope(cell.before, cell.f, cell.kept)
    factors = concat([into_i, into_o, into_f, into_c], axis=1)
    dz, dh, dc = _sweep_lstm_backwards(run, *map(run.per_step, (factors, from_h, cell.f)))
    return replace(_cotangents_from_dz(run, dz, dh), c0=dc)


def _sweep_lstm_backwards(
    run: Direction,
    dz_factors: Sequence[Value],
    dh_by_dc: Sequence[Value],
    forget_gates: Sequence[Value],
) -> tuple[Value, Value, Value]:
    """Gradients of z [T·B, 4·H] in all steps, and of the states h and C before the first step.

    For each step, ``dz_factors`` is [B, 4·H]; ``dh_by_dc``, the derivative of h' by C', and
    ``forget_gates`` are [B, H]. A step's dz is (dC', dh', dC', dC') times ``dz_factors``.
    """
    dh, carried, swept = run.received(), run.dc[-1], []
    for step in reversed(range(run.steps)):
        dc = dh * dh_by_dc[step]
        dc = dc if carried is None else dc + carried
        swept.append(concat([dc, dh, dc, dc], axis=1) * dz_factors[step])
        dh, carried = _hidden_gradient_before(run, step, swept[-1], run.r), dc * forget_gates[step]
        received = run.dc[step - 1] if step else None
        carried = carried if received is None else carried + received
    assert carried is not None
    return run.over_steps(swept), dh, carried


@dataclass(frozen=True)
class _LstmValues:
    """Gates, candidates and cell states of all steps of an LSTM direction, each [T·B, H].

    The products ``gain`` = ``i`` · ``c`` and ``kept`` = ``f`` · ``before`` add up to ``after``.
    """

    i: Value
    o: Value
    f: Value
    c: Value
    gain: Value
    kept: Value
    before: Value
    after: Value


def _recomputed_lstm_values(run: Direction, z: Sequence[Value]) -> _LstmValues:
    """Gates i, o, f, candidates c, cell states of all steps; ``z`` has the activations' inputs."""
    sigma, phi, _ = run.activations
    c = phi(z[3])
    i, o, f = map(sigma, z[:3])
    gain, cells, states = i * c, [], [run.c0]
    for keep, new in zip(run.per_step(f), run.per_step(gain), strict=True):
        cells.append(keep * states[-1])
        states.append(cells[-1] + new)
    before, after = concat(states[:-1], axis=0), concat(states[1:], axis=0)
    return _LstmValues(i, o, f, c, gain, concat(cells, axis=0), before, after)


@gradient("GRU", versions=(7, 14, 22))
def gru(_: Builder, node: Node, dy: Value | None, dy_h: Value | None = None) -> Cotangents:
    """Gradient of h' = (1 - z) n + z h, with gates z, r = f(x Wᵀ + h Rᵀ + b) and a candidate n.

    The candidate is n = g(x Wᵀ + b + r (h Rᵀ + b')), as ONNX defines for linear_before_reset = 1.
    """
    if not node.attribute("linear_before_reset"):
        raise ModelError(f"{node.label}: only linear_before_reset = 1 is differentiated")
    return through_time(node, _sweep_gru, dy, dy_h)


def _sweep_gru(run: Direction) -> DirectionCotangents:
    """Gradients of a GRU direction, with z = f(a_z), r = f(a_r), n = g(a_n) and q = h Rᵀ + b'.

    da_n = dh' (1 - z) Dg(a_n), da_r = da_n q Df(a_r), da_z = dh' (h - n) Df(a_z), dq = da_n r, and
    dh = dh' z + (da_z, da_r, dq) R, where Df and Dg are derivatives.
    """
    f, g = run.activations
    parts = _GruWeights(run)
    z, r = split(f(parts.gate_arguments), 2, axis=1)
    q = affine([run.h_before], [parts.r_new], parts.candidate_bias(1))
    n = g(affine([run.x], [parts.w_new], parts.candidate_bias(0)) + r * q)
    into_n = g.slope(1.0 - z, n)
    into_z, into_r = f.slope(run.h_before - n, z), f.slope(into_n * q, r)
    factors = run.per_step(concat([into_z, into_r, into_n * r], axis=1))
    keep, dh, received, swept = run.per_step(z), run.received(), [], []
    for step in reversed(range(run.steps)):
        received.append(dh)
        swept.append(concat([dh, dh, dh], axis=1) * factors[step])
        dh = _hidden_gradient_before(run, step, swept[-1], run.r, dh * keep[step])
    d_gates, dq = _split_gates_and_candidate(run.over_steps(swept), axis=1)
    return parts.direction_cotangents(d_gates, run.over_steps(received) * into_n, dh, dq)


class _GruWeights:
    """Weights and biases of a GRU direction, for the gates z and r and the "new" candidate n."""

    def __init__(self, run: Direction) -> None:
        self._run = run
        self._w_gates, self.w_new = _split_gates_and_candidate(run.w, axis=0)
        self.r_gates, self.r_new = _split_gates_and_candidate(run.r, axis=0)
        biases = [_split_gates_and_candidate(bias, axis=0) for bias in run.biases]
        self._gate_biases = [gates for gates, _ in biases]
        self._new_biases = [new for _, new in biases]

    @property
    def gate_arguments(self) -> Value:
        """The sums x Wᵀ + h Rᵀ + b for z and r in all steps, [T·B, 2·H]."""
        columns, weights = [self._run.x, self._run.h_before], [self._w_gates, self.r_gates]
        return affine(columns, weights, _summed(self._gate_biases))

    def candidate_bias(self, side: int) -> Value | None:
        """The candidate's bias added to x Wᵀ (``side`` 0) or h Rᵀ (1); None without biases."""
        return self._new_biases[side] if self._new_biases else None

    def direction_cotangents(
        self, d_gates: Value, dn: Value, dh0: Value, dq: Value
    ) -> DirectionCotangents:
        """Gradients of the direction's inputs from those of the activations' arguments.

        These are ``d_gates`` [T·B, 2·H] and ``dn`` [T·B, H]. ``dq`` is the gradient of q = h Rᵀ +
        b', which the reset gate scales.
        """
        run, biased = self._run, bool(self._gate_biases)
        w_gates, r_gates, *b_gates = weight_cotangents(
            d_gates, [run.x, run.h_before], biased=biased
        )
        w_new, *w_bias = weight_cotangents(dn, [run.x], biased=biased)
        r_new, *r_bias = weight_cotangents(dq, [run.h_before], biased=biased)
        return DirectionCotangents(
            z=concat([d_gates, dn], axis=1),
            w=concat([w_gates, w_new], axis=0),
            r=concat([r_gates, r_new], axis=0),
            biases=[concat([*b_gates, b], axis=0) for b in [*w_bias, *r_bias]],
            h0=dh0,
        )


def _split_gates_and_candidate(x: Value, axis: int) -> tuple[Value, Value]:
    hidden = x.shape[axis] // 3
    gates, new = split_at(x, [2 * hidden, hidden], axis)
    return gates, new


def _summed(biases: Sequence[Value]) -> Value | None:
    return functools.reduce(operator.add, biases) if biases else None


def _hidden_gradient_before(
    run: Direction, step: int, dz: Value, r: Value, direct: Value | None = None
) -> Value:
    """Gradient with respect to the hidden state h before ``step``, an index in processing order.

    It is the sum of dz R, of ``direct`` (by paths without R) and of ``run.dh[step - 1]`` (from the
    node's outputs). None counts as zero.
    """
    received = run.dh[step - 1] if step else None
    added = [value for value in (direct, received) if value is not None]
    if not added:
        return run.op.MatMul(dz, r)
    return run.op.Gemm(dz, r, added[0] if len(added) == 1 else added[0] + added[1])


def _cotangents_from_dz(run: Direction, dz: Value, dh0: Value) -> DirectionCotangents:
    """Gradients of weights and biases from ``dz``, returned together with ``dz`` and ``dh0``."""
    w, r, *bias = weight_cotangents(dz, [run.x, run.h_before], biased=bool(run.biases))
    return DirectionCotangents(dz, w, r, bias * 2, dh0)
