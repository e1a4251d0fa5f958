"""Fused normalizations, rewritten as standard operators, give the results of ONNX Runtime."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import parser

from graph_text import model_of_text, random_inputs, run, session
from onnxstep import vjp_graph
from onnxstep.errors import ModelError
from onnxstep.graphs.binding import bind_dimensions
from onnxstep.graphs.fused import unfuse
from onnxstep.graphs.loading import load_model_bytes

NORM = "float[2,3,4] x, float[4] s, float[4] b) => (float[2,3,4] y"
STATISTIC = ", float[2,3,1]"
FORMS = {
    "simplified_13": (13, NORM, "y = SimplifiedLayerNormalization <axis = -1> (x, s)"),
    "simplified_18": (
        18,
        f"{NORM}{STATISTIC} r",
        "y, r = SimplifiedLayerNormalization <epsilon = 0.1> (x, s)",
    ),
    "layer_norm_13": (
        13,
        f"{NORM}{STATISTIC} m{STATISTIC} r",
        "y, m, r = LayerNormalization <epsilon = 0.1> (x, s, b)",
    ),
    "layer_norm_16": (16, NORM, "y = LayerNormalization (x, s)"),
}


def _model(form: str) -> onnx.ModelProto:
    opset, values, node = FORMS[form]
    return parser.parse_model(
        f'<ir_version: 8, opset_import: ["" : {opset}]> g ({values}) {{ {node} }}'
    )


@pytest.mark.parametrize("form", FORMS)
def test_the_parts_compute_what_the_fused_operator_does(form: str) -> None:
    """The rewritten nodes are valid ONNX and agree with the fused node to float32 rounding."""
    model = _model(form)
    unfused = unfuse(model)
    feeds = random_inputs(model)
    parts = run(unfused, feeds)
    for name, whole in run(model, feeds).items():
        np.testing.assert_allclose(parts[name], whole, rtol=1e-5, atol=1e-6)
    onnx.checker.check_model(unfused)
    bind_dimensions(unfused, {})


@pytest.mark.parametrize("form", FORMS)
def test_a_fused_operator_is_loaded_and_differentiated(form: str) -> None:
    """The loader accepts the fused operator, and ONNX Runtime loads the gradient graph."""
    loaded = load_model_bytes(_model(form).SerializeToString())
    gradient = vjp_graph(loaded, ["x"])
    assert [value.name for value in gradient.graph.output][-1] == "x_gradient"
    session(gradient)


def test_a_model_without_fused_operators_stays_itself() -> None:
    """A model without fused operators is returned without copying it."""
    plain = model_of_text("g (float[2] x) => (float[2] y) { y = Relu(x) }")
    assert unfuse(plain) is plain


def test_a_fused_node_that_does_not_fit_is_named() -> None:
    """The error for a fused node without inputs names the node and its operator."""
    model = _model("simplified_18")
    model.graph.node[0].name = "broken"
    del model.graph.node[0].input[:]
    with pytest.raises(ModelError, match=r"'broken'.*SimplifiedLayerNormalization"):
        unfuse(model)
