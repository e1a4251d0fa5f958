"""Rewrite GELU for ONNX Runtime: reorder factors so that GELU is fused, or emit a single node."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from typing import TypeGuard

import onnx
from onnx import helper

from onnxstep.graphs.contrib import DOMAIN, VERSION
from onnxstep.graphs.nodes import constant_value, constants, copied, is_standard, reads

# Relative difference between √2 and a float32 or float16 number that stands for it.
_ROUNDING = 1e-3


class _GraphIndex:
    def __init__(self, graph: onnx.GraphProto) -> None:
        self.nodes = graph.node
        self._stored = constants(graph)
        self._writers = {name: node for node in graph.node for name in node.output}
        self._reader_counts = Counter(name for node in graph.node for name in reads(node))
        self._reader_counts.update(value.name for value in graph.output)

    def writer_with_operator(self, name: str, *op_types: str) -> onnx.NodeProto | None:
        node = self._writers.get(name)
        return node if _is(node, *op_types) else None

    def has_single_reader(self, name: str) -> bool:
        return self._reader_counts[name] == 1

    def is_scalar_constant(self, name: str, number: float, tolerance: float = 0.0) -> bool:
        value = constant_value(self._stored.get(name))
        if value is None or value.size != 1:
            return False
        return math.isclose(value.item(), number, rel_tol=tolerance)


def with_halving_last(model: onnx.ModelProto) -> onnx.ModelProto:
    """Copy of a model with GELU as (x · (1 + erf …)) · ½ instead of x · (½ · (1 + erf …)).

    PyTorch exports the second form; ONNX Runtime fuses only the first. Only subnormals differ.
    """
    ordered = copied(model)
    graph = _GraphIndex(ordered.graph)
    for node in graph.nodes:
        for x, name in _mul_input_orders(node):
            scaled = graph.writer_with_operator(name, "Mul")
            if scaled is None or not graph.has_single_reader(name):
                continue
            for half, factor in _mul_input_orders(scaled):
                if graph.is_scalar_constant(half, 0.5) and _erf_intermediates(graph, x, factor):
                    scaled.input[:], node.input[:] = [x, factor], [name, half]
                    break
    return ordered


def with_single_nodes(model: onnx.ModelProto) -> onnx.ModelProto:
    """Copy of a model in which one Gelu node replaces the nodes that compute GELU with Erf.

    The gradient of ONNX Runtime's Gelu node needs fewer passes over the tensor.
    """
    fused = with_halving_last(model)
    graph = _GraphIndex(fused.graph)
    for node in graph.nodes:
        for name, half in _mul_input_orders(node):
            is_halved = graph.is_scalar_constant(half, 0.5)
            product = graph.writer_with_operator(name, "Mul") if is_halved else None
            for x, factor in _mul_input_orders(product):
                parts = _erf_intermediates(graph, x, factor)
                if all(map(graph.has_single_reader, (name, factor, *parts))) and parts:
                    node.CopyFrom(
                        helper.make_node("Gelu", [x], node.output, name=node.name, domain=DOMAIN)
                    )
                    break
    has_domain = DOMAIN in {entry.domain for entry in fused.opset_import}
    if not has_domain and any(node.domain == DOMAIN for node in graph.nodes):
        fused.opset_import.append(helper.make_opsetid(DOMAIN, VERSION))
    return fused


def _mul_input_orders(node: onnx.NodeProto | None) -> Iterable[tuple[str, str]]:
    if not _is(node, "Mul"):
        return ()
    first, second = node.input
    return (first, second), (second, first)


def _erf_intermediates(graph: _GraphIndex, x: str, factor: str) -> tuple[str, ...]:
    """If ``factor`` is 1 + erf(x / √2), the names of erf(x / √2) and x / √2, else empty."""
    total = graph.writer_with_operator(factor, "Add")
    for name, one in ((*total.input,), (*total.input[::-1],)) if total else ():
        erf = graph.writer_with_operator(name, "Erf")
        multiple = graph.writer_with_operator(erf.input[0], "Div", "Mul") if erf else None
        if multiple is None or not graph.is_scalar_constant(one, 1.0):
            continue
        if multiple.op_type == "Div":
            orders, root = [tuple(multiple.input)], math.sqrt(2)
        else:
            orders, root = [*_mul_input_orders(multiple)], math.sqrt(0.5)
        if any(a == x and graph.is_scalar_constant(b, root, _ROUNDING) for a, b in orders):
            return name, multiple.output[0]
    return ()


def _is(node: onnx.NodeProto | None, *op_types: str) -> TypeGuard[onnx.NodeProto]:
    return node is not None and is_standard(node, *op_types)
