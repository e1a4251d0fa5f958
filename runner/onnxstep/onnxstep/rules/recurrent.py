"""Gradients of the recurrent layers LSTM, GRU and RNN, for sequence lengths of at least 1.

Gates that the forward pass did not save are recomputed from the hidden states. In RNN and LSTM, z =
x Wᵀ + h Rᵀ + b is the argument of the activations, and dz is its gradient.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

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
    total,
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
    z = affine([run.x, run.h_before], [run.w, run.r], total(*run.biases))
    *gates, z_c = split(z, 4, axis=1)
    c = phi(z_c)
    i, o, f = map(sigma, gates)
    gain = i * c
    before, after, kept = _cell_states(run, f, gain)
    out = psi(after)
    into_i, into_c = sigma.slope(c, i, gain), phi.slope(i, c, gain)
    into_o, from_h = sigma.slope(out, o, run.h), psi.slope(o, out, run.h)
    into_f = sigma.slope(before, f, kept)
    factors = concat([into_i, into_o, into_f, into_c], axis=1)
    dz, dh, dc = _sweep_lstm_backwards(run, *map(run.per_step, (factors, from_h, f)))
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


def _cell_states(run: Direction, f: Value, gain: Value) -> tuple[Value, Value, Value]:
    """Cell states [T·B, H] before and after all steps of an LSTM, and f · (states before).

    ``f`` are the forget gates, and ``gain`` the products of input gates and candidates.
    """
    kept, states = [], [run.c0]
    for keep, new in zip(run.per_step(f), run.per_step(gain), strict=True):
        kept.append(keep * states[-1])
        states.append(kept[-1] + new)
    before, after = concat(states[:-1], axis=0), concat(states[1:], axis=0)
    return before, after, concat(kept, axis=0)


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
    w_gates, w_new = _split_gates_and_candidate(run.w, axis=0)
    r_gates, r_new = _split_gates_and_candidate(run.r, axis=0)
    biases = [_split_gates_and_candidate(bias, axis=0) for bias in run.biases]
    new_biases: Sequence[Value | None] = [new for _, new in biases] or [None, None]
    columns, gate_bias = [run.x, run.h_before], total(*(gates for gates, _ in biases))
    z, r = split(f(affine(columns, [w_gates, r_gates], gate_bias)), 2, axis=1)
    q = affine([run.h_before], [r_new], new_biases[1])
    n = g(affine([run.x], [w_new], new_biases[0]) + r * q)
    into_n = g.slope(1.0 - z, n)
    into_z, into_r = f.slope(run.h_before - n, z), f.slope(into_n * q, r)
    factors = run.per_step(concat([into_z, into_r, into_n * r], axis=1))
    keep, dh, received, swept = run.per_step(z), run.received(), [], []
    for step in reversed(range(run.steps)):
        received.append(dh)
        swept.append(concat([dh, dh, dh], axis=1) * factors[step])
        dh = _hidden_gradient_before(run, step, swept[-1], run.r, dh * keep[step])
    d_gates, dq = _split_gates_and_candidate(run.over_steps(swept), axis=1)
    return _gru_cotangents(run, d_gates, run.over_steps(received) * into_n, dh, dq)


def _gru_cotangents(
    run: Direction, d_gates: Value, dn: Value, dh0: Value, dq: Value
) -> DirectionCotangents:
    """Gradients of the direction's inputs from those of the activations' arguments.

    These are ``d_gates`` [T·B, 2·H] and ``dn`` [T·B, H]. ``dq`` is the gradient of q = h Rᵀ + b',
    which the reset gate scales.
    """
    biased = bool(run.biases)
    w_gates, r_gates, *b_gates = weight_cotangents(d_gates, [run.x, run.h_before], biased=biased)
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


def _hidden_gradient_before(
    run: Direction, step: int, dz: Value, r: Value, direct: Value | None = None
) -> Value:
    """Gradient with respect to the hidden state h before ``step``, an index in processing order.

    It is the sum of dz R, of ``direct`` (by paths without R) and of ``run.dh[step - 1]`` (from the
    node's outputs). None counts as zero.
    """
    added = total(direct, run.dh[step - 1] if step else None)
    return run.op.MatMul(dz, r) if added is None else run.op.Gemm(dz, r, added)


def _cotangents_from_dz(run: Direction, dz: Value, dh0: Value) -> DirectionCotangents:
    """Gradients of weights and biases from ``dz``, returned together with ``dz`` and ``dh0``."""
    w, r, *bias = weight_cotangents(dz, [run.x, run.h_before], biased=bool(run.biases))
    return DirectionCotangents(dz, w, r, bias * 2, dh0)
