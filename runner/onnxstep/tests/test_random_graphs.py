"""Gradients of random graphs of operators agree with finite differences in float64.

The cases in tests/gradient_cases check single operators. This test checks combinations: values that
are read several times or never, broadcasting in long chains, and changing shapes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
import onnx
from hypothesis import assume, given, reject, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper, numpy_helper

from graph_text import shape_of
from onnxstep import vjp_graph
from oracle.evaluators import reference, with_all_outputs
from oracle.judge import errors
from oracle.slope import NotSmoothError, Slopes, slopes

Shape = tuple[int, ...]
_STEP = 1e-5
_TOLERANCE = 1e-6
# Larger values, from repeated squares or quotients by small numbers, make differences inexact.
_LARGEST = 30.0


@dataclass
class Drawn:
    """A random graph under construction: nodes, constants, and the shape of each float value."""

    choose: Callable[[st.SearchStrategy[int]], int]
    shapes: dict[str, Shape] = field(default_factory=dict)
    nodes: list[onnx.NodeProto] = field(default_factory=list)
    constants: list[onnx.TensorProto] = field(default_factory=list)

    def pick(self, names: Sequence[str]) -> str:
        """Draw one of ``names``."""
        return names[self.choose(st.integers(0, len(names) - 1))]

    def number(self, low: int, high: int) -> int:
        """Draw an integer from ``low`` to ``high``, both included."""
        return self.choose(st.integers(low, high))

    def add(self, op_type: str, inputs: Sequence[str], shape: Shape, **attributes: object) -> str:
        """Append a node with one output; return the output's name."""
        name = f"v{len(self.nodes)}"
        self.nodes.append(helper.make_node(op_type, inputs, [name], **attributes))
        self.shapes[name] = shape
        return name

    def ints(self, *numbers: int) -> str:
        """Add a constant int64 vector; return its name."""
        name = f"k{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.array(numbers, np.int64), name))
        return name


def unary(graph: Drawn, x: str) -> None:
    """Append a smooth function of each element of x."""
    op_type = graph.pick(
        ["Tanh", "Sigmoid", "Neg", "Sin", "Cos", "Softplus", "Atan", "Elu", "Identity", "Erf"]
    )
    graph.add(op_type, [x], graph.shapes[x])


def binary(graph: Drawn, x: str) -> None:
    """Append a sum, difference or product of x and a value of a fitting shape, possibly x."""
    partners = [y for y, shape in graph.shapes.items() if _broadcast(graph.shapes[x], shape)]
    y = graph.pick(partners)
    shape = np.broadcast_shapes(graph.shapes[x], graph.shapes[y])
    graph.add(graph.pick(["Add", "Sub", "Mul"]), [x, y], shape)


def quotient(graph: Drawn, x: str) -> None:
    """Append a division of x by its sigmoid, which is never zero."""
    below = graph.add("Sigmoid", [x], graph.shapes[x])
    graph.add("Div", [x, below], graph.shapes[x])


def reduction(graph: Drawn, x: str) -> None:
    """Append a reduction over one axis, which is removed or keeps length 1."""
    shape = graph.shapes[x]
    if not shape:
        return
    axis, keepdims = graph.number(0, len(shape) - 1), graph.number(0, 1)
    op_type = graph.pick(["ReduceSum", "ReduceMean", "ReduceLogSumExp", "ReduceSumSquare"])
    after = (*shape[:axis], *([1] * keepdims), *shape[axis + 1 :])
    graph.add(op_type, [x, graph.ints(axis)], after, keepdims=keepdims)


def product(graph: Drawn, x: str) -> None:
    """Append a matrix product of x with its own transpose."""
    shape = graph.shapes[x]
    if len(shape) < 2:
        return
    order = [*range(len(shape) - 2), len(shape) - 1, len(shape) - 2]
    turned = graph.add("Transpose", [x], tuple(shape[axis] for axis in order), perm=order)
    graph.add("MatMul", [x, turned], (*shape[:-1], shape[-2]))


def reshape(graph: Drawn, x: str) -> None:
    """Append a Reshape of x to a vector, or an Unsqueeze of x."""
    shape = graph.shapes[x]
    if graph.number(0, 1):
        graph.add("Reshape", [x, graph.ints(-1)], (int(np.prod(shape)),))
    elif len(shape) < 4:
        axis = graph.number(0, len(shape))
        graph.add("Unsqueeze", [x, graph.ints(axis)], (*shape[:axis], 1, *shape[axis:]))


def rearrangement(graph: Drawn, x: str) -> None:
    """Append a Concat of x with x, a Slice of x's first row, or a Gather that repeats a row."""
    shape = graph.shapes[x]
    if not shape or shape[0] > 8:
        return
    kind, rest = graph.pick(["Concat", "Slice", "Gather"]), shape[1:]
    if kind == "Concat":
        graph.add("Concat", [x, x], (2 * shape[0], *rest), axis=0)
    elif kind == "Slice":
        ends = [graph.ints(0), graph.ints(1), graph.ints(0)]
        graph.add("Slice", [x, *ends], (1, *rest))
    else:
        graph.add("Gather", [x, graph.ints(0, 0, shape[0] - 1)], (3, *rest), axis=0)


def normalization(graph: Drawn, x: str) -> None:
    """Append a softmax or log-softmax along one axis."""
    shape = graph.shapes[x]
    if shape:
        op_type = graph.pick(["Softmax", "LogSoftmax"])
        graph.add(op_type, [x], shape, axis=graph.number(-1, len(shape) - 1))


GROWTHS = [unary, binary, quotient, reduction, product, reshape, rearrangement, normalization]


def _broadcast(a: Shape, b: Shape) -> bool:
    return all(m == n or 1 in (m, n) for m, n in zip(a[::-1], b[::-1], strict=False))


@st.composite
def models(draw: st.DrawFn) -> onnx.ModelProto:
    """Draw a float64 model of 1 to 24 nodes that returns its last value and maybe another value."""
    shapes = st.lists(st.integers(1, 3), min_size=0, max_size=3).map(tuple)
    graph = Drawn(draw)
    inputs = {f"x{index}": draw(shapes) for index in range(draw(st.integers(1, 3)))}
    graph.shapes.update(inputs)
    for _ in range(draw(st.integers(1, 12))):
        draw(st.sampled_from(GROWTHS))(graph, graph.pick(list(graph.shapes)))
    if not graph.nodes:
        unary(graph, "x0")
    computed = [name for name in graph.shapes if name not in inputs]
    outputs = list(dict.fromkeys([computed[-1], graph.pick(computed)]))
    return _model(graph, inputs, outputs)


def _model(graph: Drawn, inputs: dict[str, Shape], outputs: Sequence[str]) -> onnx.ModelProto:
    def declared(name: str) -> onnx.ValueInfoProto:
        return helper.make_tensor_value_info(name, TensorProto.DOUBLE, list(graph.shapes[name]))

    built = helper.make_graph(
        graph.nodes,
        "random",
        [declared(name) for name in inputs],
        [declared(name) for name in outputs],
        graph.constants,
    )
    model = helper.make_model(built, opset_imports=[helper.make_opsetid("", 18)], ir_version=10)
    onnx.checker.check_model(model, full_check=True)
    return model


def _moderate(model: onnx.ModelProto, inputs: dict[str, np.ndarray]) -> bool:
    values = reference(with_all_outputs(model))(inputs).values()
    return all(np.all(np.abs(value) <= _LARGEST) for value in values)


def _slopes_or_reject(model: onnx.ModelProto, inputs: dict[str, np.ndarray], seed: int) -> Slopes:
    try:
        outputs = [value.name for value in model.graph.output]
        return slopes(reference(model), inputs, outputs, seed, _STEP)
    except NotSmoothError:
        reject()


@settings(max_examples=400, deadline=None)
@given(models(), st.integers(0, 2**32 - 1))
def test_gradients_of_random_graphs(model: onnx.ModelProto, seed: int) -> None:
    """The gradients of a random graph agree with finite differences along a random direction."""
    rng = np.random.default_rng(seed)
    inputs = {value.name: rng.uniform(-1.5, 1.5, shape_of(value)) for value in model.graph.input}
    assume(_moderate(model, inputs))
    measured = _slopes_or_reject(model, inputs, seed)
    backward = reference(vjp_graph(model, list(inputs)))
    got = backward({**inputs, **{f"{k}_cotangent": u for k, u in measured.cotangents.items()}})
    assert list(errors(got, measured.by_input, _TOLERANCE, floor=0)) == []
