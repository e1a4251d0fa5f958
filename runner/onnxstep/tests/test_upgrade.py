"""Converting a model of an old opset to a newer opset keeps the results of its operators."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pytest
from onnx import helper, parser

from graph_text import model_of_text, run
from onnxstep.errors import ModelError
from onnxstep.graphs.loading import load_model_bytes
from onnxstep.passes.canonicalize import canonicalize

Shape = Sequence[int]
_ROWS, _IMAGE = (2, 3, 4), (1, 2, 4, 5)
# Operator with attributes, its opsets, shapes of input and output.
_PLAIN: Sequence[tuple[str, range, Shape, Shape]] = [
    *(
        (f"{op_type}{axis} (x)", range(7, 13), _ROWS, _ROWS)
        for op_type in ("Softmax", "LogSoftmax")
        for axis in ("", " <axis = 0>", " <axis = 1>", " <axis = 2>", " <axis = -2>")
    ),
    ("Clip <min = -0.5> (x)", range(7, 11), _ROWS, _ROWS),
    ("Dropout <ratio = 0.5> (x)", range(7, 12), _ROWS, _ROWS),
    ("ReduceSum <axes = [1], keepdims = 0> (x)", range(7, 13), _ROWS, (2, 4)),
    ("Unsqueeze <axes = [0]> (x)", range(7, 13), _ROWS, (1, 2, 3, 4)),
    ("Pad <pads = [0, 1, 0, 0, 0, 1]> (x)", range(7, 11), _ROWS, (2, 4, 5)),
    ("Slice <starts = [1], ends = [3], axes = [2]> (x)", range(7, 10), _ROWS, (2, 3, 2)),
    ("AveragePool <kernel_shape = [2, 2]> (x)", range(7, 13), _IMAGE, (1, 2, 3, 4)),
    ("MaxPool <kernel_shape = [2, 2]> (x)", range(7, 13), _IMAGE, (1, 2, 3, 4)),
    ("DepthToSpace <blocksize = 2> (x)", range(7, 13), (1, 4, 2, 3), (1, 1, 4, 6)),
]
# Factors that round differently down and up: along one axis, along both, in opposite directions.
_FACTORS = [(2, 2), (1.5, 1.7), (0.5, 0.6), (0.45, 0.7), (2, 0.6), (0.3, 1.5)]


@pytest.mark.parametrize("case", _PLAIN, ids=[case[0] for case in _PLAIN])
def test_an_operator_keeps_its_meaning(case: tuple[str, range, Shape, Shape]) -> None:
    """Results stay equal although attributes became inputs and default axes changed."""
    call, opsets, into, out = case
    for opset in opsets:
        _assert_same(f"y = {call}", opset, into, out)


@pytest.mark.parametrize("mode", ["nearest", "linear"])
@pytest.mark.parametrize("factors", _FACTORS)
def test_an_image_is_resized_from_its_corner(mode: str, factors: tuple[float, float]) -> None:
    """Converting Upsample, or Resize of opset 10, to a newer opset keeps the results.

    Both operators use asymmetric coordinates, in the modes nearest and linear.
    """
    out = (1, 2, *(int(size * factor) for size, factor in zip(_IMAGE[2:], factors, strict=True)))
    scales = (
        f"s = Constant <value = float[4] {{1.0, 1.0, {float(factors[0])}, {float(factors[1])}}}> ()"
    )
    _assert_same(f'{scales} y = Resize <mode = "{mode}"> (x, s)', 10, _IMAGE, out)
    if min(factors) >= 1:
        _assert_same(f'{scales} y = Upsample <mode = "{mode}"> (x, s)', 9, _IMAGE, out)


def test_computed_scales_grow_an_image() -> None:
    """A nearest Resize whose scales the graph computes keeps its result."""
    shape = "s = Constant <value = float[4] {0.5, 0.5, 0.75, 0.85}> () t = Add(s, s)"
    _assert_same(f'{shape} y = Resize <mode = "nearest"> (x, t)', 10, (1, 2, 4, 5), (1, 2, 6, 8))


def test_a_branch_is_upgraded_too() -> None:
    """An operator in a branch of an If gives equal results before and after the conversion."""
    branches = ", ".join(
        f"{name} = {name} () => (float[2,3,4] {name}_y) {{ {name}_y = {call} }}"
        for name, call in (
            ("then_branch", "Softmax <axis = 1> (x)"),
            ("else_branch", "Identity (x)"),
        )
    )
    _assert_same(
        f"c = Greater(n, o) y = If (c) <{branches}>", 11, _ROWS, _ROWS, "float[1] n, float[1] o"
    )


def _assert_same(body: str, opset: int, into: Shape, out: Shape, more: str = "") -> None:
    shapes = [",".join(map(str, shape)) for shape in (into, out)]
    inputs = f"float[{shapes[0]}] x" + (f", {more}" if more else "")
    text = f"g ({inputs}) => (float[{shapes[1]}] y) {{ {body} }}"
    model = load_model_bytes(model_of_text(text, opset=opset).SerializeToString())
    draw = np.random.default_rng(1)
    feeds: Mapping[str, np.ndarray] = {
        "x": draw.standard_normal(into).astype(np.float32),
        **({"n": np.ones(1, np.float32), "o": np.zeros(1, np.float32)} if more else {}),
    }
    before, after = run(model, feeds)["y"], run(canonicalize(model), feeds)["y"]
    np.testing.assert_allclose(after, before, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize(
    ("opset", "node", "demand"),
    [
        (12, "Hardmax (x)", r"\(Hardmax\): Hardmax of opset 12 is not converted"),
        (8, "ThresholdedRelu (x)", r"\(ThresholdedRelu\): opset 8 of ONNX has no such operator"),
    ],
)
def test_an_operator_that_the_opset_lacks_is_named(opset: int, node: str, demand: str) -> None:
    """The error for an operator that cannot be converted names the node and a remedy."""
    model = parser.parse_model(
        f'<ir_version: 3, opset_import: ["" : {opset}]> '
        f"g (float[1,2,3] x) => (float[1,2,3] y) {{ y = {node} }}"
    )
    with pytest.raises(ModelError, match=rf"node 'y' {demand}.*; export the model again"):
        canonicalize(model)


def test_what_onnx_cannot_convert_is_refused() -> None:
    """A Loop whose body lacks an output gives a one-line error with onnx's reason."""
    body = helper.make_graph(
        [helper.make_node("Add", ["b", "c"], ["d"])],
        "body",
        [helper.make_tensor_value_info(name, 1, [2]) for name in ("i", "b", "c")],
        [helper.make_tensor_value_info("d", 1, [2])],
    )
    graph = helper.make_graph(
        [helper.make_node("Loop", ["n", "", "x", "z"], ["y"], body=body)],
        "g",
        [helper.make_tensor_value_info("n", 7, [1])]
        + [helper.make_tensor_value_info(name, 1, [2]) for name in ("x", "z")],
        [helper.make_tensor_value_info("y", 1, [2])],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 11)], ir_version=5)
    with pytest.raises(ModelError, match="opset 11: expected 16 or newer, and onnx cannot convert"):
        canonicalize(model)
