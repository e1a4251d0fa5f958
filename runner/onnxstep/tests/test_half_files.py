"""Files with half-precision tensors can be differentiated, trained and run."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx
import pytest
from numpy.typing import ArrayLike
from onnx import TensorProto, parser

from gradient_cases import FAMILIES
from gradient_check import Case, draw, model_of
from graph_text import model_of_text, random_inputs, run, session
from onnxstep import StepOptions, first_values, training_step, vjp_graph
from onnxstep.graphs.loading import load_model_bytes

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


def _halves(**numbers: ArrayLike) -> dict[str, np.ndarray]:
    return {name: np.asarray(values, np.float16) for name, values in numbers.items()}


@pytest.mark.parametrize("form", _NORMS)
def test_a_norm_is_differentiated(form: str) -> None:
    """The gradient graph of an fp16 model with a norm or ReLU6 gives fp16 gradients.

    The outputs of the graph agree with the outputs that ONNX Runtime computes for the model.
    """
    opset, body = _NORMS[form]
    inputs = "float16[4,8] x, float16[8] s, float16[8,3] w"
    model = _loaded(opset, f"{body} y = MatMul (n, w)", inputs, "float16[4,3] y")
    rng = np.random.default_rng(2)
    shapes = {"x": (4, 8), "s": (8,), "w": (8, 3), "y_cotangent": (4, 3)}
    feeds = _halves(**{name: rng.standard_normal(shape) for name, shape in shapes.items()})
    values = run(vjp_graph(model, ["w"]), feeds)
    [runtime_value] = _runtime(model, feeds)
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
    feeds = _halves(x=np.full((1, 4), 1000), s=np.ones(4), y_cotangent=np.ones((1, 4)))
    np.testing.assert_allclose(run(vjp_graph(model, ["x"]), feeds)["y"], 1.0, rtol=1e-3)


def test_rows_of_a_half_table_are_added_up() -> None:
    """The gradient of an fp16 embedding row that is read twice is the sum over both reads."""
    model = _loaded(17, "y = Gather (e, i)", "float16[5,2] e, int64[3] i", "float16[3,2] y")
    feeds = _halves(e=np.zeros((5, 2)), y_cotangent=[[1, 2], [3, 4], [5, 6]])
    gradient = run(vjp_graph(model, ["e"]), {**feeds, "i": np.array([4, 1, 4])})["e_gradient"]
    np.testing.assert_array_equal(gradient, [[0, 0], [3, 4], [0, 0], [0, 0], [6, 8]])
    assert gradient.dtype == np.float16


@pytest.mark.parametrize("settings", [{"precision": "fp16"}, {"clip_norm": 1.0}, {}])
def test_a_half_file_is_trained(settings: dict[str, object]) -> None:
    """A step decreases the value of an fp16 parameter, which stays in fp16."""
    model = model_of_text(
        "g (float16[2,3] x) => (float16[2,4] y) { y = MatMul (x, w) }",
        opset=17,
        weights=_halves(w=np.full((3, 4), 0.5)),
    )
    step = training_step(model, StepOptions(loss="mse", **settings))  # type: ignore[arg-type]
    feeds = first_values(step, model) | _halves(x=np.ones((2, 3)), target=np.zeros((2, 4)))
    feeds[step.learning_rate] = np.array(0.1, np.float32)
    if "loss_scale" in feeds:  # The scaled loss has to stay within half's range.
        feeds["loss_scale"] = np.array(64, np.float32)
    after = run(step.model, feeds)["w.next"]
    assert after.dtype == np.float16
    assert (after < feeds["w"]).all()


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
        _runtime(model, _halves(**feeds))
    except Exception:  # the runtime raises several classes
        return None
    graphs = [vjp_graph(model_of(case, kind), list(case.shapes)) for kind in (_HALF, 1)]
    drawn = random_inputs(graphs[0]) | feeds
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
    opened = session(model)
    names = {entry.name for entry in opened.get_inputs()}
    return list(opened.run(None, {name: x for name, x in feeds.items() if name in names}))
