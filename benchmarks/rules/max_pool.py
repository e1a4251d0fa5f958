"""Forms of the gradient of a max-pooling without overlap on the CPU provider.

    python benchmarks/rules/max_pool.py

Each candidate pools x [128, 64, 24, 24] by 2 x 2 with Indices, and moves dy back to the places of
the maxima. Prints medians of interleaved runs, and how much longer each takes than pooling with
Indices alone.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import onnx
from interleaved import candidate_model, median_seconds, normal_feeds
from onnx import TensorProto, helper

from onnxstep.builder import Builder, Value

SHAPE, POOLED = (128, 64, 24, 24), (128, 64, 12, 12)
WINDOW = {"kernel_shape": [2, 2], "strides": [2, 2]}
Rule = Callable[[Builder, Value, Value], Value]


def scatter(op: Builder, indices: Value, dy: Value) -> Value:
    """Move dy back by a scatter into zeros, which runs on every provider."""
    flat = op.integers(-1)
    zeros = op.zeros([int(np.prod(SHAPE))], dy.elem_type)
    return op.ScatterElements(zeros, op.Reshape(indices, flat), op.Reshape(dy, flat), axis=0)


def unpool(op: Builder, indices: Value, dy: Value) -> Value:
    """Move dy back by MaxUnpool, which has no CUDA kernel."""
    return op.MaxUnpool(dy, indices, **WINDOW)


CANDIDATES: dict[str, Rule] = {
    "pooling alone": lambda op, indices, _: op.Cast(indices, to=TensorProto.INT32),
    "ScatterElements": scatter,
    "MaxUnpool": unpool,
}


def model_of(rule: Rule) -> onnx.ModelProto:
    """A graph that pools x and moves dy back."""
    op = Builder([helper.make_opsetid("", 18)], 10)
    x = op.input("x", SHAPE, TensorProto.FLOAT)
    dy = op.input("dy", POOLED, TensorProto.FLOAT)
    y, indices = op.emit("MaxPool", [x], WINDOW, outputs=2)
    return candidate_model([x, dy], [y, rule(op, indices, dy)])


def main() -> None:
    """Time the candidates in turn and print the medians."""
    models = {name: model_of(rule) for name, rule in CANDIDATES.items()}
    feeds = normal_feeds(models["pooling alone"], np.random.default_rng(0))
    middles = median_seconds(models, feeds)
    floor = middles["pooling alone"]
    for name, middle in middles.items():
        print(f"{name:16} {middle * 1e3:7.2f} ms, {(middle - floor) * 1e3:6.2f} ms above pooling")


if __name__ == "__main__":
    main()
