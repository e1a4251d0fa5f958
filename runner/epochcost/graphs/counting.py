"""Count the floating-point operations of one run of a graph, for fixed shapes.

Matrix products, convolutions, recurrent layers and attention count, elementwise operators do not. A
multiplication and an addition are two operations. A convolution with one-hot kernels only moves
data, so it does not count.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import partial

import numpy as np
import onnx
from onnx import numpy_helper

from epochcost.errors import ModelError
from onnxstep.graphs.contrib import DOMAIN as CONTRIBUTED
from onnxstep.graphs.nodes import NESTED, node_attributes
from onnxstep.graphs.tensors import declared_values, static_shape

Shapes = Mapping[str, tuple[int, ...]]
Count = Callable[[onnx.NodeProto, Shapes], int]

# Attention's tensors of rank 3 have all heads in the last axis.
_HEADS_IN_LAST_AXIS = 3
# Domain of operators on ONNX Runtime's blocked layout; shapes are declared as in the plain layout.
_BLOCKED = "com.microsoft.nchwc"
_CONVOLUTIONS = frozenset({"Conv", "ConvTranspose"})
# Index of attention's input with the past keys, by domain; 4 in all other domains.
_PAST_KEYS = {CONTRIBUTED: 6}


def flops(model: onnx.ModelProto) -> int:
    """Number of floating-point operations of one run.

    Raises ModelError for a shape that is not static, and for a branch or loop.
    """
    shapes, moving = static_shapes(model), one_hot_kernels(model)
    return sum(node_flops(node, shapes, moving) for node in model.graph.node)


def node_flops(node: onnx.NodeProto, shapes: Shapes, moving: frozenset[str]) -> int:
    """Number of floating-point operations of a node; raises ModelError if it cannot be known.

    Convolutions with the one-hot kernels named in ``moving`` have 0 operations.
    """
    if node.op_type in NESTED:
        raise ModelError(
            f"node {node.output[0]!r}: expected a graph without {node.op_type} to count with: how "
            "often its body runs is not in the graph"
        )
    domain = "" if node.domain == "ai.onnx" else node.domain
    count = _COUNTS.get(domain, {}).get(node.op_type)
    if count is None or (node.op_type in _CONVOLUTIONS and node.input[1] in moving):
        return 0
    try:
        return count(node, shapes)
    except (KeyError, IndexError, ValueError, ZeroDivisionError):
        raise ModelError(
            f"node {node.output[0]!r}: the inputs of {node.op_type} take a form that is not counted"
        ) from None


def static_shapes(model: onnx.ModelProto) -> dict[str, tuple[int, ...]]:
    """Shapes of the main graph's tensors, by name; raises ModelError if a shape is not static."""
    shapes = {t.name: tuple(t.dims) for t in model.graph.initializer}
    declared = set(shapes)
    for info in declared_values(model.graph):
        declared.add(info.name)
        if not info.type.HasField("tensor_type"):
            continue
        shape = static_shape(info.type)
        if shape is None:
            raise ModelError(f"value {info.name!r}: expected a static shape to count with")
        shapes[info.name] = shape
    missing = [n for node in model.graph.node for n in node.output if n and n not in declared]
    if missing:
        raise ModelError(f"value {missing[0]!r}: expected a declared shape to count with")
    return shapes


def one_hot_kernels(model: onnx.ModelProto) -> frozenset[str]:
    """Names of the convolution kernels with as many non-zero elements as filters."""
    return frozenset(
        tensor.name
        for tensor in model.graph.initializer
        if len(tensor.dims) > 2
        and np.count_nonzero(numpy_helper.to_array(tensor)) == tensor.dims[0]
    )


def _matmul_flops(node: onnx.NodeProto, shapes: Shapes) -> int:
    left, attributes = shapes[node.input[0]], node_attributes(node)
    inner = left[-1]
    if len(left) > 1 and attributes.get("transA"):
        inner = left[0] if attributes.get("transBatchA") else left[-2]
    return 2 * math.prod(shapes[node.output[0]]) * inner


def _few_bits_matmul_flops(node: onnx.NodeProto, shapes: Shapes) -> int:
    return 2 * math.prod(shapes[node.output[0]]) * int(node_attributes(node)["K"])


def _conv_flops(node: onnx.NodeProto, shapes: Shapes, kernel_index: int = 1) -> int:
    """Operations of a Conv node, also on padding; kernels are [features, channels / group, ...]."""
    return 2 * math.prod(shapes[node.output[0]]) * math.prod(shapes[node.input[kernel_index]][1:])


def _conv_transpose_flops(node: onnx.NodeProto, shapes: Shapes) -> int:
    """Operations, with kernels of the shape [input channels, output channels / group, ...]."""
    return 2 * math.prod(shapes[node.input[0]]) * math.prod(shapes[node.input[1]][1:])


def _recurrent_flops(node: onnx.NodeProto, shapes: Shapes) -> int:
    """Operations with the weights W [directions, gates · hidden, input] and R [..., hidden]."""
    steps_and_batch = math.prod(shapes[node.input[0]][:2])
    products = math.prod(shapes[node.input[1]]) + math.prod(shapes[node.input[2]])
    return 2 * steps_and_batch * products


def _attention_flops(node: onnx.NodeProto, shapes: Shapes) -> int:
    """Operations, masked ones included; queries are [B, L, heads · D] or [B, heads, L, D]."""
    key = shapes[node.input[1]]
    positions = (key[1] if len(key) == _HEADS_IN_LAST_AXIS else key[2]) + _cached_positions(
        node, shapes, _PAST_KEYS.get(node.domain, 4)
    )
    result = math.prod(shapes[node.output[0]])
    return 2 * positions * (math.prod(shapes[node.input[0]]) + result)


def _grouped_query_attention_flops(node: onnx.NodeProto, shapes: Shapes) -> int:
    """Operations with all positions of the cache, else of the input, including masked ones."""
    positions = _cached_positions(node, shapes, 3) or shapes[node.input[0]][1]
    return 4 * math.prod(shapes[node.output[0]]) * positions


def _expert_mixture_flops(node: onnx.NodeProto, shapes: Shapes) -> int:
    tokens = math.prod(shapes[node.input[0]][:-1])
    experts_per_token = int(node_attributes(node).get("k", 1))
    weights = sum(math.prod(shapes[name][1:]) for name in expert_weights(node))
    return 2 * tokens * experts_per_token * weights


def expert_weights(node: onnx.NodeProto) -> list[str]:
    """Names of the inputs of a mixture-of-experts node that are weights, without biases."""
    return [name for name in node.input[2::2] if name]


def _projecting_attention_flops(node: onnx.NodeProto, shapes: Shapes) -> int:
    """Count attention, and the projection of x [B, L, width] to queries, keys and values."""
    batch, length, _ = x = shapes[node.input[0]]
    weights = shapes[node.input[1]]
    result = shapes[node.output[0]]
    queries = (weights[1] - result[2]) // 2
    positions = length + _cached_positions(node, shapes, 4)
    projecting = math.prod(x) * weights[1]
    return 2 * (projecting + batch * length * positions * (queries + result[2]))


def _cached_positions(node: onnx.NodeProto, shapes: Shapes, input_index: int) -> int:
    name = node.input[input_index] if len(node.input) > input_index else ""
    return shapes[name][-2] if name else 0


def _einsum_flops(node: onnx.NodeProto, shapes: Shapes) -> int:
    """Operations of an Einsum node; 0 for a single operand."""
    if len(node.input) < 2:
        return 0
    terms = node_attributes(node)["equation"].decode().split("->")[0].replace(" ", "").split(",")
    sizes: dict[str | int, int] = {}
    for term, name in zip(terms, node.input, strict=True):
        before, _, after = term.partition("...")
        # The axes of "..." are aligned at the last one and broadcast, so each has a number from -1.
        broadcast = len(shapes[name]) - len(before) - len(after)
        for axis, size in zip((*before, *range(-broadcast, 0), *after), shapes[name], strict=True):
            sizes[axis] = max(size, sizes.get(axis, 1))
    return 2 * math.prod(sizes.values())


# By domain and operator.
_COUNTS: Mapping[str, Mapping[str, Count]] = {
    "": {
        **dict.fromkeys(("MatMul", "Gemm", "MatMulInteger", "QLinearMatMul"), _matmul_flops),
        **dict.fromkeys(("Conv", "ConvInteger", "DeformConv"), _conv_flops),
        **dict.fromkeys(("LSTM", "GRU", "RNN"), _recurrent_flops),
        "ConvTranspose": _conv_transpose_flops,
        "QLinearConv": partial(_conv_flops, kernel_index=3),
        "Einsum": _einsum_flops,
        "Attention": _attention_flops,
    },
    CONTRIBUTED: {
        **dict.fromkeys(("FusedMatMul", "TransposeMatMul"), _matmul_flops),
        "MultiHeadAttention": _attention_flops,
        "Attention": _projecting_attention_flops,
        "GroupQueryAttention": _grouped_query_attention_flops,
        "MatMulNBits": _few_bits_matmul_flops,
        "MoE": _expert_mixture_flops,
    },
    _BLOCKED: {"Conv": _conv_flops},
}
