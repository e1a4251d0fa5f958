"""Order the factors of GELU as ONNX Runtime's fusions expect."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import TypeGuard

import onnx

from onnxstep.graphs.nodes import constant_value, constants, copied, is_standard, reads


def with_halving_last(model: onnx.ModelProto) -> onnx.ModelProto:
    """Copy of a model with GELU as (x · (1 + erf …)) · ½ instead of x · (½ · (1 + erf …)).

    PyTorch's exporter writes the second form. ONNX Runtime fuses only the first form into a single
    node. The results are equal, since halving is exact except for subnormal numbers.
    """
    ordered = copied(model)
    nodes = ordered.graph.node
    stored = constants(ordered.graph)
    writers = {name: node for node in nodes for name in node.output}
    readers = Counter(name for node in nodes for name in reads(node))
    readers.update(value.name for value in ordered.graph.output)

    def is_half(name: str) -> bool:
        value = constant_value(stored.get(name))
        return value is not None and value.size == 1 and value.item() == 0.5

    for node in nodes:
        for x, name in (tuple(node.input), tuple(node.input[::-1])) if _is(node, "Mul") else ():
            scaled = writers.get(name)
            if not _is(scaled, "Mul") or readers[name] != 1:
                continue
            half, factor = sorted(scaled.input, key=is_half, reverse=True)
            if is_half(half) and _is_erf_of(x, factor, writers):
                scaled.input[:], node.input[:] = [x, factor], [name, half]
                break
    return ordered


def _is_erf_of(x: str, factor: str, writers: Mapping[str, onnx.NodeProto]) -> bool:
    """Whether ``factor`` is a sum with the error function of a multiple of ``x``."""
    total = writers.get(factor)
    for name in total.input if _is(total, "Add") else ():
        erf = writers.get(name)
        multiple = writers.get(erf.input[0]) if _is(erf, "Erf") else None
        if _is(multiple, "Div", "Mul") and x in multiple.input:
            return True
    return False


def _is(node: onnx.NodeProto | None, *op_types: str) -> TypeGuard[onnx.NodeProto]:
    return node is not None and is_standard(node, *op_types)
