"""What a forward pass leaves for its backward pass: nothing that no gradient needs."""

from __future__ import annotations

import math

import onnx
import pytest

from graph_text import model_of_text
from onnxstep import StepOptions, training_step
from onnxstep.graphs.counting import static_shapes
from onnxstep.graphs.nodes import reads
from onnxstep.graphs.peak_memory import execution_plan
from onnxstep.graphs.tensors import item_bytes

ROWS, WIDTH = 64, 32
BLOCK = ROWS * WIDTH * 4
VIEWS = {"Reshape", "Flatten", "Squeeze", "Unsqueeze", "Identity"}


def kept_blocks(model: onnx.ModelProto) -> float:
    """The size of what the loss is computed of and a later node reads, in activations."""
    step = training_step(model, StepOptions(loss="mse")).model
    nodes = execution_plan(step).nodes
    makers = {name: node for node in nodes for name in node.output if name}
    forward, stack = set(), ["loss"]
    while stack:
        name = stack.pop()
        if name in makers and name not in forward:
            forward.add(name)
            stack += reads(makers[name])
    sizes, widths, kept = static_shapes(step), item_bytes(step), set()
    for node in nodes:
        if forward.isdisjoint(node.output) and node.op_type not in VIEWS:
            kept |= {_root(name, makers) for name in reads(node)} & makers.keys()
    made = {name for name in kept if not forward.isdisjoint(makers[name].output)}
    return sum(math.prod(sizes[name]) * widths[name] for name in made) / BLOCK


def _root(name: str, makers: dict[str, onnx.NodeProto]) -> str:
    while name in makers and makers[name].op_type in VIEWS:
        name = makers[name].input[0]
    return name


def layers(middle: str) -> onnx.ModelProto:
    """Two products of one width with something between them: h of p."""
    ones = ", ".join(["1"] * WIDTH)
    weights = ", ".join(["0.1"] * WIDTH * WIDTH)
    return model_of_text(
        f"g (float[{ROWS},{WIDTH}] x) => (float[{ROWS},{WIDTH}] y) <float half = {{0.5}}, "
        f"float[{WIDTH}] s = {{{ones}}}, float[{WIDTH}] b = {{{ones}}}, "
        f"float[{WIDTH}] m = {{{ones}}}, float[{WIDTH}] v = {{{ones}}}, "
        f"float[{WIDTH},{WIDTH}] w1 = {{{weights}}}, float[{WIDTH},{WIDTH}] w2 = {{{weights}}}> "
        f"{{ p = MatMul(x, w1) {middle} y = MatMul(h, w2) }}"
    )


# Beside what stands here, the loss keeps the difference of outputs and targets: one block.
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
    """Activations of one layer that outlive the loss; statistics are a hundredth of one.

    A rectifier's input is not among them, of a mask a byte an element, of a normalisation its
    input or its centred input, never both.
    """
    assert kept_blocks(layers(middle)) == pytest.approx(blocks + LOSS, abs=0.2)
