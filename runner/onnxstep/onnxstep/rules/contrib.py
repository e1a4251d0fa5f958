"""Gradients of ONNX Runtime's own operators (com.microsoft), which its optimizers write.

Definitions are those of ONNX Runtime's ContribOperators.md. Most emitted nodes are standard ONNX.
"""

from __future__ import annotations

import functools
import math
import operator

import numpy as np
from onnx import TensorProto

from onnxstep.attention_math import (
    Attention,
    AttentionCotangents,
    RotaryLayout,
    attention_backward,
    band_masks,
    merge_heads,
    split_heads,
)
from onnxstep.builder import Builder, Value, ascending
from onnxstep.cotangent_sums import unbroadcast
from onnxstep.errors import ModelError
from onnxstep.graphs.contrib import DOMAIN, VERSION
from onnxstep.graphs.nodes import node_attributes
from onnxstep.registry import Cotangents, Node, gradient
from onnxstep.rules.activation import gelu_slope, gelu_tanh_slope
from onnxstep.rules.linear import matmul_cotangents
from onnxstep.rules.normal import mean, through

contributed = functools.partial(gradient, versions=(VERSION,), domain=DOMAIN)
_EPSILON = 1e-12
_MASKED = -10000.0
_SCATTERS_ADD = 16
_SEQUENCE = 3
_MATRIX = 2


@contributed("Gelu")
def gelu(_: Builder, node: Node, dy: Value) -> Cotangents:
    """D(x Φ(x)) = (Φ(x) + x φ(x)) dx, with the standard normal distribution Φ and its density φ."""
    return dy * gelu_slope(node.x)


@contributed("BiasGelu")
def bias_gelu(_: Builder, node: Node, dy: Value) -> Cotangents:
    """Gradient of Gelu of x + b."""
    dx = dy * gelu_slope(node.x + node.input(1))
    return dx, dx


@contributed("FastGelu")
def fast_gelu(_: Builder, node: Node, dy: Value) -> Cotangents:
    """Gradient of Gelu's tanh approximation, of x or of x + b."""
    bias = node.optional_input(1)
    dx = dy * gelu_tanh_slope(node.x if bias is None else node.x + bias)
    return dx, dx


@contributed("QuickGelu")
def quick_gelu(op: Builder, node: Node, dy: Value) -> Cotangents:
    """D(x s) = (s + α x s (1 - s)) dx, with s = σ(α x)."""
    alpha: float = node.attribute("alpha", 1.702)
    s = op.Sigmoid(node.x * alpha)
    return dy * (s + node.y * (1.0 - s) * alpha)


@contributed("SkipLayerNormalization")
def skip_layer_normalization(
    op: Builder, node: Node, dy: Value | None, *received: Value | None
) -> Cotangents:
    """Gradient of LayerNormalization of input + skip (+ bias) over the last axis.

    The sum is an output of the node too.
    """
    ds, d_gamma = _through_sum(op, node, dy, received, bias=4)
    return ds, ds, d_gamma, dy, ds


@contributed("SkipSimplifiedLayerNormalization")
def skip_simplified_layer_normalization(
    op: Builder, node: Node, dy: Value | None, *received: Value | None
) -> Cotangents:
    """Gradient of input + skip (+ bias) normalized by its root mean square, without mean or β."""
    ds, d_gamma = _through_sum(op, node, dy, received, bias=3)
    return ds, ds, d_gamma, ds


def _through_sum(
    op: Builder, node: Node, dy: Value | None, received: tuple[Value | None, ...], bias: int
) -> tuple[Value, Value]:
    """Cotangents of the sum s and of the scale γ, from those of the node's outputs.

    ``dy`` is the cotangent of y; ``received`` are those of the mean, of the inverse deviation r,
    and of s. With x̂ = (s - mean) · r and rows of n elements, dr/ds = -r² x̂ / n. ``bias`` is the
    index of the input that is added to s.
    """
    total, added = node.x + node.input(1), node.optional_input(bias)
    total = total if added is None else total + added
    axes, centred = [total.rank - 1], node.proto.op_type == "SkipLayerNormalization"
    deviation = total - mean(op, total, axes) if centred else total
    variance = mean(op, deviation * deviation, axes)
    r = op.Reciprocal(op.Sqrt(variance + node.attribute("epsilon", _EPSILON)))
    unit, each = deviation * r, 1 / total.shape[-1]
    g = op.zeros(unit.shape, unit.elem_type) if dy is None else dy
    ds = through(op, g * node.input(2), unit, r, axes, centred=centred)
    d_mean, d_inverse, d_sum = [*received, None, None, None][:3]
    if d_inverse is not None:
        ds = ds - unit * (r * r * d_inverse.cast(ds.elem_type) * each)
    if d_mean is not None and centred:
        ds = ds + d_mean.cast(ds.elem_type) * each
    return ds if d_sum is None else ds + d_sum, g * unit


@contributed("FusedMatMul")
@contributed("TransposeMatMul")
def fused_matmul(_: Builder, node: Node, dy: Value) -> Cotangents:
    """D(α A' B') = α (dA' B' + A' dB'), where A' and B' are the operands with permuted axes."""
    a, b, alpha = _turned(node, 0), _turned(node, 1), node.attribute("alpha", 1.0)
    da, db = matmul_cotangents(a, b, dy if alpha == 1 else dy * alpha)
    return [
        _turned_back(node, 0, unbroadcast(da, a.shape)),
        _turned_back(node, 1, unbroadcast(db, b.shape)),
    ]


def _order(node: Node, place: int) -> list[int]:
    """The permutation that FusedMatMul applies to the axes of an operand.

    ``transBatch`` moves the first axis behind the other batch axes; ``trans`` swaps the last two.
    """
    rank, side = node.input(place).rank, "AB"[place]
    order = list(range(rank))
    if rank >= _MATRIX and node.attribute(f"transBatch{side}"):
        order = [*order[1:-1], order[0], order[-1]]
    if rank >= _MATRIX and node.attribute(f"trans{side}"):
        order[-2:] = order[:-3:-1]
    return order


def _turned(node: Node, place: int) -> Value:
    x, order = node.input(place), _order(node, place)
    return x if order == sorted(order) else node.op.Transpose(x, perm=order)


def _turned_back(node: Node, place: int, cotangent: Value) -> Value:
    order = _order(node, place)
    if order == sorted(order):
        return cotangent
    return node.op.Transpose(cotangent, perm=[int(axis) for axis in np.argsort(order)])


@contributed("MultiHeadAttention")
def multi_head_attention(
    op: Builder,
    node: Node,
    dy: Value | None,
    d_keys: Value | None = None,
    d_values: Value | None = None,
) -> Cotangents:
    """Gradient of attention of queries, keys and values [B, L, heads · E].

    The bias input has a part for each of the three.
    """
    if any(x is None or x.rank != _SEQUENCE for x in [*node.inputs, None, None][:3]):
        raise ModelError(f"{node.label}: expected queries, keys and values of rank 3, not packed")
    if any(node.optional_input(place) for place in (6, 7)):
        raise ModelError(f"{node.label}: past keys and values are not differentiated")
    operands = [node.input(place) for place in range(3)]
    widths = [x.shape[-1] for x in operands]
    bias = node.optional_input(3)
    parts = [None] * 3 if bias is None else _parts(bias, widths)
    shifted = [x if b is None else x + b for x, b in zip(operands, parts, strict=True)]
    pulled = _pull_heads(op, node, shifted, (4, 5), dy)
    dq, dk, dv = _together(pulled, d_keys, d_values)
    d_bias = [_over_positions(d) for d in (dq, dk, dv)]
    return dq, dk, dv, op.Concat(*d_bias, axis=0), None, pulled.bias


@contributed("Attention")
def packed_attention(
    op: Builder, node: Node, dy: Value | None, d_present: Value | None = None
) -> Cotangents:
    """Gradient of attention whose queries, keys and values are the parts of x W + b."""
    if node.optional_input(4) is not None or d_present is not None:
        raise ModelError(f"{node.label}: past and present keys and values are not differentiated")
    if node.attribute("do_rotary"):
        raise ModelError(f"{node.label}: rotation inside attention is not differentiated")
    x, weights, bias = node.x, node.input(1), node.optional_input(2)
    third = weights.shape[1] // 3
    widths = list(node.attribute("qkv_hidden_sizes") or [third] * 3)
    product = op.MatMul(x, weights)
    shifted = _parts(product if bias is None else product + bias, widths)
    pulled = _pull_heads(op, node, shifted, (3, 5), dy)
    dz = op.Concat(*_together(pulled), axis=-1)
    dx, d_weights = matmul_cotangents(x, weights, dz)
    return dx, d_weights, _over_positions(dz), None, None, pulled.bias


def _pull_heads(
    op: Builder, node: Node, qkv: list[Value], masks: tuple[int, int], dy: Value | None
) -> AttentionCotangents:
    """Cotangents of queries, keys and values ``qkv`` [B, L, heads · E], split by heads.

    ``masks`` are the input indices of the padding mask and of the added bias.
    """
    heads = int(node.attribute("num_heads"))
    q, k, v = (split_heads(x, heads) for x in qkv)
    padding, added = (node.optional_input(place) for place in masks)
    biases = [b for b in (_padding(node, padding, k.shape[2], q.elem_type), added) if b is not None]
    causal = (
        band_masks(q, q.shape[2], k.shape[2], 0, (-1, 0))
        if node.attribute("unidirectional")
        else []
    )
    of = Attention(
        q=q,
        k=k,
        v=v,
        scale=node.attribute("scale") or 1 / math.sqrt(q.shape[-1]),
        bias=functools.reduce(operator.add, biases) if biases else None,
        allowed=causal[0] if causal else None,
    )
    y = split_heads(node.y, heads)
    received = op.zeros(y.shape, y.elem_type) if dy is None else split_heads(dy, heads)
    return attention_backward(of, y, received)


def _padding(node: Node, mask: Value | None, keys: int, elem_type: int) -> Value | None:
    """A bias that excludes padded keys; the mask has lengths [B], or keys [B, S] or [B, L, S]."""
    if mask is None:
        return None
    op, batch = node.op, node.x.shape[0]
    if mask.rank == 1 and mask.shape[0] == batch:
        positions = op.constant(ascending(keys))
        lengths = op.Reshape(op.Cast(mask, to=TensorProto.INT64), op.integers(batch, 1, 1, 1))
        is_kept = op.Less(positions, lengths)
    elif mask.rank in (_MATRIX, _SEQUENCE):
        rows = mask.shape[1] if mask.rank == _SEQUENCE else 1
        is_kept = op.Reshape(op.Cast(mask, to=TensorProto.BOOL), op.integers(batch, 1, rows, keys))
    else:
        raise ModelError(f"{node.label}: a mask of shape {list(mask.shape)} is not differentiated")
    filler = op.scalar(node.attribute("mask_filter_value", _MASKED), elem_type)
    return op.Where(is_kept, op.scalar(0.0, elem_type), filler)


def _parts(x: Value, widths: list[int]) -> list[Value]:
    op = x.op
    return list(op.emit("Split", [x, op.integers(*widths)], {"axis": -1}, outputs=len(widths)))


def _together(
    pulled: AttentionCotangents, d_keys: Value | None = None, d_values: Value | None = None
) -> list[Value]:
    """Cotangents of queries, keys and values, merged from heads to [B, L, heads · E].

    ``d_keys`` and ``d_values``, the cotangents of the present keys and values, are added.
    """
    dk = pulled.k if d_keys is None else pulled.k + d_keys
    dv = pulled.v if d_values is None else pulled.v + d_values
    return [merge_heads(x) for x in (pulled.q, dk, dv)]


def _over_positions(x: Value) -> Value:
    return x.op.ReduceSum(x, x.op.integers(0, 1), keepdims=0)


@contributed("GroupQueryAttention")
def group_query_attention(
    op: Builder,
    node: Node,
    dy: Value | None,
    d_keys: Value | None = None,
    d_values: Value | None = None,
) -> Cotangents:
    """Gradient of causal attention in which groups of query heads share keys and values.

    The runtime does not define the result of queries beyond a sequence's end. Their cotangents must
    be zero, which they are if the loss ignores these targets.
    """
    _require_plain(node)
    heads, shared = int(node.attribute("num_heads")), int(node.attribute("kv_num_heads"))
    packed = node.optional_input(1) is None
    size = node.y.shape[-1] // heads
    widths = [heads * size, shared * size, shared * size]
    operands = _parts(node.x, widths) if packed else [node.input(place) for place in range(3)]
    q, k, v = (split_heads(x, x.shape[-1] // size) for x in operands)
    window = int(node.attribute("local_window_size", -1))
    length = q.shape[2]
    of = Attention(
        q=_turned_heads(node, q),
        k=_turned_heads(node, k),
        v=v,
        scale=node.attribute("scale") or 1 / math.sqrt(size),
        cap=node.attribute("softcap", 0.0),
        bias=node.optional_input(10),
        allowed=functools.reduce(
            op.And, band_masks(q, length, length, 0, (window - 1 if window > 0 else -1, 0))
        ),
    )
    received = op.zeros(node.y.shape, q.elem_type) if dy is None else dy
    pulled = attention_backward(of, split_heads(node.y, heads), split_heads(received, heads))
    dk = pulled.k if d_keys is None else pulled.k + d_keys
    dv = pulled.v if d_values is None else pulled.v + d_values
    turned = (_turned_heads(node, pulled.q, -1), _turned_heads(node, dk, -1), dv)
    parts = [merge_heads(x) for x in turned]
    dx = [op.Concat(*parts, axis=-1), None, None] if packed else parts
    return [*dx, *[None] * 7, pulled.bias]


def _require_plain(node: Node) -> None:
    """Raise ModelError for forms of GroupQueryAttention that have no derivative here."""
    past = node.optional_input(3)
    if past is not None and past.shape[2]:
        raise ModelError(
            f"{node.label}: past keys and values are not differentiated; bind their length to 0"
        )
    if node.attribute("smooth_softmax") or any(map(node.optional_input, (9, 11, 12, 13))):
        forms = "fed positions, sinks and quantized caches"
        raise ModelError(f"{node.label}: {forms} are not differentiated")
    if node.wants(7) or node.wants(8):
        raise ModelError(f"{node.label}: its angles are not differentiated; freeze them")


def _turned_heads(node: Node, x: Value, sense: int = 1) -> Value:
    """Rotate queries or keys [B, heads, L, E] by their positions; back again if ``sense`` is -1."""
    if not node.attribute("do_rotary"):
        return x
    op, (cos, sin) = node.op, (node.input(7), node.input(8))
    attributes = {"interleaved": node.attribute("rotary_interleaved", 0), "domain": DOMAIN}
    if 2 * cos.shape[1] < x.shape[3]:
        attributes |= {"num_heads": x.shape[1], "rotary_embedding_dim": 2 * cos.shape[1]}
    inputs = [x, op.integers(0), cos, sin if sense > 0 else -sin]
    return op.emit("RotaryEmbedding", inputs, attributes)[0]


@contributed("RotaryEmbedding")
def rotary_embedding(op: Builder, node: Node, dy: Value) -> Cotangents:
    """Turn the cotangent's pairs back by the same angles, with ONNX Runtime's RotaryEmbedding.

    The second input has the position of each token [B, L], or of the first token only [1].
    """
    x, positions, cos, sin = (node.input(place) for place in range(4))
    attributes = node_attributes(node.proto)
    backwards = [dy, positions, cos, -sin]
    [dx] = op.emit("RotaryEmbedding", backwards, attributes | {"domain": DOMAIN})
    if not (node.wants(2) or node.wants(3)):
        return (dx,)
    if op.opset < _SCATTERS_ADD:
        raise ModelError(f"{node.label}: expected opset {_SCATTERS_ADD} or newer, or frozen angles")
    turning = RotaryLayout(
        heads=int(node.attribute("num_heads", 0)) or x.shape[-1] // (2 * cos.shape[1]),
        width=int(node.attribute("rotary_embedding_dim", 0)),
        interleaved=bool(node.attribute("interleaved", 0)),
    )
    length = x.shape[1] if x.rank == _SEQUENCE else x.shape[2]
    if positions.shape == (1,):
        steps = op.constant(ascending(length))
        positions = op.Expand(positions + steps, op.integers(x.shape[0], length))
    return dx, None, *turning.cache_cotangents(x, dy, positions, cos)
