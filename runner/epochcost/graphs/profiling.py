"""Count the operations and the memory traffic of a graph from its static shapes."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path

import onnx

from epochcost.errors import ModelError
from epochcost.graphs.counting import Shapes, flops, node_flops, one_hot_kernels, static_shapes
from epochcost.graphs.profile import Arithmetic, Profile
from onnxstep.graphs.binding import bind_dimensions, symbolic_dimensions
from onnxstep.graphs.loading import load_model
from onnxstep.graphs.nodes import VIEWS, node_attributes
from onnxstep.graphs.parameters import DataInput, data_inputs, parameter_count, parameters

_GROUPED = frozenset({"Conv", "ConvTranspose"})
_RECURRENT = frozenset({"LSTM", "GRU", "RNN"})
_MATRICES = frozenset({"MatMul", "Gemm", "FusedMatMul", "TransposeMatMul"})
_OF_SHAPES = frozenset({"Shape", "Size"})
# Runtimes compute a chain of these operators on one operand while they write the operand.
_FUSED = VIEWS | frozenset(
    {
        "Add", "BatchNormalization", "Cast", "CastLike", "Clip", "Div", "Dropout", "Elu", "Erf",
        "Gelu", "HardSigmoid", "HardSwish", "LeakyRelu", "Mul", "Pow", "Relu", "Sigmoid", "Sqrt",
        "Sub", "Tanh",
    }
)  # fmt: skip


def arithmetic_of_file(path: Path, dimensions: Mapping[str, int]) -> Arithmetic | None:
    """Count the operations of an ONNX file for an example; None if it cannot be loaded or counted.

    Symbolic dimensions that are not in ``dimensions``, such as the batch, get the size 1.
    """
    try:
        graph = load_model(path)
        sizes = dict.fromkeys(symbolic_dimensions(graph), 1)
        bound = bind_dimensions(graph, {**sizes, **dimensions})
        return Arithmetic(
            parameters=parameter_count(graph),
            forward_flops=flops(bound) / _example_count(data_inputs(bound)),
            looked_up=_lookup_table_parameter_count(graph),
            profile=profile_of_bound(bound),
        )
    except ModelError:
        return None


def _lookup_table_parameter_count(graph: onnx.ModelProto) -> int:
    tables = {node.input[0] for node in graph.graph.node if node.op_type == "Gather"}
    read_whole = {
        name
        for node in graph.graph.node
        for at, name in enumerate(node.input)
        if node.op_type != "Gather" or at > 0
    }
    only = tables - read_whole
    return sum(math.prod(table.shape) for table in parameters(graph) if table.name in only)


def _example_count(fed: Sequence[DataInput]) -> int:
    # An exporter may write an unknown batch size as 0.
    return max(1, int(next((data.shape[0] for data in fed if data.shape), 1)))


def profile_of_bound(bound: onnx.ModelProto) -> Profile | None:
    """Operations and memory traffic that one example needs in a graph with static shapes.

    None if no node has operations. Raises ModelError for a graph that cannot be counted.
    """
    fed, shapes, moving = data_inputs(bound), static_shapes(bound), one_hot_kernels(bound)
    score_shapes = _score_shapes(bound, shapes)
    examples = _example_count(fed)
    # The value of which each value is a function without memory traffic of its own.
    operands = {data.name: data.name for data in fed}
    total = matrices = recurrent = moved = grouped = moved_by_others = products = 0
    for node in bound.graph.node:
        read = [name for name in node.input if name in operands]
        if not read or node.op_type in _OF_SHAPES:
            continue
        of_node = node_flops(node, shapes, moving)
        first, *further = {operands[name] for name in read}
        fused = node.op_type in _FUSED and not (of_node or further)
        operands |= {name: first if fused else name for name in node.output}
        sizes = [shapes.get(name, (0,)) for name in (*read, *node.output)]
        size = sum(math.prod(shape) for shape in sizes if shape not in score_shapes)
        if of_node:
            products += 1
            total += of_node
            moved += size
            matrices += of_node if node.op_type in _MATRICES else 0
            recurrent += of_node if node.op_type in _RECURRENT else 0
            if node.op_type in _GROUPED and node_attributes(node).get("group", 1) > 1:
                grouped += size
        elif not fused:
            moved_by_others += size
    if not products:
        return None
    return Profile(
        flops=total / examples,
        matrix_flops=matrices / examples,
        moved=moved / examples,
        moved_by_grouped=grouped / examples,
        moved_by_others=moved_by_others / examples,
        parameters=sum(math.prod(parameter.shape) for parameter in parameters(bound)),
        products=products,
        recurrent_flops=recurrent / examples,
    )


def _score_shapes(bound: onnx.ModelProto, shapes: Shapes) -> set[tuple[int, ...]]:
    """Shapes of the scores of attention: softmax writes them, and a matrix product reads them."""
    nodes = bound.graph.node
    written = {shapes.get(node.output[0], ()) for node in nodes if node.op_type == "Softmax"}
    return written & {shapes.get(node.input[0], ()) for node in nodes if node.op_type == "MatMul"}
