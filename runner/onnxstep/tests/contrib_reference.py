"""ONNX Runtime's own operators in numpy, as defined in its ContribOperators.md.

onnx's evaluator has none of them. The gradient cases also compare their outputs with those of ONNX
Runtime.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray
from onnx.reference.op_run import OpRun

Array = NDArray[Any]


def _erf(x: Array) -> Array:
    return np.asarray(np.vectorize(math.erf, otypes=[x.dtype])(x))


class Contributed(OpRun):
    """Base of the operators of the domain com.microsoft."""

    op_domain = "com.microsoft"
    op_schema = None  # unlike ONNX's operator of the same name


class Gelu(Contributed):
    """The result is x Φ(x), where Φ is the standard normal distribution."""

    def _run(self, x: Array) -> Any:
        return (x * (1 + _erf(x / math.sqrt(2))) / 2,)


class BiasGelu(Gelu):
    """Gelu of x + b."""

    def _run(self, x: Array, bias: Array) -> Any:  # type: ignore[override]
        return super()._run(x + bias)


class FastGelu(Contributed):
    """The tanh approximation of Gelu."""

    def _run(self, x: Array, bias: Array | None = None) -> Any:
        x = x if bias is None else x + bias
        return (x / 2 * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))),)


class QuickGelu(Contributed):
    """The result is x σ(α x)."""

    def _run(self, x: Array, alpha: float = 1.702) -> Any:
        return (x / (1 + np.exp(-alpha * x)),)


class SkipLayerNormalization(Contributed):
    """Returns the result, each row's mean and inverse deviation, and the sum of input and skip."""

    def _run(
        self,
        x: Array,
        skip: Array,
        gamma: Array,
        beta: Array | None = None,
        bias: Array | None = None,
        epsilon: float = 1e-12,
    ) -> Any:
        total = x + skip + (0 if bias is None else bias)
        deviation = total - total.mean(-1, keepdims=True)
        inverse = 1 / np.sqrt((deviation**2).mean(-1, keepdims=True) + epsilon)
        y = deviation * inverse * gamma + (0 if beta is None else beta)
        return (y, total.mean(-1, keepdims=True), inverse, total)[: len(self.onnx_node.output)]


class SkipSimplifiedLayerNormalization(Contributed):
    """SkipLayerNormalization by the root mean square, without a mean."""

    def _run(
        self,
        x: Array,
        skip: Array,
        gamma: Array,
        bias: Array | None = None,
        epsilon: float = 1e-12,
    ) -> Any:
        total = x + skip + (0 if bias is None else bias)
        inverse = 1 / np.sqrt((total**2).mean(-1, keepdims=True) + epsilon)
        y = total * inverse * gamma
        return (y, np.zeros_like(inverse), inverse, total)[: len(self.onnx_node.output)]


class FusedMatMul(Contributed):
    """A product of operands that are first transposed over the batch, then in the last two axes."""

    def _run(self, a: Array, b: Array, alpha: float = 1.0, **turns: int) -> Any:
        def turned(x: Array, side: str) -> Array:
            if turns.get(f"transBatch{side}"):
                x = np.moveaxis(x, 0, -2)
            return np.swapaxes(x, -1, -2) if turns.get(f"trans{side}") else x

        return (alpha * np.matmul(turned(a, "A"), turned(b, "B")),)


def _attend(q: Array, k: Array, v: Array, heads: int, bias: Array, scale: float | None) -> Array:
    """Attention of queries [B, L, heads · E], keys and values.

    ``bias`` is added to the scores [B, heads, L, S].
    """
    q, k, v = (x.reshape(*x.shape[:2], heads, -1).transpose(0, 2, 1, 3) for x in (q, k, v))
    scores = q @ k.swapaxes(-1, -2) * (scale or 1 / math.sqrt(q.shape[-1])) + bias
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    y = weights / weights.sum(-1, keepdims=True) @ v
    return y.transpose(0, 2, 1, 3).reshape(q.shape[0], q.shape[2], -1)


def _bias(
    shape: tuple[int, int, int], mask: Array | None, added: Array | None, filler: float, causal: Any
) -> Array:
    """Sum of the biases from a mask, from an added bias and from causal order.

    The mask has lengths [B], or allowed keys [B, S] or [B, L, S].
    """
    batch, length, keys = shape
    bias = np.zeros((batch, 1, length, keys))
    if mask is not None:
        allowed = np.arange(keys) < mask[:, None] if mask.ndim == 1 else mask.astype(bool)
        bias = bias + np.where(allowed.reshape(batch, 1, -1, keys), 0, filler)
    if causal:
        bias = bias + np.where(np.tri(length, keys, dtype=bool), 0, -np.inf)
    return bias if added is None else bias + added


class MultiHeadAttention(Contributed):
    """Attention of separate queries, keys and values; also returns keys and values by head."""

    def _run(  # noqa: PLR0917 - the operator's inputs
        self,
        q: Array,
        k: Array,
        v: Array,
        bias: Array | None = None,
        mask: Array | None = None,
        added: Array | None = None,
        num_heads: int = 1,
        scale: float | None = None,
        unidirectional: int = 0,
        mask_filter_value: float = -10000.0,
    ) -> Any:
        if bias is not None:
            cuts = np.cumsum([q.shape[2], k.shape[2]])
            q, k, v = (x + b for x, b in zip((q, k, v), np.split(bias, cuts), strict=True))
        shape = (q.shape[0], q.shape[1], k.shape[1])
        total = _bias(shape, mask, added, mask_filter_value, unidirectional)
        by_head = (x.reshape(*x.shape[:2], num_heads, -1).transpose(0, 2, 1, 3) for x in (k, v))
        y = _attend(q, k, v, num_heads, total, scale)
        return (y, *by_head)[: len(self.onnx_node.output)]


class Attention(Contributed):
    """Attention whose queries, keys and values are the parts of x W + b."""

    def _run(  # noqa: PLR0917 - the operator's inputs
        self,
        x: Array,
        weights: Array,
        bias: Array | None = None,
        mask: Array | None = None,
        past: Array | None = None,  # noqa: ARG002 - never given here
        added: Array | None = None,
        num_heads: int = 1,
        scale: float | None = None,
        unidirectional: int = 0,
        mask_filter_value: float = -10000.0,
        qkv_hidden_sizes: list[int] | None = None,
    ) -> Any:
        z = x @ weights + (0 if bias is None else bias)
        widths = qkv_hidden_sizes or [z.shape[2] // 3] * 3
        q, k, v = np.split(z, np.cumsum(widths[:2]), axis=2)
        shape = (x.shape[0], x.shape[1], x.shape[1])
        total = _bias(shape, mask, added, mask_filter_value, unidirectional)
        return (_attend(q, k, v, num_heads, total, scale),)


class RotaryEmbedding(Contributed):
    """The second input has the position of each token, or only that of the first token."""

    def _run(
        self,
        x: Array,
        positions: Array,
        cos: Array,
        sin: Array,
        interleaved: int = 0,
        num_heads: int = 0,
        rotary_embedding_dim: int = 0,
    ) -> Any:
        flat = x.ndim == 3
        heads = num_heads or x.shape[-1] // (2 * cos.shape[1])
        by_head = x.reshape(*x.shape[:2], heads, -1).transpose(0, 2, 1, 3) if flat else x
        length, width = by_head.shape[2], rotary_embedding_dim or by_head.shape[3]
        rows = positions + np.arange(length) if positions.shape == (1,) else positions
        c, s = cos[rows][..., None, :, :], sin[rows][..., None, :, :]
        halves = (
            (slice(0, width, 2), slice(1, width, 2))
            if interleaved
            else (
                slice(0, width // 2),
                slice(width // 2, width),
            )
        )
        a, b = (by_head[..., half] for half in halves)
        turned = by_head.copy()
        turned[..., halves[0]], turned[..., halves[1]] = a * c - b * s, a * s + b * c
        return (turned.transpose(0, 2, 1, 3).reshape(x.shape) if flat else turned,)


class GroupQueryAttention(Contributed):
    """Causal attention without past keys; x may contain queries, keys and values side by side."""

    def _run(  # noqa: PLR0917 - the operator's inputs
        self,
        x: Array,
        key: Array | None = None,
        value: Array | None = None,
        past_key: Array | None = None,  # noqa: ARG002 - of no length here
        past_value: Array | None = None,  # noqa: ARG002
        lengths: Array | None = None,  # noqa: ARG002 - all whole
        total: Array | None = None,  # noqa: ARG002
        cos: Array | None = None,
        sin: Array | None = None,
        positions: Array | None = None,  # noqa: ARG002 - never given here
        added: Array | None = None,
        num_heads: int = 1,
        kv_num_heads: int = 1,
        do_rotary: int = 0,
        rotary_interleaved: int = 0,
        local_window_size: int = -1,
        scale: float | None = None,
        softcap: float = 0.0,
    ) -> Any:
        batch, length, width = x.shape
        size = width // (num_heads + (2 * kv_num_heads if key is None else 0))
        cuts = [num_heads * size, (num_heads + kv_num_heads) * size]
        parts = np.split(x, cuts, axis=2) if key is None else (x, key, value)
        q, k, v = (p.reshape(batch, length, -1, size).transpose(0, 2, 1, 3) for p in parts)
        if do_rotary:
            places = np.zeros(1, np.int64)
            settings = {"interleaved": rotary_interleaved, "rotary_embedding_dim": 2 * cos.shape[1]}
            turn = RotaryEmbedding(self.onnx_node, self.run_params)
            q, k = (turn._run(x, places, cos, sin, **settings)[0] for x in (q, k))
        keys, values = (np.repeat(p, num_heads // kv_num_heads, axis=1) for p in (k, v))
        scores = q @ keys.swapaxes(-1, -2) * (scale or 1 / math.sqrt(size))
        scores = softcap * np.tanh(scores / softcap) if softcap else scores
        behind = np.arange(length)[:, None] - np.arange(length)
        allowed = (behind >= 0) & ((behind < local_window_size) | (local_window_size < 0))
        scores = np.where(allowed, scores, -np.inf) + (0 if added is None else added)
        weights = np.exp(scores - scores.max(-1, keepdims=True))
        y = weights / weights.sum(-1, keepdims=True) @ values
        flat = y.transpose(0, 2, 1, 3).reshape(batch, length, -1)
        return (flat, k, v)[: len(self.onnx_node.output)]


class MatMulNBits(Contributed):
    """The result is x Wᵀ + b, with W [N, K] in blocks of quantized codes.

    The first code of a byte is in its lowest bits.
    """

    def _run(  # noqa: PLR0917 - the operator's inputs
        self,
        x: Array,
        codes: Array,
        scales: Array,
        zeros: Array | None = None,
        groups: Array | None = None,  # noqa: ARG002 - never given here
        bias: Array | None = None,
        K: int = 0,  # noqa: N803 - the operator's attributes
        N: int = 0,  # noqa: N803
        bits: int = 4,
        block_size: int = 32,  # noqa: ARG002 - the codes' shape says it
        accuracy_level: int = 0,  # noqa: ARG002
    ) -> Any:
        def opened(packed: Array) -> Array:
            digits = packed[..., None] >> np.arange(0, 8, bits) & (2**bits - 1)
            return digits.reshape(*packed.shape[:-1], -1).astype(np.float64)

        blocks = codes.shape[1]
        if zeros is None:
            zero: Any = 2.0 ** (bits - 1)
        elif zeros.dtype == np.uint8:
            zero = opened(zeros.reshape(N, -1))[:, :blocks, None]
        else:
            zero = zeros.reshape(N, blocks, 1)
        weights = (opened(codes) - zero) * scales.reshape(N, blocks, 1)
        y = x @ weights.reshape(N, -1)[:, :K].T + (0 if bias is None else bias)
        return (y.astype(x.dtype),)


CONTRIBUTED = [
    Attention,
    BiasGelu,
    FastGelu,
    FusedMatMul,
    Gelu,
    GroupQueryAttention,
    MatMulNBits,
    MultiHeadAttention,
    QuickGelu,
    RotaryEmbedding,
    SkipLayerNormalization,
    SkipSimplifiedLayerNormalization,
    type("TransposeMatMul", (FusedMatMul,), {}),
]
