"""Build time of training steps, and whether it is linear in the layers.

    python benchmarks/graph_build.py [--layers 12] [--hidden 32] [--rounds 3]

The graph is BERT's encoder (Devlin et al., 2018) at a small width, with the nodes of the full model
and no drawn weights. It is built at 1, 2, 4 and 8 times the layers, with Adam. Prints the nodes of
the step, and the CPU seconds of ``training_step`` and of the counts of ``epochcost plan
--verbose``. Each time is also divided by the smallest graph's time and by the factor of layers: 1
if the time is linear. Each time is the shortest of the rounds.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from epochcost.graphs.counting import flops, static_shapes
from epochcost.graphs.peak_memory import peak_activation_bytes
from onnxstep import StepOptions, training_step
from onnxstep.graphs.binding import bind_dimensions

SEQUENCE, HEADS, CLASSES, BATCH = 16, 4, 8, 2
TIMES = (1, 2, 4, 8)


class Encoder:
    """Nodes and weights of a stack of layers, [batch, SEQUENCE, hidden] between them."""

    def __init__(self, hidden: int) -> None:
        self.hidden = hidden
        self.nodes: list[onnx.NodeProto] = []
        self.weights: list[onnx.TensorProto] = []
        self.stored("split", np.array([0, SEQUENCE, HEADS, hidden // HEADS]))
        self.stored("merged", np.array([0, SEQUENCE, hidden]))
        self.stored("temperature", np.array((hidden / HEADS) ** -0.5, np.float32))

    def stored(self, name: str, array: np.ndarray) -> str:
        """A value that the graph stores."""
        self.weights.append(numpy_helper.from_array(array, name))
        return name

    def add(self, op_type: str, *inputs: str, **attributes: object) -> str:
        """Append a node of one output and return its name."""
        name = f"{op_type}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(op_type, inputs, [name], **attributes))
        return name

    def linear(self, x: str, wide: int, narrow: int) -> str:
        """Append x W + b, with W [wide, narrow]."""
        place = len(self.nodes)
        weight = self.stored(f"weight_{place}", np.ones((wide, narrow), np.float32))
        bias = self.stored(f"bias_{place}", np.zeros(narrow, np.float32))
        return self.add("Add", self.add("MatMul", x, weight), bias)

    def normalized(self, x: str) -> str:
        """Append a layer normalization."""
        place = len(self.nodes)
        scale = self.stored(f"scale_{place}", np.ones(self.hidden, np.float32))
        shift = self.stored(f"shift_{place}", np.zeros(self.hidden, np.float32))
        return self.add("LayerNormalization", x, scale, shift, axis=-1)

    def attended(self, x: str) -> str:
        """Append attention of all heads."""
        query, key, value = (
            self.add("Reshape", self.linear(x, self.hidden, self.hidden), "split") for _ in range(3)
        )
        rows = self.add("Transpose", query, perm=[0, 2, 1, 3])
        columns = self.add("Transpose", key, perm=[0, 2, 3, 1])
        scores = self.add("Mul", self.add("MatMul", rows, columns), "temperature")
        values = self.add("Transpose", value, perm=[0, 2, 1, 3])
        mixed = self.add("MatMul", self.add("Softmax", scores, axis=-1), values)
        merged = self.add("Reshape", self.add("Transpose", mixed, perm=[0, 2, 1, 3]), "merged")
        return self.linear(merged, self.hidden, self.hidden)

    def layer(self, x: str) -> str:
        """Append attention, then a network with GELU. Each has a residual and a norm."""
        x = self.normalized(self.add("Add", x, self.attended(x)))
        inner = self.add("Gelu", self.linear(x, self.hidden, 4 * self.hidden))
        return self.normalized(self.add("Add", x, self.linear(inner, 4 * self.hidden, self.hidden)))


def encoder(layers: int, hidden: int) -> onnx.ModelProto:
    """A graph of the layers and a classifier of each position."""
    stack = Encoder(hidden)
    x = "x"
    for _ in range(layers):
        x = stack.layer(x)
    logits = stack.linear(x, hidden, CLASSES)
    shape = ["batch", SEQUENCE]
    graph = helper.make_graph(
        stack.nodes,
        "encoder",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [*shape, hidden])],
        [helper.make_tensor_value_info(logits, TensorProto.FLOAT, [*shape, CLASSES])],
        stack.weights,
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10)


def best_seconds(work: Callable[[], object], rounds: int) -> float:
    """CPU time of the fastest round: other load on the machine only adds to it."""
    times_taken = []
    for _ in range(rounds):
        start = time.process_time()
        work()
        times_taken.append(time.process_time() - start)
    return min(times_taken)


def main() -> None:
    """Print a line for each number of layers."""
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--layers", type=int, default=12)
    arguments.add_argument("--hidden", type=int, default=32)
    arguments.add_argument("--rounds", type=int, default=3)
    options = arguments.parse_args()
    print("layers  nodes of the step  step, s  x linear  counts, s  x linear")
    first: tuple[float, float] | None = None
    for times in TIMES:
        model = bind_dimensions(encoder(times * options.layers, options.hidden), {"batch": BATCH})
        step = training_step(model, StepOptions(optimizer="adam")).model

        def count(step: onnx.ModelProto = step) -> None:
            shapes = static_shapes(step)
            flops(step, shapes)
            peak_activation_bytes(step, shapes)

        def build(model: onnx.ModelProto = model) -> None:
            training_step(model, StepOptions(optimizer="adam"))

        built, counted = (best_seconds(work, options.rounds) for work in (build, count))
        first = first or (built, counted)
        print(
            f"{times * options.layers:6}  {len(step.graph.node):17,}"
            f"  {built:7.2f}  {built / first[0] / times:8.2f}"
            f"  {counted:9.3f}  {counted / first[1] / times:8.2f}"
        )


if __name__ == "__main__":
    main()
