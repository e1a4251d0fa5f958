"""``doubts`` warns of tensors that may be trained or untrained by mistake, and gives a remedy."""

from __future__ import annotations

import numpy as np
import onnx
import pytest

from exports import ONES, WEIGHTS, ZEROS, merged, optimised, traced, without_identities
from graph_text import model_of_text
from onnxstep.graphs.exported import separated
from onnxstep.graphs.parameters import parameters, untrained
from onnxstep.trained_set import doubts

ROWS = np.random.default_rng(2).standard_normal((8, 4)).astype(np.float32)
COUNTS = np.arange(1, 5)
ORIGIN = ["wpe.weight", "slice_1", "val_1"]


def sentences_of(model: onnx.ModelProto) -> list[str]:
    """The sentences that ``doubts`` yields if a step trains all parameters of ``model``."""
    return list(
        doubts(model, [parameter.name for parameter in parameters(model)], untrained(model))
    )


CASES = {
    "merged by tracing": (
        separated(merged()),
        ["2 equal tensors", "1.norm.weight, 1.norm.bias", "Identity"],
    ),
    "merged, and the names are gone": (
        without_identities(),
        ["probably", "0.norm.weight (in 2 layers), 0.norm.bias (in 2 layers)", "optimize=False"],
    ),
    "rows of a table": (
        optimised({"embedding_1": ORIGIN}, {"embedding_1": ROWS}),
        ["are trained instead: embedding_1 (of wpe.weight)", "optimize=False"],
    ),
    "repeated rows of a table": (
        optimised({"embedding_1": ORIGIN}, {"embedding_1": np.repeat(ROWS[:1], 8, 0)}),
        ["do not change: embedding_1 (of wpe.weight)", "optimize=False"],
    ),
    "whole numbers computed from a parameter": (
        optimised({"neg": ["1.A_log", "exp"]}, {"neg": -COUNTS}),
        ["do not change: neg (of 1.A_log)", "optimize=False"],
    ),
    "whole numbers computed from a parameter whose name resembles an operator's": (
        optimised({"neg": ["A", "exp"]}, {"neg": -COUNTS}),
        ["look typed", "neg; name", "wrt"],
    ),
    "results of parameters without a name": (
        optimised({"val_2": ["val_1", "mm"]}, {"val_2": ROWS}),
        ["are trained instead: val_2; export"],
    ),
    "a norm that tracing merged": (
        traced(
            [onnx.helper.make_node("Conv", ["x", "onnx::Conv_5", "onnx::Conv_6"], ["y"])],
            {"onnx::Conv_5": WEIGHTS, "onnx::Conv_6": ONES},
        ),
        ["normalization", "onnx::Conv_5, onnx::Conv_6; export", "optimize=False"],
    ),
    "a turned weight": (optimised({"val_1": ["1.weight"]}, {"val_1": ROWS}), []),
    "a mask": (optimised({"where": ["arange", "ge"]}, {"where": ZEROS}), []),
    "a gate or a constant": (
        model_of_text(
            "g (float[8,4] x) => (float[8,4] y) "
            "<float[4] w = {0.12345678, 0.2, 0.3, 0.4}, float p = {0.7}> "
            "{ h = Mul(x, w) y = Mul(h, p) }"
        ),
        ["look typed", "p; name", "wrt"],
    ),
}


@pytest.mark.parametrize(("model", "phrases"), CASES.values(), ids=CASES)
def test_each_doubt_is_one_sentence(model: onnx.ModelProto, phrases: list[str]) -> None:
    """``doubts`` yields one sentence with all ``phrases``, or none if ``phrases`` is empty."""
    sentences = sentences_of(model)
    assert len(sentences) == bool(phrases)
    for word in phrases:
        assert word in sentences[0]


def test_a_norm_that_an_optimizer_merged() -> None:
    """``doubts`` warns that a BatchNormalization, merged into weights, is missing in training."""
    model = optimised({}, {"1.bias": ROWS[0]})
    rule = {"key": "pkg.onnxscript.rewriter.rule_name", "value": "FuseBatchNormIntoGemm"}
    model.graph.node[1].metadata_props.add(**rule)
    [sentence] = sentences_of(model)
    assert "normalization" in sentence
    assert "without it: 1.bias; export" in sentence


def test_layers_that_an_optimizer_merged() -> None:
    """``doubts`` warns of a bias that two layers read if the exporter optimized the graph.

    The exporter's optimizer stores equal tensors once, so the layers may have had separate biases.
    """
    model = optimised({"val_1": ["1.weight"]}, {"val_1": ROWS, "0.bias": ROWS[0]})
    model.graph.node[1].input[1] = "0.bias"
    [sentence] = sentences_of(model)
    assert "0.bias (in 2 layers)" in sentence


def test_a_second_call_of_a_layer_is_no_doubt() -> None:
    """A layer that the module calls twice gives no doubt, although two nodes read its tensors."""
    model = without_identities()
    model.graph.node[-1].name = "/0/norm_1/LayerNormalization"
    assert sentences_of(model) == []
