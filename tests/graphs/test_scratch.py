"""Memory of kernels' own, from the shapes that their algorithms work on."""

from __future__ import annotations

from onnx import helper

from epochcost.graphs.scratch import scratch_bytes

SHAPES = {"c": (2, 3), "x": (2, 8, 5, 5), "w": (8, 4, 3, 3), "y": (2, 3), "z": (2, 4, 7, 7)}


def test_a_transposed_convolution_spreads_one_image_into_columns() -> None:
    """Features times kernel by positions of the input, in floats."""
    node = helper.make_node("ConvTranspose", ["x", "w"], ["z"])
    assert list(scratch_bytes(node, SHAPES)) == [4 * (4 * 3 * 3) * 25]


def test_others_take_none() -> None:
    """Where holds both sides apart; a sum, and an operator of another domain, nothing."""
    assert list(scratch_bytes(helper.make_node("Where", ["c", "c", "c"], ["y"]), SHAPES)) == [
        24,
        24,
    ]
    assert list(scratch_bytes(helper.make_node("Add", ["c", "c"], ["y"]), SHAPES)) == []
    foreign = helper.make_node("Where", ["c", "c", "c"], ["y"], domain="local")
    assert list(scratch_bytes(foreign, SHAPES)) == []
