"""The quantiser: what it is given, what it suggests, and how it says no."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper
from onnx.reference import ReferenceEvaluator

from epochcost.errors import ModelError
from epochcost.measure import quantise
from epochcost.measure.job import TrialRefused
from epochcost.measure.quantise import (
    QuantizationRequest,
    quantise_apart,
    suggested_quantization,
    with_stored_parameters,
)
from tiny_project import linear_model


def graph_of(*operators: str) -> onnx.ModelProto:
    """A graph of operators without edges, which is enough to suggest."""
    nodes = [helper.make_node(operator, ["x"], [str(i)]) for i, operator in enumerate(operators)]
    return helper.make_model(helper.make_graph(nodes, "any", [], []))


@pytest.mark.parametrize(
    ("operators", "expected"),
    [
        (("Conv", "Relu", "Conv", "Gemm"), "static"),
        (("Conv", "Gemm"), "static"),
        (("Conv", "MatMul", "MatMul"), "dynamic"),
        (("Conv", "Conv", "LSTM"), "dynamic"),
        (("Relu",), "dynamic"),
    ],
)
def test_convolutions_are_calibrated_beforehand(operators: tuple[str, ...], expected: str) -> None:
    """Unless other products are more, or a layer is recurrent."""
    assert suggested_quantization(graph_of(*operators)) == expected


def weightless() -> onnx.ModelProto:
    """The tiny linear model at a batch of two."""
    model = linear_model()
    model.graph.input[0].type.tensor_type.shape.dim[0].dim_value = 2
    model.graph.output[0].type.tensor_type.shape.dim[0].dim_value = 2
    return model


def test_parameters_are_stored_and_the_model_computes_the_same() -> None:
    """Drawn weights become initializers, transposed where a Gemm reads them so."""
    plain = weightless()
    stored = with_stored_parameters(plain, 5)
    assert [value.name for value in stored.graph.input] == ["x"]
    assert not stored.metadata_props
    x = np.linspace(-1, 1, 32, dtype="f4").reshape(2, 16)
    drawn = quantise.materialise(plain, 5)
    (expected,) = ReferenceEvaluator(plain).run(None, {"x": x, **drawn})
    (got,) = ReferenceEvaluator(stored).run(None, {"x": x})
    np.testing.assert_allclose(got, expected, rtol=1e-5)


def test_shared_weights_are_transposed_once_and_kept_for_others() -> None:
    """Two Gemms share one copy; a reader of the table itself still finds it."""
    table = np.arange(6, dtype="f4").reshape(3, 2)
    nodes = [
        helper.make_node("Gather", ["t", "i"], ["x"]),
        helper.make_node("Gemm", ["x", "t"], ["a"], transB=1),
        helper.make_node("Gemm", ["x", "t"], ["b"], transB=1),
        helper.make_node("Add", ["a", "b"], ["y"]),
    ]
    graph = helper.make_graph(
        nodes,
        "tied",
        [helper.make_tensor_value_info("i", onnx.TensorProto.INT64, [4])],
        [helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, [4, 3])],
        [numpy_helper.from_array(table, "t")],
    )
    opsets = [helper.make_opsetid("", 18)]
    plain = helper.make_model(graph, opset_imports=opsets, ir_version=8)
    stored = with_stored_parameters(plain, 0)
    assert {each.name: list(each.dims) for each in stored.graph.initializer} == {
        "t": [3, 2],
        "t_transposed": [2, 3],
    }
    fed = {"i": np.array([0, 2, 1, 1])}
    (expected,) = ReferenceEvaluator(plain).run(None, fed)
    (got,) = ReferenceEvaluator(stored).run(None, fed)
    np.testing.assert_array_equal(got, expected)


def test_more_weights_than_a_file_holds_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Before anything is copied."""
    monkeypatch.setattr(quantise, "MAX_MODEL_BYTES", 300)
    with pytest.raises(ModelError, match="expected weights of at most 300 bytes"):
        with_stored_parameters(weightless(), 0)


def test_a_graph_that_cannot_be_read_is_refused_in_its_words(tmp_path: Path) -> None:
    """The process of the quantiser says why, and nothing of its traceback."""
    (tmp_path / "graph.onnx").write_bytes(b"no graph")
    request = QuantizationRequest(
        graph=tmp_path / "graph.onnx",
        seed=0,
        batches=tmp_path / "batches.npz",
        quantization="dynamic",
        target=tmp_path / "int8.onnx",
    )
    with pytest.raises(TrialRefused, match=r"^int8: .*graph\.onnx: expected an ONNX model"):
        quantise_apart(request)
    assert json.loads((tmp_path / "int8.json").read_text())["quantization"] == "dynamic"
