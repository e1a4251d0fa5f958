"""What running a graph costs in arithmetic and memory, counted from its static shapes.

Counted are the products of matrices, convolutions, recurrences and attention, two floating-point
operations for each multiply and add, as the literature counts them; elementwise work is left out. A
convolution whose kernels are all one-hot moves data and computes nothing.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import numpy as np
import onnx
from onnx import helper, numpy_helper

from epochcost.errors import ModelError
from epochcost.graphs.tensors import declared_values

Shapes = Mapping[str, tuple[int, ...]]
Count = Callable[[onnx.NodeProto, Shapes], int]

# Their output is their input under another shape: no new memory.
_VIEWS = frozenset({"Reshape", "Flatten", "Squeeze", "Unsqueeze", "Identity"})
# Elementwise operators write over an operand that nobody reads again.
_IN_PLACE = frozenset({"Add", "Sub", "Mul", "Div", "Neg", "Exp", "Sqrt", "Relu", "Sigmoid", "Tanh"})


def flops(model: onnx.ModelProto) -> int:
    """Floating-point operations of one run. Raises ModelError where a shape is not static."""
    shapes = _shapes(model)
    moving = _one_hot_kernels(model)
    return sum(
        _COUNTS[node.op_type](node, shapes)
        for node in model.graph.node
        if node.op_type in _COUNTS and (node.op_type != "Conv" or node.input[1] not in moving)
    )


def peak_activation_bytes(model: onnx.ModelProto) -> int:
    """The most that intermediate tensors hold at once, run in the order of the nodes.

    A tensor lives from its node to its last reader; graph inputs, outputs and initializers are not
    counted. Views share memory, and an elementwise result takes the place of an operand of its
    size that dies with it. Raises ModelError where a shape is not static.
    """
    sizes = {name: math.prod(shape) for name, shape in _shapes(model).items()}
    widths = _item_bytes(model)
    root = _storage(model)
    kept = {info.name for info in [*model.graph.input, *model.graph.output]}
    kept |= {tensor.name for tensor in model.graph.initializer}
    last = {
        root.get(name, name): step
        for step, node in enumerate(model.graph.node)
        for name in node.input
    }
    live: dict[str, int] = {}
    peak = 0
    for step, node in enumerate(model.graph.node):
        for name in node.output:
            if name and root.get(name, name) == name and name not in kept:
                live[name] = sizes[name] * widths[name]
        dying = [name for name in live if last.get(name, step) <= step]
        peak = max(peak, sum(live.values()) - _reused(node, live, dying))
        for name in dying:
            del live[name]
    return peak


def _reused(node: onnx.NodeProto, live: Mapping[str, int], dying: list[str]) -> int:
    """The bytes of a dying operand that the node's result takes over."""
    if node.op_type not in _IN_PLACE:
        return 0
    given = max((live[name] for name in dying if name in node.input), default=0)
    return min(given, live.get(node.output[0], 0))


def _shapes(model: onnx.ModelProto) -> dict[str, tuple[int, ...]]:
    shapes = {t.name: tuple(t.dims) for t in model.graph.initializer}
    for info in declared_values(model.graph):
        dims = info.type.tensor_type.shape.dim
        if any(not dim.HasField("dim_value") for dim in dims):
            raise ModelError(f"value {info.name!r}: demanded a static shape to count with")
        shapes[info.name] = tuple(dim.dim_value for dim in dims)
    missing = [n for node in model.graph.node for n in node.output if n and n not in shapes]
    if missing:
        raise ModelError(f"value {missing[0]!r}: demanded a declared shape to count with")
    return shapes


def _item_bytes(model: onnx.ModelProto) -> dict[str, int]:
    return {
        info.name: helper.tensor_dtype_to_np_dtype(info.type.tensor_type.elem_type).itemsize
        for info in declared_values(model.graph)
    }


def _storage(model: onnx.ModelProto) -> dict[str, str]:
    """By name of a view, the tensor whose memory it shows."""
    root: dict[str, str] = {}
    for node in model.graph.node:
        if node.op_type in _VIEWS:
            root[node.output[0]] = root.get(node.input[0], node.input[0])
    return root


def _one_hot_kernels(model: onnx.ModelProto) -> frozenset[str]:
    """Initializers in which every filter has a single non-zero element."""
    return frozenset(
        tensor.name
        for tensor in model.graph.initializer
        if len(tensor.dims) > 2
        and np.count_nonzero(numpy_helper.to_array(tensor)) == tensor.dims[0]
    )


def _matmul(node: onnx.NodeProto, shapes: Shapes) -> int:
    a = shapes[node.input[0]]
    transposed = any(entry.name == "transA" and entry.i for entry in node.attribute)
    inner = a[-2] if len(a) > 1 and transposed else a[-1]
    return 2 * math.prod(shapes[node.output[0]]) * inner


def _conv(node: onnx.NodeProto, shapes: Shapes) -> int:
    return 2 * math.prod(shapes[node.output[0]]) * math.prod(shapes[node.input[1]][1:])


def _conv_transpose(node: onnx.NodeProto, shapes: Shapes) -> int:
    return 2 * math.prod(shapes[node.input[0]]) * math.prod(shapes[node.input[1]][1:])


def _recurrent(node: onnx.NodeProto, shapes: Shapes) -> int:
    """W [directions, gates · hidden, input] and R [directions, gates · hidden, hidden]."""
    steps_and_batch = math.prod(shapes[node.input[0]][:2])
    products = math.prod(shapes[node.input[1]]) + math.prod(shapes[node.input[2]])
    return 2 * steps_and_batch * products


def _einsum(node: onnx.NodeProto, shapes: Shapes) -> int:
    """Every combination of indices is one multiply and add; one operand multiplies nothing."""
    (equation,) = [a.s.decode() for a in node.attribute if a.name == "equation"]
    terms = equation.split("->")[0].replace(" ", "")
    if len(node.input) < 2 or "..." in terms:
        return 0
    sizes = {
        letter: size
        for term, name in zip(terms.split(","), node.input, strict=True)
        for letter, size in zip(term, shapes[name], strict=True)
    }
    return 2 * math.prod(sizes.values())


_COUNTS: Mapping[str, Count] = {
    "MatMul": _matmul,
    "Gemm": _matmul,
    "FusedMatMul": _matmul,
    "Conv": _conv,
    "ConvTranspose": _conv_transpose,
    "Einsum": _einsum,
    **dict.fromkeys(("LSTM", "GRU", "RNN"), _recurrent),
}
