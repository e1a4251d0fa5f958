"""Sums of a matrix's columns on the CPU, by ReduceSum and by a product with a row of ones.

    python benchmarks/rules/column_sums.py

Gradients of biases are such sums. `onnxstep.cotangent_sums` computes them by the product.
"""

from __future__ import annotations

import numpy as np
import onnx
from interleaved import median_seconds
from onnx import TensorProto, helper, numpy_helper

SHAPES = [(32, 512), (128, 512), (512, 768), (512, 3072), (4096, 384), (128, 30522)]


def model_of(shape: tuple[int, int], node: onnx.NodeProto) -> onnx.ModelProto:
    """The graph of one sum; ``node`` reads x and one of the constants ``ones`` and ``axis``."""
    constants = {"ones": np.ones((1, shape[0]), np.float32), "axis": np.array([0])}
    graph = helper.make_graph(
        [node],
        "column_sums",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, (1, shape[1]))],
        [numpy_helper.from_array(array, name) for name, array in constants.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10)


def main() -> None:
    """Print a line for each shape and number of threads."""
    nodes = {
        "ReduceSum": helper.make_node("ReduceSum", ["x", "axis"], ["y"]),
        "MatMul": helper.make_node("MatMul", ["ones", "x"], ["y"]),
    }
    for shape in SHAPES:
        models = {name: model_of(shape, node) for name, node in nodes.items()}
        x = np.random.default_rng(0).standard_normal(shape, dtype=np.float32)
        for threads in (1, 2):
            seconds = median_seconds(models, {"x": x}, threads)
            times = ", ".join(f"{name} {value * 1e6:.0f} µs" for name, value in seconds.items())
            print(f"{shape}, {threads} threads: {times}")


if __name__ == "__main__":
    main()
