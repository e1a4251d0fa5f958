"""Memory of kernels' own, from the shapes that their algorithms work on."""

from __future__ import annotations

import pytest
from onnx import helper

from epochcost.graphs.scratch import scratch_bytes

SHAPES = {
    "c": (2, 3),
    "x": (2, 8, 5, 5),
    "w": (8, 4, 3, 3),
    "y": (2, 3),
    "z": (2, 4, 7, 7),
    "one tap": (8, 4, 1, 1),
    "many": (64, 4, 3, 3),
    "same": (2, 8, 5, 5),
    "halved": (2, 8, 3, 3),
}


@pytest.mark.parametrize(
    ("kernels", "output", "expected"),
    [
        ("w", "same", [4 * 128 * 128]),
        ("many", "same", [4 * (4 * 3 * 3) * 25]),
        ("one tap", "same", []),
        ("one tap", "halved", [4 * 128 * 128]),
    ],
)
def test_a_convolution_spreads_columns(kernels: str, output: str, expected: list[int]) -> None:
    """Of an image where a group has more filters than positions, else of a segment; none of one
    tap at every position."""  # noqa: D205, D209 - one sentence
    node = helper.make_node("Conv", ["x", kernels], [output], group=2)
    assert list(scratch_bytes(node, SHAPES)) == expected


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
