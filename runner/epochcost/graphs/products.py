"""What ONNX Runtime lets a product of matrices do besides: read transposed, and scale.

Its FusedMatMul takes in transposes of operands and factors before and after it, whose results then
are never stored.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence, Set

import onnx

from epochcost.graphs.counting import Shapes
from epochcost.graphs.execution import Execution, reads

_SCALABLE = frozenset({"MatMul", "FusedMatMul"})
_TRANSPOSABLE = _SCALABLE | {"Gemm"}


def taken_in(run: Execution, shapes: Shapes) -> Set[str]:
    """Values that a product takes the place of: transposed or scaled operands, scaled results."""
    swapped = {node.output[0] for node in run.nodes if _swaps_last_axes(node)}
    scaled = dict(_scaled(run, shapes))
    products = {name for node in run.nodes if node.op_type in _SCALABLE for name in node.output}
    readers = Counter(name for node in run.nodes for name in reads(node))
    results = {y for y, x in scaled.items() if x in products and readers[x] == 1}
    operands = _read_by(_TRANSPOSABLE, run.nodes, swapped)
    return operands | results | _read_by(_SCALABLE, run.nodes, scaled.keys() - results)


def _read_by(kinds: Set[str], nodes: Sequence[onnx.NodeProto], names: Set[str]) -> Set[str]:
    """Those of the values that only operators of these kinds read."""
    elsewhere = {name for node in nodes if node.op_type not in kinds for name in reads(node)}
    return names - elsewhere


def _scaled(run: Execution, shapes: Shapes) -> Iterator[tuple[str, str]]:
    """By name of a value times or over a constant number, that value."""
    for node in run.nodes:
        if node.op_type in {"Mul", "Div"}:
            x, factor = node.input
            if node.op_type == "Mul" and x in run.constants:
                x, factor = factor, x
            if factor in run.constants and math.prod(shapes.get(factor, (0,))) == 1:
                yield node.output[0], x


def _swaps_last_axes(node: onnx.NodeProto) -> bool:
    if node.op_type != "Transpose":
        return False
    perm = next((list(entry.ints) for entry in node.attribute if entry.name == "perm"), [1, 0])
    rank = len(perm)
    return rank > 1 and perm == [*range(rank - 2), rank - 1, rank - 2]
