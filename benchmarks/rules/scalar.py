"""A tensor times a number on the CPU provider, by the shape of the number.

    python benchmarks/rules/scalar.py

The CPU kernels merge axes, beginning with the last. With a number of rank 0 or 1, a last axis of
length one ends the merging. A tensor with such an axis, as the weight of a convolution with one
tap, is then processed one element at a time. `onnxstep.builder.Value` gives the number the tensor's
rank.
"""

from __future__ import annotations

import numpy as np
import onnx
from interleaved import median_seconds
from onnx import TensorProto, helper

SHAPES = [(2048, 512, 1, 1), (512, 512, 3, 3), (2048, 512)]


def model_of(shape: tuple[int, ...], number: tuple[int, ...]) -> onnx.ModelProto:
    """The graph of one product."""
    graph = helper.make_graph(
        [helper.make_node("Mul", ["x", "number"], ["y"])],
        "scalar",
        [
            helper.make_tensor_value_info("x", TensorProto.FLOAT, shape),
            helper.make_tensor_value_info("number", TensorProto.FLOAT, number),
        ],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, shape)],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10)


def main() -> None:
    """Print a line for each pair of shapes."""
    rng = np.random.default_rng(0)
    for shape in SHAPES:
        for number in ((), (1,), (1,) * len(shape)):
            x = rng.standard_normal(shape, dtype=np.float32)
            feeds = {"x": x, "number": np.full(number, 0.9, np.float32)}
            [middle] = median_seconds({"": model_of(shape, number)}, feeds).values()
            print(f"{shape!s:20} x {number!s:14} {middle * 1e3:7.2f} ms")


if __name__ == "__main__":
    main()
