"""Parts of a trained batch normalization, elementwise and in the forms of `onnxstep.channels`.

    python benchmarks/rules/batch_normalization.py [--threads 1]
    python benchmarks/rules/batch_normalization.py --provider cuda [--tf32]

The parts are the forward pass with a ReLU, and the gradient of x and of the scale. Prints medians
of interleaved runs for each shape. By them `onnxstep.channels` chooses a form for each provider
and, on the CPU, for each size of image.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import onnx
from interleaved import (
    candidate_model,
    median_seconds,
    milliseconds,
    normal_feeds,
    provider_options,
)
from onnx import TensorProto, helper

from onnxstep import channels
from onnxstep.builder import Builder, Provider, Value

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
# Those of ResNet-50 at 64.
GPU_SHAPES = [(64, 64, 112), (64, 256, 56), (64, 512, 28), (64, 2048, 7)]
# The builder's provider, and whether convolutions replace elementwise operators.
FORMS: dict[str, dict[str, tuple[Provider | None, bool]]] = {
    "cpu": {"elementwise": ("cpu", False), "convolutions": ("cpu", True)},
    "cuda": {"elementwise": (None, False), "few passes": ("cuda", False)},
}
Rule = Callable[[Value, Value, Value], list[Value]]


def forward(x: Value, _: Value, scale: Value) -> list[Value]:
    """The normalized and scaled batch after a ReLU."""
    parts, per_channel = channels.normalized(x, 1e-5), channels.per_channel(x, scale)
    return [x.op.Relu(parts.scaled(per_channel * parts.inverse, per_channel))]


def gradient(x: Value, dy: Value, scale: Value) -> list[Value]:
    """Cotangents of x and of the scale, if mean and variance are known."""
    gain = channels.per_channel(x, scale)
    parts = channels.Normalized(x, mean=scale, variance=scale, inverse=gain)
    sums = channels.channel_sums(dy)
    slope = parts.product_sums(dy, sums)
    return [channels.scaled(dy, gain) + parts.scaled(slope, sums), slope]


def model_of(
    rule: Rule, shape: tuple[int, int, int], provider: Provider | None, *, convolved: bool
) -> onnx.ModelProto:
    """The graph of one part in one form."""
    op = Builder([helper.make_opsetid("", 18)], 10, provider, blocked_convolutions=convolved)
    batch, count, size = shape
    shapes = dict.fromkeys(("x", "dy"), (batch, count, size, size)) | {"scale": (count,)}
    inputs = [op.input(name, shape, TensorProto.FLOAT) for name, shape in shapes.items()]
    return candidate_model(inputs, rule(*inputs))


def main() -> None:
    """Time the forms in turn and print the medians, a line for each shape and part."""
    options = provider_options(__doc__)
    channels.LARGE_IMAGE = 1
    rng = np.random.default_rng(0)
    for shape in SHAPES if options.provider == "cpu" else GPU_SHAPES:
        for rule in (forward, gradient):
            models = {
                name: model_of(rule, shape, provider, convolved=convolved)
                for name, (provider, convolved) in FORMS[options.provider].items()
            }
            feeds = normal_feeds(models["elementwise"], rng)
            line = milliseconds(median_seconds(models, feeds, **vars(options)), 2)
            print(f"{shape!s:14} {rule.__name__:9} {line}", flush=True)


if __name__ == "__main__":
    main()
