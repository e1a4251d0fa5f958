"""Models in unusual valid forms have right gradients; malformed Einsum equations are refused."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import helper

from graph_text import model_of_text, run
from onnxstep import registry, vjp_graph
from onnxstep.errors import ModelError
from onnxstep.graphs.loading import load_model_bytes
from onnxstep.passes.canonicalize import canonicalize

X = np.array([[1.0, -2.0, 3.0]], dtype=np.float32)
ONES = np.ones_like(X)


def test_the_default_domain_under_its_long_name() -> None:
    """A model that names the default domain "ai.onnx" instead of "" has the right gradient."""
    model = model_of_text("g (float[1,3] x) => (float[1,3] y) { y = Mul(x, x) }")
    del model.opset_import[:]
    model.opset_import.append(helper.make_opsetid("ai.onnx", 18))
    model.graph.node[0].domain = "ai.onnx"
    got = run(vjp_graph(model, ["x"]), {"x": X, "y_cotangent": ONES})
    np.testing.assert_allclose(got["x_gradient"], 2 * X)


@pytest.mark.parametrize("op_type", ["Mish", "Softplus", "HardSwish", "Celu"])
def test_an_operator_without_a_rule_is_differentiated_through_its_body(
    op_type: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without its rule, an operator gets the same gradient through ONNX's function body."""
    model = model_of_text(f"g (float[1,3] x) => (float[1,3] y) {{ y = {op_type}(x) }}", opset=18)
    feeds = {"x": X, "y_cotangent": ONES}
    by_rule = run(vjp_graph(model, ["x"]), feeds)["x_gradient"]
    for version in (1, 12, 14, 18):
        monkeypatch.delitem(registry._ANSWERS, ("", op_type, version), raising=False)
    backward = vjp_graph(model, ["x"])
    assert op_type not in [node.op_type for node in backward.graph.node]
    np.testing.assert_allclose(run(backward, feeds)["x_gradient"], by_rule, rtol=1e-5, atol=1e-6)


def test_a_body_that_depends_on_types_is_expanded() -> None:
    """SoftmaxCrossEntropyLoss, whose function body depends on types, has the right gradient."""
    model = model_of_text(
        "g (float[1,3] x, int64[1] t) => (float y) { y = SoftmaxCrossEntropyLoss(x, t) }"
    )
    onnx.checker.check_model(model)
    feeds = {"x": X, "t": np.array([2]), "y_cotangent": np.array(1.0, np.float32)}
    p = np.exp(X) / np.exp(X).sum()
    got = run(vjp_graph(model, ["x"]), feeds)["x_gradient"]
    np.testing.assert_allclose(got, p - np.eye(3)[[2]], rtol=1e-5, atol=1e-6)


def test_a_body_may_read_stored_tensors_and_lack_optional_inputs() -> None:
    """A body that depends on types may read an initializer, and the node may omit an input."""
    model = model_of_text(
        "g (float[1,1,2,4] q, float[1,1,2,4] v) => (float[1,1,2,4] y) "
        "<float[1,1,2,4] k = {1, 0, 2, 0, 0, 1, 0, 3}> { y = Attention(q, k, v, , ) }",
        opset=23,
    )
    rng = np.random.default_rng(0)
    q, v, u = rng.standard_normal((3, 1, 1, 2, 4), dtype=np.float32)
    got = run(vjp_graph(model, ["k", "v"]), {"q": q, "v": v, "y_cotangent": u})
    k = np.array([[1, 0, 2, 0], [0, 1, 0, 3]], np.float32)
    scores = np.exp(q[0, 0] @ k.T / 2)
    p = scores / scores.sum(axis=1, keepdims=True)
    dp = u[0, 0] @ v[0, 0].T
    ds = p * (dp - (p * dp).sum(axis=1, keepdims=True)) / 2
    np.testing.assert_allclose(got["v_gradient"][0, 0], p.T @ u[0, 0], rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(got["k_gradient"][0, 0], ds.T @ q[0, 0], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("constant", ["value_ints = [1]", "value = int64[1] {1}"])
def test_constants_however_they_are_written(constant: str) -> None:
    """ReduceMean gets its axes from a Constant node, whether in ``value_ints`` or in ``value``."""
    model = model_of_text(
        "g (float[1,3] x) => (float[1,1] y) "
        f"{{ a = Constant <{constant}> () y = ReduceMean(x, a) }}"
    )
    got = run(vjp_graph(model, ["x"]), {"x": X, "y_cotangent": np.ones((1, 1), np.float32)})
    np.testing.assert_allclose(got["x_gradient"], ONES / 3)


@pytest.mark.parametrize("split", ["int64 s = {2}", "int64[2] s = {2, 1}"])
def test_a_sequence_that_is_taken_apart_at_once(split: str) -> None:
    """SplitToSequence and SequenceAt, as PyTorch exports chunk and split, have right gradients."""
    model = model_of_text(
        f"g (float[1,3] x) => (float[1,2] y, float[1,1] z) <{split}, int64 a = {{0}}, "
        "int64 b = {-1}> { p = SplitToSequence <axis = 1> (x, s) "
        "u = SequenceAt(p, a) y = Mul(u, u) z = SequenceAt(p, b) }"
    )
    feeds = {
        "x": X,
        "y_cotangent": np.ones((1, 2), np.float32),
        "z_cotangent": np.full((1, 1), 5, np.float32),
    }
    got = run(vjp_graph(model, ["x"]), feeds)
    np.testing.assert_allclose(got["x_gradient"], [[2, -4, 5]])


@pytest.mark.parametrize("ir_version", [3, 8])
@pytest.mark.parametrize("opset", [9, 13])
def test_initializers_among_the_inputs(ir_version: int, opset: int) -> None:
    """Gradients are correct for old files, which list initializers among the inputs."""
    model = model_of_text(
        "old (float[1,2] x, float[2,4] w, int64[2] shape) => (float[2,2] y) "
        "{ product = MatMul(x, w) y = Reshape(product, shape) }",
        opset,
        weights={"w": np.ones((2, 4), np.float32), "shape": np.array([2, 2])},
    )
    model.ir_version = ir_version
    x, cotangent = np.array([[2, 3]], np.float32), np.arange(4, dtype=np.float32).reshape(2, 2)
    got = run(vjp_graph(model, ["x", "w"]), {"x": x, "y_cotangent": cotangent})
    np.testing.assert_array_equal(got["x_gradient"], [[6, 6]])
    np.testing.assert_array_equal(got["w_gradient"], x.T @ cotangent.reshape(1, 4))


@pytest.mark.parametrize("equation", ["ij,.j->ij", "i>j,j->ij", "ij,j-", b"\xfe,j", "ij,j->i->j"])
def test_an_equation_that_is_none_is_refused(equation: str | bytes) -> None:
    """Malformed Einsum equations, for which onnx's shape inference would not end, are refused."""
    model = model_of_text(
        'g (float[2,3] x, float[3] w) => (float[2,3] y) { y = Einsum <equation = "ij,j"> (x, w) }'
    )
    text = equation if isinstance(equation, bytes) else equation.encode()
    model.graph.node[0].attribute[0].s = text
    for read in (canonicalize, lambda graph: load_model_bytes(graph.SerializeToString())):
        with pytest.raises(ModelError, match="expected an equation"):
            read(model)
