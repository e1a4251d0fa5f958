"""Parts of a trained batch normalization on the CPU provider, elementwise and as convolutions.

    python benchmarks/rules/batch_normalization.py [--threads 1]

The parts are the forward pass with a ReLU, and the gradient of x and of the scale. Prints medians
of interleaved runs for each shape. By them `onnxstep.rules.normal` chooses a form for each size of
image.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable

import numpy as np
import onnx
from interleaved import median_seconds
from onnx import TensorProto, helper

from onnxstep.builder import Builder, Value
from onnxstep.forward import Forward, close_model
from onnxstep.rules import normal

# Images, channels and sizes of ResNet-50 at 4, of ResNet-44 at 64 and of MobileNet at 8.
SHAPES = [
    (4, 64, 112),
    (4, 256, 56),
    (4, 512, 28),
    (4, 1024, 14),
    (4, 2048, 7),
    (64, 16, 32),
    (64, 64, 8),
    (8, 960, 7),
]
Rule = Callable[[Value, Value, Value], list[Value]]


def forward(x: Value, _: Value, scale: Value) -> list[Value]:
    """The normalized and scaled batch after a ReLU."""
    parts = normal.normalized(x, 1e-5)
    gain = parts.inverse * normal.per_channel(x, scale)
    return [x.op.Relu(normal.scaled(parts.deviation, gain, normal.per_channel(x, scale)))]


def gradient(deviation: Value, dy: Value, scale: Value) -> list[Value]:
    """Cotangents of x and of the scale."""
    gain, op = normal.per_channel(dy, scale), dy.op
    shift = op.reduce("ReduceSum", dy, normal.channel_axes(dy), keepdims=True)
    slope = normal.product_sums(dy, deviation)
    return [normal.scaled(dy, gain, shift) + normal.scaled(deviation, slope), slope]


def model_of(rule: Rule, shape: tuple[int, int, int], *, convolved: bool) -> onnx.ModelProto:
    """The graph of one part in one form."""
    op = Builder([helper.make_opsetid("", 18)], 10, "cpu", blocked_convolutions=convolved)
    batch, channels, size = shape
    shapes = dict.fromkeys(("x", "dy"), (batch, channels, size, size)) | {"scale": (channels,)}
    inputs = [op.input(name, shape, TensorProto.FLOAT) for name, shape in shapes.items()]
    return close_model(Forward(op, (), (), {}), inputs, rule(*inputs), "candidate")


def main() -> None:
    """Time both forms in turn and print the medians, a line for each shape and part."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--threads", type=int, default=1)
    threads = parser.parse_args().threads
    normal.LARGE_IMAGE = 1
    rng = np.random.default_rng(0)
    for shape in SHAPES:
        for rule in (forward, gradient):
            models = {
                name: model_of(rule, shape, convolved=convolved)
                for name, convolved in (("elementwise", False), ("convolutions", True))
            }
            feeds = {
                info.name: rng.standard_normal(
                    [dim.dim_value for dim in info.type.tensor_type.shape.dim], dtype=np.float32
                )
                for info in models["elementwise"].graph.input
            }
            middles = median_seconds(models, feeds, threads)
            line = ", ".join(f"{name} {middle * 1e3:.2f} ms" for name, middle in middles.items())
            print(f"{shape!s:14} {rule.__name__:9} {line}", flush=True)


if __name__ == "__main__":
    main()
