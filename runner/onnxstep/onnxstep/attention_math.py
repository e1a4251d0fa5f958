"""Dot-product attention with several heads and a causal mask, and its gradients.

The scores are s = q kᵀ · scale. With a cap c, a = c · tanh(s / c), else a = s. Then p = softmax(a +
bias) and y = p v. The prefix d marks the gradient of the loss with respect to a value. ∘ is the
elementwise product, and Σ sums over the last axis. Without a cap, ds = da.

    dv = pᵀ dy, da = p ∘ (dy vᵀ - Σ dy ∘ y), ds = da ∘ (1 - (a / c)²)
    dq = ds k · scale, dk = dsᵀ q · scale
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from onnxstep.axes import transposed
from onnxstep.builder import Value, ascending


@dataclass(frozen=True)
class Attention:
    """Inputs of attention for B sequences, L queries, S keys, H query heads and K key heads.

    ``q`` is [B, H, L, E], ``k`` [B, K, S, E] and ``v`` [B, K, S, F]. Each key head serves H / K
    consecutive query heads. ``allowed`` (bool) is True for a query's usable keys, at least one.
    ``allowed`` and ``bias`` broadcast to [B, H, L, S]. A ``cap`` of 0 means no cap.
    """

    q: Value
    k: Value
    v: Value
    scale: float
    allowed: Value
    cap: float = 0.0
    bias: Value | None = None


def attention_backward(of: Attention, y: Value, dy: Value) -> tuple[Value, Value, Value, Value]:
    """Emit the gradients of q, k, v and bias, given the result ``y`` [B, H, L, F].

    The gradient of the bias has the full shape [B, H, L, S].
    """
    op = of.q.op
    scores = _scaled_scores(of.q, of.k, of.scale)
    unit = op.Tanh(scores * (1 / of.cap)) if of.cap else None
    scores = scores if unit is None else unit * of.cap
    scores = scores if of.bias is None else scores + of.bias
    forbidden = op.scalar(-np.inf, scores.elem_type)
    p = op.Softmax(op.Where(of.allowed, scores, forbidden), axis=-1)
    # The sum of dy y runs over the numbers of a head, which is cheaper than a sum over the keys.
    d_biased = p * (_scaled_scores(dy, of.v) - op.ReduceSum(dy * y, op.integers(-1), keepdims=1))
    d_product = (d_biased if unit is None else d_biased * (1.0 - unit * unit)) * of.scale
    dq = _ungroup(op.MatMul(_group_by_key_head(d_product, of.k.shape[1]), of.k), of.q.shape)
    dk = _sum_over_queries(d_product, of.q, of.k)
    return dq, dk, _sum_over_queries(p, dy, of.v), d_biased


def causal_mask(like: Value, length: int, window: int = 0) -> Value:
    """Mask [length, length] that is True for each query's own position and earlier positions.

    ``window`` > 0 allows only the last ``window`` positions. ``like`` is any value of the graph.
    """
    op = like.op
    rows, columns = op.constant(ascending(length).reshape(-1, 1)), op.constant(ascending(length))
    mask = op.LessOrEqual(columns, rows)
    if window <= 0:
        return mask
    return op.And(mask, op.Greater(columns, rows - op.integers(window)))


def split_heads(x: Value, heads: int) -> Value:
    """Reshape [B, L, heads · E] to [B, heads, L, E]."""
    op, (batch, length, width) = x.op, x.shape
    by_head = op.Reshape(x, op.integers(batch, length, heads, width // heads))
    return op.Transpose(by_head, perm=[0, 2, 1, 3])


def merge_heads(x: Value) -> Value:
    """Reshape [B, heads, L, E] to [B, L, heads · E]."""
    op, (batch, heads, length, width) = x.op, x.shape
    return op.Reshape(op.Transpose(x, perm=[0, 2, 1, 3]), op.integers(batch, length, heads * width))


def _group_by_key_head(x: Value, key_heads: int) -> Value:
    """Reshape x [B, H, L, n] to [B, K, H / K · L, n], for K = ``key_heads``."""
    batch, _, _, width = x.shape
    if x.shape[1] == key_heads:
        return x
    return x.op.Reshape(x, x.op.integers(batch, key_heads, -1, width))


def _ungroup(x: Value, shape: tuple[int, ...]) -> Value:
    """Reshape x [B, K, H / K · L, n] to [B, H, L, n], for a ``shape`` that begins with B, H, L."""
    if x.shape[1] == shape[1]:
        return x
    return x.op.Reshape(x, x.op.integers(*shape[:3], x.shape[3]))


def _scaled_scores(x: Value, keys: Value, scale: float = 1.0) -> Value:
    """The product ``scale`` · x keysᵀ [B, H, L, S], for x [B, H, L, n] and keys [B, K, S, n]."""
    rows = _group_by_key_head(x, keys.shape[1])
    product = x.op.MatMul(rows if scale == 1 else rows * scale, transposed(keys))
    return _ungroup(product, x.shape)


def _sum_over_queries(scores: Value, x: Value, keys: Value) -> Value:
    """Sum scoresᵀ x per key head: [B, K, S, n], for scores [B, H, L, S] and x [B, H, L, n]."""
    heads = keys.shape[1]
    return scores.op.MatMul(
        transposed(_group_by_key_head(scores, heads)), _group_by_key_head(x, heads)
    )
