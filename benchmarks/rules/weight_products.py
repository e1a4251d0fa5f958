"""Forms of Aᵀ B, the gradient of a weight over many positions: medians of interleaved runs.

    python benchmarks/rules/weight_products.py

A is [positions, rows] and B is [positions, columns]; one thread runs. The candidates are the plain
product, the product with A transposed beforehand, and the transposed result (with B transposed
beforehand). `onnxstep.rules.linear.summed_over_rows` chooses among the candidates.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import onnx
from interleaved import candidate_model, median_seconds, milliseconds, normal_feeds
from onnx import TensorProto, helper

from onnxstep.axes import materialized_transpose
from onnxstep.builder import Builder, Value

# Rows, columns, positions of BERT's and GPT-2's layers, recurrent layers and vocabularies.
SHAPES = (
    (768, 768, 128),
    (3072, 768, 128),
    (768, 3072, 128),
    (3072, 768, 512),
    (1100, 1100, 700),
    (2600, 1100, 700),
    (10000, 650, 700),
    (50257, 768, 256),
)
CANDIDATES: dict[str, Callable[[Builder, Value, Value], Value]] = {
    "across": lambda op, a, b: op.Gemm(a, b, transA=1),
    "turned before": lambda op, a, b: op.Gemm(materialized_transpose(a), b),
    "turned after": lambda op, a, b: materialized_transpose(op.Gemm(materialized_transpose(b), a)),
}


def model_of(
    candidate: Callable[[Builder, Value, Value], Value], rows: int, columns: int, positions: int
) -> onnx.ModelProto:
    """The graph of one candidate form."""
    op = Builder([helper.make_opsetid("", 21)], 10)
    a = op.input("a", (positions, rows), TensorProto.FLOAT)
    b = op.input("b", (positions, columns), TensorProto.FLOAT)
    return candidate_model([a, b], [candidate(op, a, b)])


def main() -> None:
    """Time the candidates in turn and print the medians."""
    rng = np.random.default_rng(0)
    for rows, columns, positions in SHAPES:
        models = {n: model_of(c, rows, columns, positions) for n, c in CANDIDATES.items()}
        feeds = normal_feeds(models["across"], rng)
        figures = milliseconds(median_seconds(models, feeds, threads=1), 2)
        print(f"{rows} x {columns} over {positions}: {figures}", flush=True)


if __name__ == "__main__":
    main()
