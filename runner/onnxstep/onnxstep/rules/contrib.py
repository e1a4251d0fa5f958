"""Gradients of ONNX Runtime's own operators (com.microsoft); see its ContribOperators.md."""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass

import numpy as np
from onnx import TensorProto, helper

from onnxstep.axes import cut_along, late, split_at, transposed, zero_after
from onnxstep.builder import Builder, Value, ascending
from onnxstep.errors import ModelError
from onnxstep.graphs.contrib import DOMAIN, VERSION
from onnxstep.graphs.nodes import node_attributes
from onnxstep.registry import Cotangents, Node, gradient
from onnxstep.rules.activation import gelu, gelu_tanh_slope
from onnxstep.rules.normal import add_from_statistics, mean, through

contributed = functools.partial(gradient, versions=(VERSION,), domain=DOMAIN)
_EPSILON = 1e-12


contributed("Gelu")(gelu)


@contributed("FastGelu")
def fast_gelu(_: Builder, node: Node, dy: Value) -> Cotangents:
    """Gradient of Gelu's tanh approximation at x, or at x + b if the node has a bias b."""
    bias = node.optional_input(1)
    dx = dy * gelu_tanh_slope(node.x if bias is None else node.x + bias)
    return dx, dx


@contributed("SkipLayerNormalization")
@contributed("SkipSimplifiedLayerNormalization")
def skip_normalization(
    op: Builder, node: Node, dy: Value | None, *d_more_outputs: Value | None
) -> Cotangents:
    """Gradient of y = γ x̂ (+ β), where x̂ = (s - mean) · r in each row of s.

    s is input + skip (+ bias), and r the inverse standard deviation. ``d_more_outputs`` are the
    gradients of mean, r and s. SkipSimplifiedLayerNormalization has no β and takes 0 as the mean.
    """
    centred = node.proto.op_type == "SkipLayerNormalization"
    total, bias = node.x + node.input(1), node.optional_input(4 if centred else 3)
    total = total if bias is None else total + bias
    axes = [total.rank - 1]
    deviation = total - mean(total, axes) if centred else total
    variance = mean(deviation * deviation, axes)
    r = op.Reciprocal(op.Sqrt(variance + node.attribute("epsilon", _EPSILON)))
    unit = deviation * r
    g = op.zeros(unit.shape, unit.elem_type) if dy is None else dy
    ds = through(g * node.input(2), unit, r, axes, centred=centred)
    d_mean, d_inverse, d_sum = [*d_more_outputs, None, None, None][:3]
    ds = add_from_statistics(ds, unit, r, d_mean if centred else None, d_inverse)
    ds = ds if d_sum is None else ds + d_sum
    return ds, ds, g * unit, *([dy] if centred else []), ds


@contributed("GroupQueryAttention")
def group_query_attention(
    op: Builder,
    node: Node,
    dy: Value | None,
    d_keys: Value | None = None,
    d_values: Value | None = None,
) -> Cotangents:
    """Gradient of causal attention in which groups of query heads share keys and values.

    The loss must ignore results beyond a sequence's end, which ONNX Runtime leaves undefined.
    """
    _require_differentiable_options(node)
    heads, shared = int(node.attribute("num_heads")), int(node.attribute("kv_num_heads"))
    packed = node.optional_input(1) is None
    size = node.y.shape[-1] // heads
    widths = [heads * size, shared * size, shared * size]
    operands = split_at(node.x, widths, axis=-1) if packed else [*map(node.input, range(3))]
    q, k, v = (_split_heads(x, x.shape[-1] // size) for x in operands)
    of = _Attention(
        q=_rotate_by_position(node, q),
        k=_rotate_by_position(node, k),
        v=v,
        scale=node.attribute("scale") or 1 / math.sqrt(size),
        allowed=_causal_mask(q, q.shape[2], int(node.attribute("local_window_size", -1))),
        cap=node.attribute("softcap", 0.0),
        bias=node.optional_input(10),
    )
    received = op.zeros(node.y.shape, q.elem_type) if dy is None else dy
    by_head = [_split_heads(x, heads) for x in (node.y, received)]
    dq, dk, dv, d_bias = _attention_backward(of, *by_head)
    dk = dk if d_keys is None else dk + d_keys
    dv = dv if d_values is None else dv + d_values
    turned = (_rotate_by_position(node, x, back=True) for x in (dq, dk))
    parts = [_merge_heads(x) for x in (*turned, dv)]
    dx = [op.Concat(*parts, axis=-1), None, None] if packed else parts
    return [*dx, *[None] * 7, d_bias]


@dataclass(frozen=True)
class _Attention:
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


def _attention_backward(of: _Attention, y: Value, dy: Value) -> tuple[Value, Value, Value, Value]:
    """Emit the gradients of q, k, v and bias, given the result ``y`` [B, H, L, F].

    The scores are s = q kᵀ · scale. With a cap c, a = c · tanh(s / c), else a = s. Then p =
    softmax(a + bias) and y = p v. The prefix d marks the gradient of the loss with respect to a
    value. ∘ is the elementwise product, and Σ sums over the last axis. Without a cap, ds = da.

        dv = pᵀ dy, da = p ∘ (dy vᵀ - Σ dy ∘ y), ds = da ∘ (1 - (a / c)²)
        dq = ds k · scale, dk = dsᵀ q · scale

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


def _causal_mask(like: Value, length: int, window: int = 0) -> Value:
    """Mask [length, length] that is True for each query's own position and earlier positions.

    ``window`` > 0 allows only the last ``window`` positions. ``like`` is any value of the graph.
    """
    op = like.op
    rows, columns = op.constant(ascending(length).reshape(-1, 1)), op.constant(ascending(length))
    mask = op.LessOrEqual(columns, rows)
    if window <= 0:
        return mask
    return op.And(mask, op.Greater(columns, rows - op.integers(window)))


def _split_heads(x: Value, heads: int) -> Value:
    """Reshape [B, L, heads · E] to [B, heads, L, E]."""
    op, (batch, length, width) = x.op, x.shape
    by_head = x.reshape(batch, length, heads, width // heads)
    return op.Transpose(by_head, perm=[0, 2, 1, 3])


def _merge_heads(x: Value) -> Value:
    """Reshape [B, heads, L, E] to [B, L, heads · E]."""
    op, (batch, heads, length, width) = x.op, x.shape
    return op.Transpose(x, perm=[0, 2, 1, 3]).reshape(batch, length, heads * width)


def _group_by_key_head(x: Value, key_heads: int) -> Value:
    """Reshape x [B, H, L, n] to [B, K, H / K · L, n], for K = ``key_heads``."""
    batch, _, _, width = x.shape
    if x.shape[1] == key_heads:
        return x
    return x.reshape(batch, key_heads, -1, width)


def _ungroup(x: Value, shape: tuple[int, ...]) -> Value:
    """Reshape x [B, K, H / K · L, n] to [B, H, L, n], for a ``shape`` that begins with B, H, L."""
    if x.shape[1] == shape[1]:
        return x
    return x.reshape(*shape[:3], x.shape[3])


def _scaled_scores(x: Value, keys: Value, scale: float = 1.0) -> Value:
    """The product ``scale`` · x keysᵀ [B, H, L, S], for x [B, H, L, n] and keys [B, K, S, n]."""
    rows = _group_by_key_head(x, keys.shape[1])
    product = x.op.MatMul(rows if scale == 1 else rows * scale, transposed(keys))
    return _ungroup(product, x.shape)


def _sum_over_queries(scores: Value, x: Value, keys: Value) -> Value:
    """Sum scoresᵀ x per key head: [B, K, S, n], for scores [B, H, L, S] and x [B, H, L, n]."""
    heads = keys.shape[1]
    columns = transposed(_group_by_key_head(scores, heads))
    return scores.op.MatMul(columns, _group_by_key_head(x, heads))


def _require_differentiable_options(node: Node) -> None:
    past = node.optional_input(3)
    if past is not None and past.shape[2]:
        raise ModelError(
            f"{node.label}: past keys and values are not differentiated; bind their length to 0"
        )
    if node.attribute("smooth_softmax") or any(map(node.optional_input, (9, 11, 12, 13))):
        forms = "fed positions, sinks and quantized caches"
        raise ModelError(f"{node.label}: {forms} are not differentiated")
    _require_frozen_angles(node, 7, 8)


def _require_frozen_angles(node: Node, *input_indices: int) -> None:
    if any(map(node.wants, input_indices)):
        raise ModelError(f"{node.label}: its angles are not differentiated; freeze them")


def _rotate_by_position(node: Node, x: Value, *, back: bool = False) -> Value:
    """Rotate ``x`` [B, heads, L, E] by position, or ``back``, if the node sets ``do_rotary``."""
    if not node.attribute("do_rotary"):
        return x
    op, (cos, sin) = node.op, (node.input(7), node.input(8))
    attributes = {"interleaved": node.attribute("rotary_interleaved", 0), "domain": DOMAIN}
    if 2 * cos.shape[1] < x.shape[3]:
        attributes |= {"num_heads": x.shape[1], "rotary_embedding_dim": 2 * cos.shape[1]}
    inputs = [x, op.integers(0), cos, -sin if back else sin]
    return op.emit("RotaryEmbedding", inputs, attributes)[0]


@contributed("RotaryEmbedding")
def rotary_embedding(op: Builder, node: Node, dy: Value) -> Cotangents:
    """Rotate the incoming gradient back by the forward pass's angles, with RotaryEmbedding."""
    _require_frozen_angles(node, 2, 3)
    _, positions, cos, sin = (node.input(place) for place in range(4))
    attributes = node_attributes(node.proto) | {"domain": DOMAIN}
    return op.emit("RotaryEmbedding", [dy, positions, cos, -sin], attributes)


_WHOLE_CODES = (2, 4, 8)
_BYTE = 8


@contributed("MatMulNBits")
def few_bits_matmul(op: Builder, node: Node, dy: Value) -> Cotangents:
    """Gradients of x and b in x Wᵀ + b; the weights W [N, K] are dequantized for each product."""
    if node.wants(2):
        raise ModelError(f"{node.label}: scales of quantized weights are not trained; freeze them")
    return op.MatMul(dy, _dequantized_weights(node, dy)), None, None, None, None, dy


def _dequantized_weights(node: Node, dy: Value) -> Value:
    """The weights W [N, K], each computed as (stored integer - zero point) · scale.

    Each block within a row has one zero point and one scale. W has the type of ``dy``.
    """
    op, bits = node.op, int(node.attribute("bits", 4))
    if bits not in _WHOLE_CODES or node.optional_input(4) is not None:
        raise ModelError(f"{node.label}: expected weights of 2, 4 or 8 bits, without g_idx")
    rows, columns, size = (int(node.attribute(key)) for key in ("N", "K", "block_size"))
    blocks, zeros = -(-columns // size), node.optional_input(3)
    zero = 2 ** (bits - 1) if zeros is None else 0
    # Read the stored integers only after dy has been computed: otherwise the runtime would
    # dequantize them once and keep the weights.
    codes = _unpack_integers(late(node.input(1), zero_after(dy)), bits, dy.elem_type, zero)
    steps = codes.reshape(rows, blocks, size)
    if zeros is not None:
        each = zeros if zeros.is_float else _unpack_integers(zeros, bits, dy.elem_type)
        each = cut_along(each.reshape(rows, -1), 1, 0, blocks)
        steps = steps - op.Unsqueeze(each.cast(dy.elem_type), op.integers(-1))
    scales = node.input(2).reshape(rows, blocks, 1).cast(dy.elem_type)
    return cut_along((steps * scales).reshape(rows, -1), 1, 0, columns)


def _unpack_integers(packed_bytes: Value, bits: int, elem_type: int, zero_point: int = 0) -> Value:
    """Unpack bytes along a new last axis, lowest bits first, and subtract ``zero_point``."""
    op, places = packed_bytes.op, np.arange(0, _BYTE, bits)
    table = (np.arange(2**_BYTE)[:, None] >> places & (2**bits - 1)) - zero_point
    numbers = op.constant(table.astype(helper.tensor_dtype_to_np_dtype(elem_type)))
    return op.Gather(numbers, op.Cast(packed_bytes, to=TensorProto.INT32))
