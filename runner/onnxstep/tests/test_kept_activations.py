"""A step stores only those values of the forward pass that a gradient needs."""

from __future__ import annotations

import numpy as np
import onnx
import pytest

from activation_memory import running_nodes, value_bytes
from graph_text import model_of_text
from onnxstep import StepOptions, training_step
from onnxstep.graphs.nodes import reads

ROWS, WIDTH = 64, 32
BLOCK = ROWS * WIDTH * 4
VIEWS = {"Reshape", "Flatten", "Squeeze", "Unsqueeze", "Identity"}


def kept_blocks(model: onnx.ModelProto) -> float:
    """Size of the forward values that the backward pass reads, as a multiple of ``BLOCK`` bytes."""
    step = training_step(model, StepOptions(loss="mse")).model
    nodes = running_nodes(step)
    makers = {name: node for node in nodes for name in node.output if name}
    forward, stack = set(), ["loss"]
    while stack:
        name = stack.pop()
        if name in makers and name not in forward:
            forward.add(name)
            stack += reads(makers[name])
    sizes, alive = value_bytes(step), set()
    for node in nodes:
        if forward.isdisjoint(node.output) and node.op_type not in VIEWS:
            alive |= {_root(name, makers) for name in reads(node)} & makers.keys()
    in_forward = {name for name in alive if not forward.isdisjoint(makers[name].output)}
    return sum(sizes[name] for name in in_forward) / BLOCK


def _root(name: str, makers: dict[str, onnx.NodeProto]) -> str:
    while name in makers and makers[name].op_type in VIEWS:
        name = makers[name].input[0]
    return name


def layers(middle: str) -> onnx.ModelProto:
    """The products p = x w1 and y = h w2; ``middle`` has the nodes that compute h from p."""
    square, units = np.full((WIDTH, WIDTH), 0.1, np.float32), np.ones(WIDTH, np.float32)
    return model_of_text(
        f"g (float[{ROWS},{WIDTH}] x) => (float[{ROWS},{WIDTH}] y) <float half = {{0.5}}> "
        f"{{ p = MatMul(x, w1) {middle} y = MatMul(h, w2) }}",
        weights={**dict.fromkeys("sbmv", units), "w1": square, "w2": square},
    )


# The loss adds one block: the difference of outputs and targets.
LOSS = 1.0


@pytest.mark.parametrize(
    ("middle", "blocks"),
    [
        ("h = Relu(p)", 1),
        ("h = Tanh(p)", 1),
        ("h = Sigmoid(p)", 1),
        ("h = LeakyRelu(p)", 2),
        ("h = Gelu(p)", 2),
        ("h = Softmax(p)", 1),
        ("a = Relu(p) h = Dropout(a, half)", 2.25),
        ("a = Add(p, b) h = Relu(a)", 1),
        ("a = Relu(p) h = Add(a, x)", 2),
        ("h = LayerNormalization(p, s)", 2),
        ("a = BatchNormalization(p, s, b, m, v) h = Relu(a)", 2),
    ],
)
def test_only_what_a_gradient_needs_is_kept(middle: str, blocks: float) -> None:
    """The backward pass reads ``blocks`` blocks of forward values, besides those of the loss.

    A block is the size of a matrix product's result. ``middle`` is the text of the nodes between
    the model's two products.
    """
    assert kept_blocks(layers(middle)) == pytest.approx(blocks + LOSS, abs=0.2)
