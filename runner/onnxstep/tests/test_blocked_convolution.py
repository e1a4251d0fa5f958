"""CPU steps with convolutions in blocked layout give the results of steps in plain layout."""

from __future__ import annotations

import platform
from collections.abc import Sequence

import numpy as np
import onnx
import pytest

from graph_text import model_of_text
from onnxstep.blocked_convolution import BLOCK, DOMAIN
from provider_steps import assert_alike, portable_and_special

pytestmark = pytest.mark.skipif(
    platform.machine() not in {"x86_64", "AMD64"}, reason="only x86-64 has the layout"
)


def convolution(
    batch: int,
    channels: int,
    size: int,
    maps: int,
    attributes: str = "",
    kernel: Sequence[int] = (3, 3),
    group: int = 1,
) -> onnx.ModelProto:
    """A model that scales each channel of x and convolves the result; all tensors are trained.

    ``kernel`` has as many sizes as x has axes beside those of the batch and the channels.
    """
    settings = f"group = {group}, {attributes}" if attributes else f"group = {group}"
    sizes = ",".join(map(str, (batch, channels, *[size] * len(kernel))))
    open_sizes = ",".join("nmhkl"[: 2 + len(kernel)])
    shapes = {
        "s": (channels, *[1] * len(kernel)),
        "w": (maps, channels // group, *kernel),
        "b": (maps,),
    }
    return model_of_text(
        f"g (float[{sizes}] x) => (float[{open_sizes}] y) "
        f"{{ a = Mul(x, s) y = Conv <{settings}> (a, w, b) }}",
        weights={name: np.ones(shape, np.float32) for name, shape in shapes.items()},
    )


def domains_of_equal_step(model: onnx.ModelProto) -> set[str]:
    """Assert that a CPU step computes the same as a portable step, built without a provider.

    Returns the domains of the operators in the CPU step.
    """
    portable, special = portable_and_special(model, "cpu", blocked_convolutions=True)
    assert DOMAIN not in {node.domain for node in portable.graph.node}
    assert_alike(portable, special)
    return {node.domain for node in special.graph.node}


@pytest.mark.parametrize(
    ("batch", "channels", "size", "maps", "attributes", "kernel"),
    [
        (16, 16, 9, 32, "pads = [1, 1, 1, 1]", (3, 3)),
        (16, 16, 9, 16, "pads = [1, 1, 1, 1], strides = [2, 2]", (3, 3)),
        (16, 16, 10, 16, "pads = [1, 1, 1, 1], strides = [2, 2]", (3, 3)),
        (16, 16, 9, 16, "pads = [2, 1, 0, 1]", (3, 2)),
        (16, 32, 9, 16, "dilations = [2, 1], pads = [0, 1, 1, 0]", (2, 3)),
        (16, 16, 9, 16, 'auto_pad = "SAME_UPPER"', (2, 2)),
        (4, 16, 9, 16, "pads = [1, 1, 1, 1]", (3, 3)),
        (6, 16, 15, 16, "pads = [1, 1, 1, 1], strides = [2, 3]", (3, 3)),
        (1, 16, 18, 16, "", (5, 3)),
        (16, 1, 9, 16, "", (3, 3)),
        (16, 3, 9, 16, "strides = [2, 2]", (7, 7)),
    ],
)
def test_a_step_in_blocks_is_the_plain_step(
    batch: int, channels: int, size: int, maps: int, attributes: str, kernel: tuple[int, int]
) -> None:
    """A CPU step uses the blocked layout, and computes the same as a step in plain layout."""
    model = convolution(batch, channels, size, maps, attributes, kernel)
    assert DOMAIN in domains_of_equal_step(model)


@pytest.mark.parametrize(
    ("batch", "channels", "attributes", "kernel"),
    [
        (2, 16, "pads = [3, 3, 3, 3]", (7, 7)),
        (1, 32, "pads = [1, 1, 1, 1], strides = [2, 2]", (3, 3)),
        (3, 16, "pads = [0, 1, 2, 1], strides = [3, 2]", (3, 4)),
        (3, 16, "pads = [0, 2, 1, 0], dilations = [2, 3]", (3, 2)),
        (2, 8, "pads = [2, 2, 2, 2]", (5, 5)),
        (2, 16, "", (2, 2)),
    ],
)
def test_a_depthwise_step_in_blocks_is_the_plain_step(
    batch: int, channels: int, attributes: str, kernel: tuple[int, int]
) -> None:
    """With blocked depthwise convolutions, a CPU step computes the same as a portable step.

    A portable step is built without a provider.
    """
    model = convolution(batch, channels, 9, channels, attributes, kernel, group=channels)
    assert DOMAIN in domains_of_equal_step(model)


UNSUITED = {
    "two maps of a channel": convolution(16, 16, 4, 32, group=16),
    "groups of many channels": convolution(16, 32, 4, 32, group=2),
    "channels that fill no block": convolution(1, 8, 4, 8, group=8),
    "maps that fill no block": convolution(16, 16, 4, BLOCK // 2),
    "one tap": convolution(16, 16, 4, 16, kernel=(1, 1)),
    "fewer rows than bands": convolution(1, 8, 4, 16),
    "one axis": convolution(16, 16, 9, 16, kernel=(3,)),
    "three axes": convolution(16, 16, 6, 16, kernel=(2, 2, 2)),
}


@pytest.mark.parametrize("model", UNSUITED.values(), ids=UNSUITED)
def test_what_does_not_fit_in_blocks_stays_plain(model: onnx.ModelProto) -> None:
    """Convolutions unsuited to the blocked layout stay in the plain layout, with equal results."""
    assert DOMAIN not in domains_of_equal_step(model)


def test_cuda_has_no_blocks() -> None:
    """A step for CUDA has no operator of the blocked layout, which only the CPU has."""
    _, cuda = portable_and_special(convolution(16, 16, 9, 16), "cuda", blocked_convolutions=True)
    assert DOMAIN not in {node.domain for node in cuda.graph.node}
