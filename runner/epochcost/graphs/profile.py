"""What a graph asks of a machine for one example: arithmetic by kind, and numbers moved.

Counted from static shapes, as a prediction of time needs it: two graphs that ask for the same take
about the same time on one machine. Which time that is stands in no graph; ``predict`` learns it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

import onnx

from epochcost.graphs.binding import bind_dimensions, symbolic_dimensions
from epochcost.graphs.counting import Shapes, node_flops, one_hot_kernels, static_shapes
from epochcost.graphs.loading import load_model
from epochcost.graphs.nodes import VIEWS
from epochcost.graphs.parameters import data_inputs, parameter_count

_GROUPED = frozenset({"Conv", "ConvTranspose"})
_RECURRENT = frozenset({"LSTM", "GRU", "RNN"})
# What moves no numbers of its own: runtimes compute it where the value before it is written.
_FREE = VIEWS | frozenset(
    {
        "BatchNormalization", "Cast", "Clip", "Constant", "ConstantOfShape", "Dropout", "Elu",
        "Erf", "Gelu", "HardSigmoid", "HardSwish", "LeakyRelu", "Pow", "Relu", "Shape", "Sigmoid",
        "Size", "Sqrt", "Tanh",
    }
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Profile:
    """Of one example's forward pass.

    ``flops`` counts two operations for each multiply and add in products, ``grouped_flops`` and
    ``recurrent_flops`` the part of them in grouped convolutions and recurrences; ``moved`` the
    numbers that nodes read (parameters aside) and write; ``kernels`` the nodes that do so.
    """

    flops: float
    grouped_flops: float
    recurrent_flops: float
    moved: float
    parameters: int
    kernels: int


def profile_of(path: Path, dimensions: dict[str, int]) -> Profile:
    """The profile of the model in a file; ``dimensions`` sizes all but the batch.

    Raises ModelError where the graph cannot be loaded, bound or counted.
    """
    graph = load_model(path)
    bound = bind_dimensions(graph, dict.fromkeys(symbolic_dimensions(graph), 1) | dimensions)
    examples = next((data.shape[0] for data in data_inputs(bound) if data.shape), 1)
    return _profile(bound, int(examples) or 1, parameter_count(graph))


def _profile(bound: onnx.ModelProto, examples: int, parameters: int) -> Profile:
    shapes, moving = static_shapes(bound), one_hot_kernels(bound)
    stored = {tensor.name for tensor in bound.graph.initializer}
    total = grouped = recurrent = moved = 0
    kernels = 0
    for node in bound.graph.node:
        flops = node_flops(node, shapes, moving)
        total += flops
        grouped += flops if node.op_type in _GROUPED and _groups(node) > 1 else 0
        recurrent += flops if node.op_type in _RECURRENT else 0
        if node.op_type not in _FREE:
            values = [name for name in node.input if name not in stored] + list(node.output)
            moved += sum(_size(shapes, name) for name in values)
            kernels += 1
    return Profile(
        total / examples,
        grouped / examples,
        recurrent / examples,
        moved / examples,
        parameters,
        kernels,
    )


def _groups(node: onnx.NodeProto) -> int:
    return next((int(entry.i) for entry in node.attribute if entry.name == "group"), 1)


def _size(shapes: Shapes, name: str) -> int:
    return math.prod(shapes[name]) if name in shapes else 0
