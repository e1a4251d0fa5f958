"""Output shapes that onnx cannot infer: for ONNX Runtime's operators and some of ai.onnx.ml."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import onnx
from onnx import TensorProto, helper

from onnxstep.graphs.nodes import node_attributes
from onnxstep.graphs.tensors import static_shape

DOMAIN = "com.microsoft"
# All operators of ONNX Runtime's domain have this version.
VERSION = 1
ML_DOMAIN = "ai.onnx.ml"


class TensorType(NamedTuple):
    """An ONNX element type and a static shape."""

    elem_type: int
    shape: tuple[int, ...]


# Omitted inputs are None. If a rule needs one of these, it raises AttributeError.
Inputs = Sequence[Any]
Outputs = Sequence[TensorType | None]
Attributes = Mapping[str, Any]


def is_known(node: onnx.NodeProto) -> bool:
    """Whether this module can infer the output shapes of the node's operator."""
    return node.domain == DOMAIN or (node.domain, node.op_type) in _RULES


def output_types(
    node: onnx.NodeProto, types: Mapping[str, onnx.TypeProto]
) -> dict[str, onnx.TypeProto]:
    """Types of a node's outputs by name; empty if the operator or an input's shape is unknown."""
    rule = _RULES.get((node.domain, node.op_type))
    tensors = [_tensor(types.get(name)) for name in node.input]
    if rule is None or any(
        name and tensor is None for name, tensor in zip(node.input, tensors, strict=True)
    ):
        return {}
    attributes = node_attributes(node)
    try:
        yielded = rule([*tensors, *[None] * _MOST_INPUTS], attributes)
    except (TypeError, ValueError, IndexError, KeyError, AttributeError, ZeroDivisionError):
        return {}  # The inputs do not fit the operator; the caller reports an unknown shape.
    return {
        name: helper.make_tensor_type_proto(tensor.elem_type, list(tensor.shape))
        for name, tensor in zip(node.output, yielded, strict=False)
        if name and tensor is not None
    }


def _tensor(kind: onnx.TypeProto | None) -> TensorType | None:
    shape = static_shape(kind)
    return None if kind is None or shape is None else TensorType(kind.tensor_type.elem_type, shape)


def _as_first(inputs: Inputs, _: Attributes) -> Outputs:
    return [inputs[0]]


def _skip_layer_normalization(inputs: Inputs, _: Attributes) -> Outputs:
    x = inputs[0]
    row_statistic = TensorType(TensorProto.FLOAT, (*x.shape[:-1], 1))
    # The normalized sum, the means of rows, the inverse deviations of rows, and the sum.
    return [x, row_statistic, row_statistic, x]


def _fused_matmul(inputs: Inputs, attributes: Attributes) -> Outputs:
    a, b = (
        _transposed_operand_shape(
            inputs[place].shape,
            moves_first_axis=bool(attributes.get(f"transBatch{side}")),
            swaps_last_axes=bool(attributes.get(f"trans{side}")),
        )
        for place, side in enumerate("AB")
    )
    rows, columns = ((1, *a) if len(a) == 1 else a), ((*b, 1) if len(b) == 1 else b)
    if rows[-1] != columns[-2]:
        raise ValueError("inner dimensions differ")
    batch = np.broadcast_shapes(rows[:-2], columns[:-2])
    last_axes = [*rows[-2:-1]] * (len(a) > 1) + [*columns[-1:]] * (len(b) > 1)
    return [TensorType(inputs[0].elem_type, (*batch, *last_axes))]


def _transposed_operand_shape(
    shape: tuple[int, ...], *, moves_first_axis: bool, swaps_last_axes: bool
) -> tuple[int, ...]:
    if len(shape) == 1:
        return shape
    # FusedMatMul moves the first axis behind the other batch axes.
    moved = (*shape[1:-1], shape[0], shape[-1]) if moves_first_axis else shape
    return (*moved[:-2], moved[-1], moved[-2]) if swaps_last_axes else moved


def _multi_head_attention(inputs: Inputs, attributes: Attributes) -> Outputs:
    """Types of the result [B, L, V], and of keys and values for each head.

    Inputs are queries [B, L, D], keys [B, S, D] and values [B, S, V]. The outputs for each head are
    keys [B, heads, S, D / heads] and values [B, heads, S, V / heads].
    """
    query, key, value = inputs[:3]
    batch, length, width = query.shape
    heads, keys = attributes["num_heads"], key.shape[1]
    present = (batch, heads, keys)
    return [
        TensorType(query.elem_type, (batch, length, value.shape[2])),
        TensorType(query.elem_type, (*present, width // heads)),
        TensorType(query.elem_type, (*present, value.shape[2] // heads)),
    ]


def _packed_attention(inputs: Inputs, attributes: Attributes) -> Outputs:
    """Types of the result, and of one tensor with keys and values.

    Without ``qkv_hidden_sizes``, queries, keys and values each get a third of the columns.
    """
    x, weights = inputs[:2]
    sizes = attributes.get("qkv_hidden_sizes") or [weights.shape[1] // 3] * 3
    batch, length, _ = x.shape
    heads = attributes["num_heads"]
    present = TensorType(x.elem_type, (2, batch, heads, length, sizes[2] // heads))
    return [TensorType(x.elem_type, (batch, length, sizes[2])), present]


def _grouped_query_attention(inputs: Inputs, attributes: Attributes) -> Outputs:
    """Types of the result, and of the caches of keys and values.

    The caches are as long as the input cache, or as the queries if that is missing or empty.
    """
    query, past = inputs[0], inputs[3]
    batch, length, width = query.shape
    heads, kv_heads = attributes["num_heads"], attributes["kv_num_heads"]
    size = width // (heads + 2 * kv_heads if inputs[1] is None else heads)
    keys = past.shape[2] if past is not None and past.shape[2] else length
    present = TensorType(
        query.elem_type if past is None else past.elem_type, (batch, kv_heads, keys, size)
    )
    return [TensorType(query.elem_type, (batch, length, heads * size)), present, present]


def _few_bits_matmul(inputs: Inputs, attributes: Attributes) -> Outputs:
    x = inputs[0]
    return [TensorType(x.elem_type, (*x.shape[:-1], attributes["N"]))]


def _gather_block_quantized(inputs: Inputs, attributes: Attributes) -> Outputs:
    table, places, scales = inputs[:3]
    if attributes.get("gather_axis", 0) != 0:
        raise ValueError("gathers along another axis than rows")
    numbers_per_element = (
        8 // attributes.get("bits", 4) if table.elem_type == TensorProto.UINT8 else 1
    )
    row = (*table.shape[1:-1], table.shape[-1] * numbers_per_element)
    return [TensorType(scales.elem_type, (*places.shape, *row))]


def _scaler(inputs: Inputs, _: Attributes) -> Outputs:
    return [TensorType(TensorProto.FLOAT, inputs[0].shape)]


def _linear_regressor(inputs: Inputs, attributes: Attributes) -> Outputs:
    batch, _ = inputs[0].shape
    return [TensorType(TensorProto.FLOAT, (batch, attributes.get("targets", 1)))]


_MOST_INPUTS = 16
_CONTRIBUTED: Mapping[str, Callable[[Inputs, Attributes], Outputs]] = {
    **dict.fromkeys(("BiasGelu", "FastGelu", "Gelu", "QuickGelu", "RotaryEmbedding"), _as_first),
    "MoE": _as_first,
    **dict.fromkeys(
        ("SkipLayerNormalization", "SkipSimplifiedLayerNormalization"), _skip_layer_normalization
    ),
    **dict.fromkeys(("FusedMatMul", "TransposeMatMul"), _fused_matmul),
    "MultiHeadAttention": _multi_head_attention,
    "Attention": _packed_attention,
    "GroupQueryAttention": _grouped_query_attention,
    "MatMulNBits": _few_bits_matmul,
    "GatherBlockQuantized": _gather_block_quantized,
}
_RULES = {
    **{(DOMAIN, op_type): rule for op_type, rule in _CONTRIBUTED.items()},
    (ML_DOMAIN, "Scaler"): _scaler,
    (ML_DOMAIN, "LinearRegressor"): _linear_regressor,
}
