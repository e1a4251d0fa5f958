"""Gradient of ONNX's Attention."""

from __future__ import annotations

import functools
import math

import numpy as np
from onnx import TensorProto

from onnxstep.attention_math import (
    Attention,
    attention_backward,
    band_masks,
    merge_heads,
    split_heads,
)
from onnxstep.axes import cut_along
from onnxstep.builder import Builder, Value, ascending
from onnxstep.errors import ModelError
from onnxstep.registry import Cotangents, Node, gradient

_BY_HEADS = 4


@gradient("Attention", versions=(23, 24, 25))
def attention(
    op: Builder,
    node: Node,
    dy: Value | None,
    d_keys: Value | None = None,
    d_values: Value | None = None,
    d_scores: Value | None = None,
) -> Cotangents:
    """Gradient of attention over past and present keys; ``attention_math`` has the formulas.

    The present keys and values are outputs too; the cotangents of these outputs are added.
    """
    if d_scores is not None:
        raise ModelError(f"{node.label}: its output of scores is not differentiated")
    of = _attention(op, node)
    y = _by_heads(node, node.y, 0)
    received = op.zeros(y.shape, y.elem_type) if dy is None else _by_heads(node, dy, 0)
    pulled = attention_backward(of, y, received)
    dk = pulled.k if d_keys is None else pulled.k + d_keys
    dv = pulled.v if d_values is None else pulled.v + d_values
    past = _past(node)
    return (
        _as_given(node, 0, pulled.q),
        _as_given(node, 1, cut_along(dk, 2, past, dk.shape[2])),
        _as_given(node, 2, cut_along(dv, 2, past, dv.shape[2])),
        _mask_cotangent(node, pulled.bias),
        cut_along(dk, 2, 0, past) if past else None,
        cut_along(dv, 2, 0, past) if past else None,
    )


def _attention(op: Builder, node: Node) -> Attention:
    q, k, v = (_by_heads(node, node.input(place), place) for place in range(3))
    past_key, past_value = node.optional_input(4), node.optional_input(5)
    mask = _mask(node, _past(node) + k.shape[2])
    masks = [*([] if mask is None or mask.is_float else [mask]), *_positions(op, node, q, k)]
    return Attention(
        q=q,
        k=k if past_key is None else op.Concat(past_key, k, axis=2),
        v=v if past_value is None else op.Concat(past_value, v, axis=2),
        scale=node.attribute("scale") or 1 / math.sqrt(q.shape[-1]),
        cap=node.attribute("softcap", 0.0),
        bias=mask if mask is not None and mask.is_float else None,
        allowed=functools.reduce(op.And, masks) if masks else None,
        precision=node.attribute("softmax_precision", TensorProto.UNDEFINED),
    )


def _positions(op: Builder, node: Node, q: Value, k: Value) -> list[Value]:
    """Masks that depend on positions: causal, limited to a window, and excluding padded keys."""
    queries, past = q.shape[2], _past(node)
    keys = past + k.shape[2]
    offset: int | Value = past
    masks = []
    lengths = node.optional_input(6)
    if lengths is not None:
        valid = op.Reshape(lengths, op.integers(-1, 1, 1, 1))
        offset = valid - queries
        masks.append(op.Less(op.constant(ascending(keys)), valid))
    window = (node.attribute("left_window_size", -1), node.attribute("right_window_size", -1))
    masks += band_masks(q, queries, keys, offset, window)
    return masks + (
        band_masks(q, queries, keys, offset, (-1, 0)) if node.attribute("is_causal") else []
    )


def _mask(node: Node, keys: int) -> Value | None:
    """The node's mask, extended to all keys; added keys are forbidden.

    An integer mask is cast to the type of the queries, as a bias.
    """
    mask, op = node.optional_input(3), node.op
    if mask is not None and not mask.is_float and mask.elem_type != TensorProto.BOOL:
        mask = mask.cast(node.x.elem_type)
    if mask is None or mask.shape[-1] == keys:
        return mask
    forbidden = op.scalar(-np.inf if mask.is_float else False, mask.elem_type)
    rest = (*mask.shape[:-1], keys - mask.shape[-1])
    return op.Concat(mask, op.Expand(forbidden, op.integers(*rest)), axis=mask.rank - 1)


def _mask_cotangent(node: Node, d_bias: Value) -> Value | None:
    mask = node.optional_input(3)
    if mask is None or not mask.is_float:
        return None
    return cut_along(d_bias, 3, 0, mask.shape[-1])


def _past(node: Node) -> int:
    past = node.optional_input(4)
    return 0 if past is None else past.shape[2]


def _by_heads(node: Node, x: Value, place: int) -> Value:
    """Queries, keys or values (``place`` 0, 1, 2) as [B, heads, length, width]."""
    return (
        x
        if x.rank == _BY_HEADS
        else split_heads(x, int(node.attribute("kv_num_heads" if place else "q_num_heads")))
    )


def _as_given(node: Node, place: int, cotangent: Value) -> Value:
    return cotangent if node.input(place).rank == _BY_HEADS else merge_heads(cotangent)
