"""Files with half-precision tensors can be differentiated, trained and run."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, numpy_helper, parser

from gradient_cases import FAMILIES
from gradient_check import Case, draw, model_of
from graph_text import run
from onnxstep import StepOptions, training_step, vjp_graph
from onnxstep.graphs.loading import load_model_bytes
from onnxstep.graphs.parameters import materialise

_HALF = TensorProto.FLOAT16
# Opset and nodes of a norm. The scale of the norm is fed, as in a weightless file, or computed.
_NORMS = {
    "simplified": (17, "n = SimplifiedLayerNormalization <axis = -1> (x, s)"),
    "layer_norm_15": (15, "n = LayerNormalization <axis = -1> (x, s)"),
    "identity": (17, "t = Identity (s) n = SimplifiedLayerNormalization <axis = -1> (x, t)"),
    "relu6": (10, "n = Clip <min = 0.0, max = 6.0> (x)"),
}
# Tolerance of a few roundings to 11 bits.
_TOLERANCE = 0.05


def _loaded(opset: int, body: str, inputs: str, output: str) -> onnx.ModelProto:
    text = f'<ir_version: 8, opset_import: ["" : {opset}]> g ({inputs}) => ({output}) {{ {body} }}'
    return load_model_bytes(parser.parse_model(text).SerializeToString())


@pytest.mark.parametrize("form", _NORMS)
def test_a_norm_is_differentiated(form: str) -> None:
    """With an fp16 norm or ReLU6, the gradient graph has the model's output and fp16 gradients."""
    opset, body = _NORMS[form]
    inputs = "float16[4,8] x, float16[8] s, float16[8,3] w"
    model = _loaded(opset, f"{body} y = MatMul (n, w)", inputs, "float16[4,3] y")
    rng = np.random.default_rng(2)
    shapes = {"x": (4, 8), "s": (8,), "w": (8, 3), "y_cotangent": (4, 3)}
    feeds = {name: rng.standard_normal(shape).astype(np.float16) for name, shape in shapes.items()}
    values = run(vjp_graph(model, ["w"]), feeds)
    [runtime_value] = _runtime(model, {name: feeds[name] for name in "xsw"})
    np.testing.assert_allclose(values["y"], runtime_value, rtol=5e-3, atol=5e-3)
    assert values["w_gradient"].dtype == np.float16


def test_squares_of_large_numbers_do_not_overflow() -> None:
    """RMS normalization of fp16 values of 1000 gives 1: the squares are computed in float32."""
    model = _loaded(
        17,
        "y = SimplifiedLayerNormalization <axis = -1> (x, s)",
        "float16[1,4] x, float16[4] s",
        "float16[1,4] y",
    )
    feeds = {
        "x": np.full((1, 4), 1000, np.float16),
        "s": np.ones(4, np.float16),
        "y_cotangent": np.ones((1, 4), np.float16),
    }
    np.testing.assert_allclose(run(vjp_graph(model, ["x"]), feeds)["y"], 1.0, rtol=1e-3)


def test_rows_of_a_half_table_are_added_up() -> None:
    """The gradient of an fp16 embedding row that is read twice is the sum over both reads."""
    model = _loaded(17, "y = Gather (e, i)", "float16[5,2] e, int64[3] i", "float16[3,2] y")
    feeds = {
        "e": np.zeros((5, 2), np.float16),
        "i": np.array([4, 1, 4]),
        "y_cotangent": np.array([[1, 2], [3, 4], [5, 6]], np.float16),
    }
    gradient = run(vjp_graph(model, ["e"]), feeds)["e_gradient"]
    np.testing.assert_array_equal(gradient, [[0, 0], [3, 4], [0, 0], [0, 0], [6, 8]])
    assert gradient.dtype == np.float16


@pytest.mark.parametrize("settings", [{"precision": "fp16"}, {"clip_norm": 1.0}, {}])
def test_a_half_file_is_trained(settings: dict[str, object]) -> None:
    """A step decreases the value of an fp16 parameter, which stays in fp16."""
    tensor = numpy_helper.from_array(np.full((3, 4), 0.5, np.float16), "w")
    model = parser.parse_model(
        '<ir_version: 8, opset_import: ["" : 17]> '
        "g (float16[2,3] x) => (float16[2,4] y) { y = MatMul (x, w) }"
    )
    model.graph.initializer.append(tensor)
    step = training_step(model, StepOptions(loss="mse", **settings))  # type: ignore[arg-type]
    # The scale is so small that the scaled loss stays within half's range.
    initial = {c.input: 64.0 if c.input == "loss_scale" else c.fill for c in step.carried}
    feeds = {c.input: np.full(c.shape, initial[c.input], np.float32) for c in step.carried}
    feeds |= {"x": np.ones((2, 3), np.float16), "target": np.zeros((2, 4), np.float16)}
    before = materialise(model)["w"]
    feeds |= {"w": before, step.learning_rate: np.array(0.1, np.float32)}
    after = run(step.model, feeds)["w.next"]
    assert after.dtype == np.float16
    assert (after < before).all()


@pytest.mark.slow
@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.__name__)
def test_every_rule_runs_in_half_precision(family: object) -> None:
    """If ONNX Runtime runs a case in fp16, the fp16 gradients are close to float32 gradients."""
    cases = [case for case in family.CASES if not case.runtime_flaw]  # type: ignore[attr-defined]
    compared = [_half_gradients_agree(case) for case in cases]
    assert all(agrees is not False for agrees in compared)


def _half_gradients_agree(case: Case) -> bool | None:
    """Whether fp16 and float32 gradients agree; None if ONNX Runtime cannot run the fp16 case."""
    model, feeds = model_of(case, _HALF), draw(case, 7)
    try:
        _runtime(model, {name: x.astype(np.float16) for name, x in feeds.items()})
    except Exception:  # the runtime raises several classes
        return None
    rng = np.random.default_rng(8)
    graphs = [vjp_graph(model_of(case, kind), list(case.shapes)) for kind in (_HALF, 1)]
    drawn = {
        info.name: rng.standard_normal([dim.dim_value for dim in info.type.tensor_type.shape.dim])
        for info in graphs[0].graph.input
    } | feeds
    half, single = (_gradients(graph, drawn, len(case.shapes)) for graph in graphs)
    return all(
        np.linalg.norm(a - b) <= _TOLERANCE * max(np.linalg.norm(b), 1e-3)
        for a, b in zip(half, single, strict=True)
    )


def _gradients(
    graph: onnx.ModelProto, drawn: dict[str, np.ndarray], count: int
) -> Sequence[np.ndarray]:
    kinds = {i.name: i.type.tensor_type.elem_type for i in graph.graph.input}
    feeds = {
        name: drawn[name].astype(onnx.helper.tensor_dtype_to_np_dtype(kind))
        for name, kind in kinds.items()
    }
    return [np.asarray(value, np.float64) for value in _runtime(graph, feeds)[-count:]]


def _runtime(model: onnx.ModelProto, feeds: dict[str, np.ndarray]) -> list[np.ndarray]:
    session = onnxruntime.InferenceSession(model.SerializeToString())
    names = {entry.name for entry in session.get_inputs()}
    return list(session.run(None, {name: x for name, x in feeds.items() if name in names}))
