"""Gradients of ONNX Runtime's own operators (com.microsoft); see its ContribOperators.md."""

from __future__ import annotations

import functools
import math

from onnxstep.attention_math import (
    Attention,
    attention_backward,
    causal_mask,
    merge_heads,
    split_heads,
)
from onnxstep.axes import split_at
from onnxstep.builder import Builder, Value
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
    q, k, v = (split_heads(x, x.shape[-1] // size) for x in operands)
    of = Attention(
        q=_rotate_by_position(node, q),
        k=_rotate_by_position(node, k),
        v=v,
        scale=node.attribute("scale") or 1 / math.sqrt(size),
        allowed=causal_mask(q, q.shape[2], int(node.attribute("local_window_size", -1))),
        cap=node.attribute("softcap", 0.0),
        bias=node.optional_input(10),
    )
    received = op.zeros(node.y.shape, q.elem_type) if dy is None else dy
    by_head = [split_heads(x, heads) for x in (node.y, received)]
    dq, dk, dv, d_bias = attention_backward(of, *by_head)
    dk = dk if d_keys is None else dk + d_keys
    dv = dv if d_values is None else dv + d_values
    turned = (_rotate_by_position(node, x, back=True) for x in (dq, dk))
    parts = [merge_heads(x) for x in (*turned, dv)]
    dx = [op.Concat(*parts, axis=-1), None, None] if packed else parts
    return [*dx, *[None] * 7, d_bias]


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
