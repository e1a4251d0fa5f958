"""Forms of a depthwise convolution and its gradients on the CPU provider.

    python benchmarks/rules/depthwise.py [--threads 1]

For each shape, the gradients of weights and images and the forward pass are timed on the plain
layout and in blocks of channels (`onnxstep.blocked_convolution`), including reorderings. The plain
forms of the weights' gradient cut out all patches, exchange images and weights, multiply a slice
for each tap, or multiply images spread along the columns by cotangents spread along the rows.
Prints medians of interleaved runs.
"""

from __future__ import annotations

import argparse
from typing import NamedTuple

import numpy as np
import onnx
from convolution import Case as Square
from convolution import Rule
from interleaved import median_seconds
from onnx import TensorProto, helper

from onnxstep import blocked_convolution as blocked
from onnxstep.axes import pad
from onnxstep.builder import Builder, Value
from onnxstep.forward import Forward, close_model
from onnxstep.reductions import reduced
from onnxstep.rules import convolution
from onnxstep.windows import Window, convolve, convolve_transposed


class Case(NamedTuple):
    """A depthwise convolution of square images with stride 1, padded by half the kernel."""

    batch: int
    channels: int
    size: int
    kernel: int

    @property
    def view(self) -> Window:
        """The window of this convolution."""
        return Square(self.batch, self.channels, self.size, self.channels, self.kernel).view


# ConvNeXt at 96 channels and below, and at 384 and 768; MobileNetV3 and EfficientNet.
CASES = [
    Case(4, 48, 56, 7),
    Case(4, 96, 28, 7),
    Case(4, 96, 56, 7),
    Case(4, 384, 14, 7),
    Case(4, 768, 7, 7),
    Case(8, 64, 56, 3),
    Case(8, 480, 14, 3),
    Case(8, 240, 28, 5),
    Case(8, 672, 14, 5),
    Case(8, 960, 7, 5),
]


def by_slices(x: Value, dy: Value, view: Window) -> Value:
    """Sums, one for each tap, of a slice of the images times the cotangents."""
    op, (height, width) = x.op, dy.shape[2:]
    images = pad(x, (0, 0, *view.begins), (0, 0, *view.ends))
    sums = []
    for row, column in np.ndindex(view.kernel):
        begins, ends = op.integers(row, column), op.integers(row + height, column + width)
        product = op.Slice(images, begins, ends, op.integers(2, 3)) * dy
        sums.append(reduced("ReduceSum", product, [0, 2, 3], keepdims=False))
    taps = op.Concat(*(op.Unsqueeze(value, op.integers(1)) for value in sums), axis=1)
    return op.Reshape(taps, op.integers(x.shape[1], 1, *view.kernel))


def by_rows_and_columns(x: Value, dy: Value, view: Window) -> Value:
    """A product [rows of the kernel, positions] by [positions, columns] for each channel."""
    op, (batch, channels, height, width) = x.op, dy.shape
    images = pad(x, (0, 0, *view.begins), (0, 0, *view.ends))
    tall = images.shape[2]
    columns = [
        op.Slice(images, op.integers(at), op.integers(at + width), op.integers(3))
        for at in range(view.kernel[1])
    ]
    rows = [pad(dy, (0, 0, at, 0), (0, 0, tall - height - at, 0)) for at in range(view.kernel[0])]
    shape = op.integers(batch, channels, 1, tall * width)
    right = op.Concat(*(op.Reshape(part, shape) for part in columns), axis=2)
    rows_of_images = op.Concat(*(op.Reshape(part, shape) for part in rows), axis=2)
    product = op.MatMul(rows_of_images, op.Transpose(right, perm=[0, 1, 3, 2]))
    summed = op.ReduceSum(product, op.integers(0), keepdims=0)
    return op.Reshape(summed, op.integers(channels, 1, *view.kernel))


RULES: dict[str, dict[str, Rule]] = {
    "dw": {
        "patches": lambda case, x, w, dy: convolution.by_patches(
            x.op, x, w, dy, case.view, case.channels
        ),
        "exchange": lambda case, x, w, dy: convolution.by_exchange(
            x.op, x, w, dy, case.view, case.channels
        ),
        "slices": lambda case, x, _, dy: by_slices(x, dy, case.view),
        "rows and columns": lambda case, x, _, dy: by_rows_and_columns(x, dy, case.view),
        "blocks": lambda case, x, _, dy: blocked.weight_cotangent(x, dy, case.view, case.channels),
    },
    "dx": {
        "transposed": lambda case, x, w, dy: convolve_transposed(
            dy, w, case.view, x.shape[2:], case.channels
        ),
        "blocks": lambda case, x, w, dy: blocked.adjoint(
            dy, w, case.view, x.shape[2:], case.channels
        ),
    },
    "forward": {
        "plain": lambda case, x, w, dy: convolve(x, w, case.view, dy.shape[2:], case.channels),
        "blocks": lambda case, x, w, _: blocked.convolve(x, w, case.view, case.channels),
    },
}


def model_of(rule: Rule, case: Case) -> onnx.ModelProto:
    """The graph of one candidate form."""
    op = Builder([helper.make_opsetid("", 18)], 10, "cpu", blocked_convolutions=True)
    shape = (case.batch, case.channels, case.size, case.size)
    shapes = {"x": shape, "w": (case.channels, 1, case.kernel, case.kernel), "dy": shape}
    x, w, dy = (op.input(name, size, TensorProto.FLOAT) for name, size in shapes.items())
    y = rule(case, x, w, dy)
    assert y is not None
    return close_model(Forward(op, (), (), {}), [x, w, dy], [y], "candidate")


def main() -> None:
    """Time the candidates in turn and print the medians, a line for each shape and purpose."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--threads", type=int, default=1)
    threads = parser.parse_args().threads
    rng = np.random.default_rng(0)
    for case in CASES:
        for purpose, rules in RULES.items():
            models = {name: model_of(rule, case) for name, rule in rules.items()}
            feeds = {
                info.name: rng.standard_normal(
                    [dim.dim_value for dim in info.type.tensor_type.shape.dim], dtype=np.float32
                )
                for info in next(iter(models.values())).graph.input
            }
            middles = median_seconds(models, feeds, threads)
            line = ", ".join(f"{name} {middle * 1e3:.1f} ms" for name, middle in middles.items())
            print(f"{tuple(case)!s:20} {purpose:8} {line}", flush=True)


if __name__ == "__main__":
    main()
