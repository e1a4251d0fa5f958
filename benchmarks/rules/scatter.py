"""Gradient of a table that is also a weight: rows added at their places to another gradient.

    python benchmarks/rules/scatter.py

The table's gradient as a weight is a product over 64 positions; the graph returns its sum of
squares, as clipping does. The first candidate adds the rows to a table of zeros, and then both
tables. The others add the rows to the product by ScatterND or by ScatterElements. Prints medians of
interleaved runs on one thread. `onnxstep.cotangent_sums` chooses among the candidates.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import onnx
from interleaved import candidate_model, median_seconds, milliseconds
from onnx import TensorProto, helper

from onnxstep.builder import Builder, Value

# Rows of the table, their length, places read: BERT's, GPT-2's, of characters, of fastText.
TABLES = (
    (30522, 768, 128),
    (30522, 768, 512),
    (50257, 768, 256),
    (50257, 768, 1024),
    (10000, 650, 350),
    (10000, 650, 700),
    (1000000, 50, 12800),
)
POSITIONS = 64


def sum_of_tables(table: Value, places: Value, rows: Value) -> Value:
    """The sum of the table and a table of zeros to which the rows were added."""
    op = table.op
    at = op.Unsqueeze(places, op.integers(-1))
    zeros = op.zeros(table.shape, table.elem_type)
    return table + op.ScatterND(zeros, at, rows, reduction="add")


def onto(table: Value, places: Value, rows: Value) -> Value:
    """Add whole rows at their places, by ScatterND."""
    op = table.op
    return op.ScatterND(table, op.Unsqueeze(places, op.integers(-1)), rows, reduction="add")


def by_elements(table: Value, places: Value, rows: Value) -> Value:
    """Add each element of the rows at its place, by ScatterElements."""
    op = table.op
    each = op.Expand(op.Unsqueeze(places, op.integers(-1)), op.integers(*rows.shape))
    return op.ScatterElements(table, each, rows, axis=0, reduction="add")


Candidate = Callable[[Value, Value, Value], Value]
CANDIDATES: dict[str, Candidate] = {
    "apart": sum_of_tables,
    "ScatterND": onto,
    "elements": by_elements,
}


def model_of(candidate: Candidate, length: int, width: int, read: int) -> onnx.ModelProto:
    """The graph of the product, the added rows, and the sum of squares."""
    op = Builder([helper.make_opsetid("", 18)], 10)
    a = op.input("a", (POSITIONS, length), TensorProto.FLOAT)
    b = op.input("b", (POSITIONS, width), TensorProto.FLOAT)
    places = op.input("places", (read,), TensorProto.INT64)
    rows = op.input("rows", (read, width), TensorProto.FLOAT)
    summed = candidate(op.Gemm(a, b, transA=1), places, rows)
    squares = op.ReduceSumSquare(summed, keepdims=0)
    return candidate_model([a, b, places, rows], [squares])


def main() -> None:
    """Time the candidates in turn and print the medians."""
    rng = np.random.default_rng(0)
    for length, width, read in TABLES:
        feeds = {
            "a": rng.standard_normal((POSITIONS, length), dtype=np.float32),
            "b": rng.standard_normal((POSITIONS, width), dtype=np.float32),
            "places": rng.integers(0, length, read),
            "rows": rng.standard_normal((read, width), dtype=np.float32),
        }
        models = {name: model_of(c, length, width, read) for name, c in CANDIDATES.items()}
        figures = milliseconds(median_seconds(models, feeds, threads=1), 1)
        print(f"{read} of {length} x {width}: {figures}", flush=True)


if __name__ == "__main__":
    main()
