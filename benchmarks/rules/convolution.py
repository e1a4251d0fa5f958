"""Forms of a convolution and its gradients.

    python benchmarks/rules/convolution.py [--threads 1]
    python benchmarks/rules/convolution.py --provider cuda [--tf32]

For each shape, the forward pass and the gradients of images and weights are timed on the plain
layout and in blocks (`onnxstep.blocked_convolution`), including reorderings. By the printed medians
of interleaved runs, `onnxstep.rules.convolution` chooses a form.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

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

from onnxstep import blocked_convolution as blocked
from onnxstep.builder import Builder, Value
from onnxstep.errors import ModelError
from onnxstep.rules import convolution
from onnxstep.windows import Window, convolve, convolve_transposed


class Case(NamedTuple):
    """A square convolution, padded by half the kernel."""

    batch: int
    channels: int
    size: int
    maps: int
    kernel: int
    stride: int = 1

    @property
    def view(self) -> Window:
        """The window of this convolution."""
        kernel, stride, pad = self.kernel, self.stride, self.kernel // 2
        end = (self.size // stride - 1) * stride + kernel - pad - self.size
        pads = (pad, pad), (end, end)
        return Window((kernel, kernel), (stride, stride), (1, 1), *pads)

    @property
    def out(self) -> tuple[int, int]:
        """The sizes of the output."""
        return (self.size // self.stride,) * 2


# The layers of ResNet-44 at 64 images, those of ResNet-50 at 4.
CASES = [
    Case(64, 16, 32, 16, 3),
    Case(64, 32, 16, 32, 3),
    Case(64, 64, 8, 64, 3),
    Case(64, 16, 32, 32, 3, 2),
    Case(4, 64, 56, 64, 3),
    Case(4, 256, 14, 256, 3),
    Case(4, 512, 7, 512, 3),
    Case(4, 256, 56, 64, 1),
    Case(4, 2048, 7, 512, 1),
]
# Those of ResNet-50 at 64 images.
GPU_CASES = [
    Case(64, 64, 56, 64, 3),
    Case(64, 128, 28, 128, 3),
    Case(64, 256, 14, 256, 3),
    Case(64, 512, 7, 512, 3),
    Case(64, 128, 56, 128, 3, 2),
    Case(64, 3, 224, 64, 7, 2),
    Case(64, 256, 56, 64, 1),
    Case(64, 2048, 7, 512, 1),
]
Rule = Callable[[Any, Value, Value, Value], Value | None]
RULES: dict[str, dict[str, Rule]] = {
    "forward": {
        "plain": lambda case, x, w, _: convolve(x, w, case.view, case.out, 1),
        "blocks": lambda case, x, w, _: blocked.convolve(x, w, case.view),
    },
    "dx": {
        "transposed": lambda case, x, w, dy: convolve_transposed(dy, w, case.view, x.shape[2:], 1),
        "blocks": lambda case, x, w, dy: blocked.adjoint(dy, w, case.view, x.shape[2:]),
        "chosen": lambda case, x, w, dy: convolution.input_cotangent(x, w, dy, case.view, 1),
    },
    "dw": {
        "patches": lambda case, x, w, dy: convolution.by_patches(dy.op, x, w, dy, case.view, 1),
        "exchange": lambda case, x, w, dy: convolution.by_exchange(dy.op, x, w, dy, case.view, 1),
        "blocks": lambda case, x, _, dy: blocked.weight_cotangent(x, dy, case.view),
        "elements": lambda case, x, w, dy: convolution.by_elements(dy.op, x, w, dy, case.view),
        "chosen": lambda case, x, w, dy: convolution.weight_cotangent(
            dy.op, x, w, dy, case.view, 1
        ),
    },
}


def model_of(rule: Rule, case: Case, provider: str) -> onnx.ModelProto | None:
    """The graph of a candidate form; None if the form does not support the shape."""
    has_blocks = provider == "cpu"
    op = Builder([helper.make_opsetid("", 18)], 10, provider, blocked_convolutions=has_blocks)
    shapes = {
        "x": (case.batch, case.channels, case.size, case.size),
        "w": (case.maps, case.channels, case.kernel, case.kernel),
        "dy": (case.batch, case.maps, *case.out),
    }
    x, w, dy = (op.input(name, shape, TensorProto.FLOAT) for name, shape in shapes.items())
    try:
        y = rule(case, x, w, dy)
    except ModelError:  # too large a constant
        return None
    return None if y is None else candidate_model([x, w, dy], [y])


def main() -> None:
    """Time the candidates in turn and print the medians, a line for each shape and purpose."""
    options = provider_options(__doc__)
    rng = np.random.default_rng(0)
    for case in CASES if options.provider == "cpu" else GPU_CASES:
        for purpose, rules in RULES.items():
            built = {name: model_of(rule, case, options.provider) for name, rule in rules.items()}
            models = {name: model for name, model in built.items() if model is not None}
            feeds = normal_feeds(next(iter(models.values())), rng)
            line = milliseconds(median_seconds(models, feeds, **vars(options)), 1)
            print(f"{tuple(case)!s:26} {purpose:8} {line}", flush=True)


if __name__ == "__main__":
    main()
