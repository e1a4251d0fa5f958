"""CPU steps with convolutions in blocked layout give the results of steps in plain layout."""

from __future__ import annotations

import platform

import numpy as np
import onnx
import onnx.parser
import pytest

from graph_text import run
from onnxstep import StepOptions, training_step
from onnxstep.blocked_convolution import BLOCK, DOMAIN

pytestmark = pytest.mark.skipif(
    platform.machine() not in {"x86_64", "AMD64"}, reason="only x86-64 has the layout"
)


def convolution(
    batch: int,
    channels: int,
    size: int,
    maps: int,
    attributes: str,
    kernel: tuple[int, int] = (3, 3),
    group: int = 1,
) -> onnx.ModelProto:
    """A model that scales each channel of x and convolves the result; all tensors are trained."""
    settings = f"group = {group}, {attributes}" if attributes else f"group = {group}"
    text = (
        f"g (float[{batch},{channels},{size},{size}] x) => (float[n,m,h,k] y) "
        f"{{ a = Mul(x, s) y = Conv <{settings}> (a, w, b) }}"
    )
    shapes = {"s": (channels, 1, 1), "w": (maps, channels // group, *kernel), "b": (maps,)}
    model = onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["" : 21]> {text}')
    model.graph.initializer.extend(
        onnx.numpy_helper.from_array(np.ones(shape, np.float32), name)
        for name, shape in shapes.items()
    )
    model.graph.output[0].type.tensor_type.ClearField("shape")
    return onnx.shape_inference.infer_shapes(model, strict_mode=True)


def stepped(model: onnx.ModelProto, provider: str | None) -> tuple[dict, set[tuple[str, str]]]:
    """Outputs of a training step with inputs from a fixed seed, and the step's operators."""
    step = training_step(
        model, StepOptions(loss="mse", provider=provider, blocked_convolutions=True)
    )
    rng = np.random.default_rng(7)
    feeds = {
        info.name: rng.standard_normal(
            [dim.dim_value for dim in info.type.tensor_type.shape.dim]
        ).astype(np.float32)
        for info in sorted(step.model.graph.input, key=lambda info: info.name)
    }
    return run(step.model, feeds), {(n.domain, n.op_type) for n in step.model.graph.node}


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
    """A CPU step uses the blocked layout, and gives the results of a step without a provider."""
    model = convolution(batch, channels, size, maps, attributes, kernel)
    expected, plain = stepped(model, None)
    got, special = stepped(model, "cpu")
    assert (DOMAIN, "Conv") in special - plain
    for name, value in expected.items():
        scale = np.abs(value).max()
        np.testing.assert_allclose(got[name], value, atol=2e-5 * scale, err_msg=name)


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
    """A depthwise CPU step in the blocked layout gives the results of a step without a provider."""
    model = convolution(batch, channels, 9, channels, attributes, kernel, group=channels)
    expected, plain = stepped(model, None)
    got, special = stepped(model, "cpu")
    assert (DOMAIN, "Conv") in special - plain
    for name, value in expected.items():
        scale = np.abs(value).max()
        np.testing.assert_allclose(got[name], value, atol=2e-5 * scale, err_msg=name)


@pytest.mark.parametrize(
    "model",
    [
        convolution(16, 16, 4, 32, "", group=16),
        convolution(16, 32, 4, 32, "", group=2),
        convolution(1, 8, 4, 8, "", group=8),
        convolution(16, 16, 4, BLOCK // 2, ""),
        convolution(16, 16, 4, 16, "", kernel=(1, 1)),
        convolution(1, 8, 4, 16, ""),
    ],
    ids=[
        "two maps of a channel",
        "groups of many channels",
        "channels that fill no block",
        "maps that fill no block",
        "one tap",
        "fewer rows than bands",
    ],
)
def test_what_does_not_fit_in_blocks_stays_plain(model: onnx.ModelProto) -> None:
    """Convolutions unsuited to the blocked layout stay in the plain layout, with equal results."""
    expected, _ = stepped(model, None)
    got, used = stepped(model, "cpu")
    assert DOMAIN not in {domain for domain, _ in used}
    for name, value in expected.items():
        np.testing.assert_allclose(got[name], value, rtol=1e-4, atol=1e-5, err_msg=name)


def test_signals_stay_plain() -> None:
    """A convolution over a single axis stays in the plain layout."""
    model = onnx.parser.parse_model(
        '<ir_version: 10, opset_import: ["" : 21]> g (float[16,16,9] x) => (float[16,16,7] y) '
        "{ a = Mul(x, s) y = Conv(a, w) }"
    )
    shapes = {"s": (16, 1), "w": (16, 16, 3)}
    model.graph.initializer.extend(
        onnx.numpy_helper.from_array(np.ones(shape, np.float32), name)
        for name, shape in shapes.items()
    )
    expected, _ = stepped(model, None)
    got, used = stepped(model, "cpu")
    assert DOMAIN not in {domain for domain, _ in used}
    for name, value in expected.items():
        np.testing.assert_allclose(got[name], value, rtol=1e-4, atol=1e-5, err_msg=name)


def test_cuda_has_no_blocks() -> None:
    """A step for CUDA has no operator of the blocked layout, which only the CPU has."""
    _, used = stepped(convolution(16, 16, 9, 16, ""), "cuda")
    assert DOMAIN not in {domain for domain, _ in used}


@pytest.mark.parametrize(("rank", "window"), [(1, "3"), (3, "2, 2, 2")])
def test_convolutions_of_other_ranks_stay_plain(rank: int, window: str) -> None:
    """Convolutions over one or three axes stay in the plain layout, with equal results."""
    kernel = tuple(int(length) for length in window.split(","))
    sizes = ",".join(["6"] * rank)
    text = f"g (float[16,16,{sizes}] x) => (float[n,m] y) {{ c = Conv (x, w) y = Flatten (c) }}"
    model = onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["" : 21]> {text}')
    weights = np.ones((16, 16, *kernel), np.float32)
    model.graph.initializer.append(onnx.numpy_helper.from_array(weights, "w"))
    model.graph.output[0].type.tensor_type.ClearField("shape")
    model = onnx.shape_inference.infer_shapes(model, strict_mode=True)
    expected, _ = stepped(model, None)
    got, used = stepped(model, "cpu")
    assert DOMAIN not in {domain for domain, _ in used}
    for name, value in expected.items():
        np.testing.assert_allclose(got[name], value, rtol=1e-4, atol=1e-5, err_msg=name)
