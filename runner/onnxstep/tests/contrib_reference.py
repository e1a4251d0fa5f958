"""ONNX Runtime's own operators in numpy, as defined in its ContribOperators.md.

onnx's reference evaluator has none of these operators. The gradient tests also compare outputs of
these numpy operators with ONNX Runtime's.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray
from onnx.reference.op_run import OpRun

Array = NDArray[Any]


class Contributed(OpRun):
    """Base class of the operators of the domain com.microsoft."""

    op_domain = "com.microsoft"
    op_schema = None  # unlike ONNX's operator of the same name


class Gelu(Contributed):
    """Gelu: x Φ(x), where Φ is the distribution function of the standard normal distribution."""

    def _run(self, x: Array) -> Any:
        return (x * (1 + np.vectorize(math.erf, otypes=[x.dtype])(x / math.sqrt(2))) / 2,)


class FastGelu(Contributed):
    """The tanh approximation of Gelu, applied to x + bias."""

    def _run(self, x: Array, bias: Array | None = None) -> Any:
        x = x if bias is None else x + bias
        return (x / 2 * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))),)


class SkipLayerNormalization(Contributed):
    """LayerNormalization of s = x + skip + bias; also returns s's mean, 1 / deviation, and s."""

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
    """SkipLayerNormalization that divides by the root mean square and subtracts no mean."""

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


class RotaryEmbedding(Contributed):
    """Rotary embedding; ``positions`` has the position of each token or only of the first token."""

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
        halves = slice(0, width // 2), slice(width // 2, width)
        if interleaved:
            halves = slice(0, width, 2), slice(1, width, 2)
        a, b = (by_head[..., half] for half in halves)
        turned = by_head.copy()
        turned[..., halves[0]], turned[..., halves[1]] = a * c - b * s, a * s + b * c
        return (turned.transpose(0, 2, 1, 3).reshape(x.shape) if flat else turned,)


class GroupQueryAttention(Contributed):
    """Causal attention without past keys.

    If the input ``key`` is omitted, the first input holds queries, keys and values side by side.
    """

    def _run(  # noqa: PLR0917 - the operator's inputs
        self,
        x: Array,
        key: Array | None = None,
        value: Array | None = None,
        past_key: Array | None = None,  # noqa: ARG002 - has length 0 here
        past_value: Array | None = None,  # noqa: ARG002
        lengths: Array | None = None,  # noqa: ARG002 - all sequences are complete
        total: Array | None = None,  # noqa: ARG002
        cos: Array | None = None,
        sin: Array | None = None,
        positions: Array | None = None,  # noqa: ARG002 - never used here
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
    """The operator x Wᵀ + b, with W [N, K] stored as quantized integers in blocks.

    The first integer of a byte is in the byte's lowest bits.
    """

    def _run(  # noqa: PLR0917 - the operator's inputs
        self,
        x: Array,
        codes: Array,
        scales: Array,
        zeros: Array | None = None,
        groups: Array | None = None,  # noqa: ARG002 - never used here
        bias: Array | None = None,
        K: int = 0,  # noqa: N803 - the operator's attributes
        N: int = 0,  # noqa: N803
        bits: int = 4,
        block_size: int = 32,  # noqa: ARG002 - implied by the shape of the codes
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
    FastGelu,
    Gelu,
    GroupQueryAttention,
    MatMulNBits,
    RotaryEmbedding,
    SkipLayerNormalization,
    SkipSimplifiedLayerNormalization,
]
