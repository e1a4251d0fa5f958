"""The work of a graph, computed by hand for small graphs and from a published count."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from epochcost.graphs.profile import Profile
from epochcost.graphs.profiling import arithmetic_of_file, profile_of_bound

ROOT = Path(__file__).parents[2]


def profile_of(
    *nodes: onnx.NodeProto, weights: dict[str, tuple[int, ...]] | None = None
) -> Profile | None:
    """The profile of a graph from x [2, 4, 8, 8] to y."""
    image = helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, 4, 8, 8])
    result = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    stored = [
        numpy_helper.from_array(np.ones(shape, np.float32), name)
        for name, shape in (weights or {}).items()
    ]
    graph = helper.make_graph(list(nodes), "g", [image], [result], stored)
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    bound = onnx.shape_inference.infer_shapes(made, strict_mode=True)
    return profile_of_bound(bound)


def test_a_grouped_convolution_is_counted_apart():
    """Products and moved numbers are counted for one example, with those of groups apart."""
    profile = profile_of(
        helper.make_node("Conv", ["x", "w"], ["c"], pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["c"], ["r"]),
        helper.make_node("Conv", ["r", "v"], ["d"], group=6, pads=[1, 1, 1, 1]),
        helper.make_node("Add", ["r", "d"], ["y"]),
        weights={"w": (6, 4, 3, 3), "v": (6, 1, 3, 3)},
    )
    assert profile is not None
    place = 8 * 8
    assert profile.flops == 2 * place * 6 * (4 * 9 + 9)
    assert profile.matrix_flops == 0
    assert profile.moved == place * (4 + 6 + 6 + 6)
    assert profile.moved_by_grouped == place * 12
    assert profile.moved_by_others == place * 18
    assert profile.parameters == 6 * 36 + 6 * 9
    assert profile.products == 2


def test_what_does_not_depend_on_data_moves_nothing():
    """Weights computed from constants and changes of shape move no numbers."""
    profile = profile_of(
        helper.make_node("Neg", ["w"], ["n"]),
        helper.make_node("Flatten", ["x"], ["f"]),
        helper.make_node("MatMul", ["f", "n"], ["y"]),
        weights={"w": (256, 3)},
    )
    assert profile is not None
    assert profile.moved == 256 + 3
    assert profile.moved_by_others == 0
    assert profile.matrix_flops == profile.flops == 2 * 256 * 3


def test_a_chain_on_one_operand_moves_nothing():
    """The chain x * sigmoid(x) + b moves nothing beyond x; a sum with another value counts."""
    profile = profile_of(
        helper.make_node("Conv", ["x", "w"], ["c"]),
        helper.make_node("Sigmoid", ["c"], ["s"]),
        helper.make_node("Mul", ["c", "s"], ["m"]),
        helper.make_node("Add", ["m", "b"], ["a"]),
        helper.make_node("Add", ["a", "x"], ["y"]),
        weights={"w": (4, 4, 1, 1), "b": (4, 1, 1)},
    )
    assert profile is not None
    assert profile.moved_by_others == 3 * 4 * 8 * 8


def test_scores_of_attention_move_nothing():
    """Fused attention never writes the scores of all pairs of positions."""
    profile = profile_of(
        helper.make_node("Concat", ["x", "x"], ["q"], axis=2),
        helper.make_node("Transpose", ["q"], ["k"], perm=[0, 1, 3, 2]),
        helper.make_node("MatMul", ["q", "k"], ["scores"]),
        helper.make_node("Softmax", ["scores"], ["shares"]),
        helper.make_node("MatMul", ["shares", "q"], ["y"]),
    )
    assert profile is not None
    queries = 4 * 16 * 8
    assert profile.moved == 4 * queries
    assert profile.moved_by_others == 4 * queries


def test_a_graph_without_products_has_no_profile():
    """A graph without counted operations has no profile."""
    assert profile_of(helper.make_node("Relu", ["x"], ["y"])) is None


def test_resnet_50_is_what_its_paper_says():
    """The file has 25.6 million parameters and 4.1 billion multiply-adds (in the paper 3.8)."""
    counted = arithmetic_of_file(ROOT / "models" / "resnet50.onnx", {})
    assert counted is not None
    profile = counted.profile
    assert profile is not None
    assert profile.flops == pytest.approx(2 * 4.09e9, rel=0.01)
    assert profile.parameters == 25_557_032
    assert profile.products == 54
