"""The nine light models of the onnx package as training tasks without stored weights.

In the package, the weights of these models are ConstantOfShape nodes, so that all elements of a
weight are equal. Here the weights become parameters with random initial values, which can be
trained. The final Softmax is removed, since the loss contains it.
"""

from __future__ import annotations

import json
import math
from dataclasses import asdict
from pathlib import Path

import numpy as np
import onnx
from onnx import helper, numpy_helper

from graph_text import session
from onnxstep import StepOptions, training_step
from onnxstep.graphs.initial import METADATA_KEY, STATE_KEY, Initial
from onnxstep.graphs.parameters import data_inputs
from reference_steps import Stepping

FOLDER = Path(onnx.__file__).parent / "backend" / "test" / "data" / "light"
NAMES = tuple(sorted(path.stem.removeprefix("light_") for path in FOLDER.glob("*.onnx")))
_CLASSES = 1000
# Labels are drawn from this many first classes.
_LABELS = 10
# Number of batches, which are repeated: a few steps suffice to learn them.
_BATCHES = 2
# From this IR version on, an initializer need not be a graph input.
_WITHOUT_INPUTS_FOR_INITIALIZERS = 4
# First values by operator and input position; weights are drawn.
_STARTS = {
    ("Conv", 2): 0.0,
    ("Gemm", 2): 0.0,
    ("BatchNormalization", 1): 1.0,
    ("BatchNormalization", 2): 0.0,
    ("BatchNormalization", 3): 0.0,
    ("BatchNormalization", 4): 1.0,
    ("Mul", 1): 1.0,
    ("Add", 1): 0.0,
}
_STATE = {("BatchNormalization", 3), ("BatchNormalization", 4)}


def weightless(name: str, batch_size: int) -> onnx.ModelProto:
    """The model ``name``, from images [batch_size, 3, 224, 224] to logits [batch_size, 1000]."""
    model = onnx.load(FOLDER / f"light_{name}.onnx")
    model.ir_version = _WITHOUT_INPUTS_FOR_INITIALIZERS
    graph = model.graph
    uses = _first_use_by_value(graph)
    listed: dict[str, dict[str, object]] = {METADATA_KEY: {}, STATE_KEY: {}}
    weights = {name: shape for name, shape in _shape_by_weight(graph).items() if name in uses}
    for seed, (weight, shape) in enumerate(weights.items()):
        key = STATE_KEY if uses[weight] in _STATE else METADATA_KEY
        listed[key][weight] = asdict(_initial_distribution(uses[weight], shape, seed))
    helper.set_model_props(model, {key: json.dumps(entry) for key, entry in listed.items()})
    _declare_weights_as_inputs(graph, weights, batch_size)
    _without_softmax(graph)
    return model


def losses(name: str, batch_size: int, steps: int, rate: float) -> list[float]:
    """Train the model ``name`` on two random batches in turn; return the loss of each step."""
    model = weightless(name, batch_size)
    step = training_step(model, StepOptions(optimizer="adam", seed=0))
    [image] = data_inputs(model)
    rng = np.random.default_rng(0)
    shape = (batch_size, *(size for size in image.shape[1:] if isinstance(size, int)))
    batches = [
        {
            image.name: rng.uniform(-1, 1, shape).astype(np.float32),
            str(step.target): rng.integers(0, _LABELS, batch_size),
        }
        for _ in range(_BATCHES)
    ]
    stepping = Stepping(step, model, rate, session(step.model))
    return [stepping(batches[index % _BATCHES]) for index in range(steps)]


def _shape_by_weight(graph: onnx.GraphProto) -> dict[str, list[int]]:
    stored = {tensor.name: tensor for tensor in graph.initializer}
    constants = {
        node.output[0]: numpy_helper.to_array(stored[node.input[0]]).tolist()
        for node in graph.node
        if node.op_type == "ConstantOfShape"
    }
    return constants | {
        tensor.name: list(tensor.dims)
        for tensor in graph.initializer
        if tensor.data_type == onnx.TensorProto.FLOAT
    }


def _first_use_by_value(graph: onnx.GraphProto) -> dict[str, tuple[str, int]]:
    """First use of each value: the type of the operator that reads it, and the index of the input.

    If the first reader is an Unsqueeze, the first use of the Unsqueeze's output counts instead.
    """
    reader = {}
    for node in reversed(graph.node):
        for index, name in enumerate(node.input):
            through = node.op_type == "Unsqueeze"
            reader[name] = reader[node.output[0]] if through else (node.op_type, index)
    return reader


def _initial_distribution(use: tuple[str, int], shape: list[int], seed: int) -> Initial:
    if use in _STARTS:
        return Initial("constant", _STARTS[use], seed)
    # This is the standard deviation of K. He et al. 2015, arXiv:1502.01852.
    return Initial("normal", math.sqrt(2 / math.prod(shape[1:])), seed)


def _declare_weights_as_inputs(
    graph: onnx.GraphProto, weights: dict[str, list[int]], batch_size: int
) -> None:
    """Declare the weights as inputs, and write the batch size into all shapes."""
    nodes = [node for node in graph.node if node.op_type != "ConstantOfShape"]
    del graph.node[:]
    graph.node.extend(nodes)
    shapes = {node.input[1] for node in nodes if node.op_type == "Reshape"}
    written = [_batched(t, batch_size) for t in graph.initializer if t.name in shapes]
    del graph.initializer[:], graph.value_info[:]
    graph.initializer.extend(written)
    [image] = [value for value in graph.input if "data" in value.name]
    image.type.tensor_type.shape.dim[0].dim_value = batch_size
    declared = [
        helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, shape)
        for name, shape in weights.items()
    ]
    del graph.input[:]
    graph.input.extend([image, *declared])
    del graph.output[:]
    graph.output.append(
        helper.make_tensor_value_info("logits", onnx.TensorProto.FLOAT, [batch_size, _CLASSES])
    )


def _without_softmax(graph: onnx.GraphProto) -> None:
    last = graph.node[-1]
    if last.op_type == "Softmax":
        graph.node.remove(last)
    scores = graph.node[-1].output[0]
    graph.node.append(helper.make_node("Flatten", [scores], ["logits"]))


def _batched(tensor: onnx.TensorProto, size: int) -> onnx.TensorProto:
    shape = numpy_helper.to_array(tensor).copy()
    shape[0] = size if shape[0] == 1 else shape[0]
    return numpy_helper.from_array(shape, tensor.name)
