"""What ONNX Runtime's CPU provider computes in a layout of its own, besides what a graph says so.

It brings pooling into blocks of channels (NCHWc) and back; convolutions only where their weights
are constants, which in a step they are not: ``autodiff.blocked`` writes those out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

import onnx
from onnx import helper

from epochcost.graphs.counting import BLOCKED, Shapes
from epochcost.graphs.execution import Execution

_POOLS = frozenset({"MaxPool", "AveragePool"})
# With AVX-512; 8 with AVX2. The type and rank are those of its kernels.
_BLOCK, _FLOAT_BYTES, _RANK = 16, 4, 4


def with_blocked_pools(
    run: Execution, shapes: Shapes, widths: Mapping[str, int]
) -> tuple[Execution, Mapping[str, str]]:
    """The run with tensors reordered around pools, and by name of a reordered one the plain one.

    Both have one size. A pool that tells where its largest values are stays as it is
    (nchwc_transformer.cc, TransformPool).
    """
    nodes: list[onnx.NodeProto] = []
    plain: dict[str, str] = {}
    for node in run.nodes:
        if not _is_blocked(node, shapes, widths):
            nodes.append(node)
            continue
        x, y = node.input[0], node.output[0]
        before, after = f"{y}/blocks before", f"{y}/blocks after"
        plain |= {before: x, after: y}
        nodes += _between_reorders(node, before, after)
    return replace(run, nodes=tuple(nodes)), plain


def _is_blocked(node: onnx.NodeProto, shapes: Shapes, widths: Mapping[str, int]) -> bool:
    if node.op_type not in _POOLS or node.domain or sum(map(bool, node.output)) > 1:
        return False
    shape, width = shapes[node.input[0]], widths.get(node.input[0])
    return len(shape) == _RANK and shape[1] % _BLOCK == 0 and width == _FLOAT_BYTES


def _between_reorders(node: onnx.NodeProto, before: str, after: str) -> Iterator[onnx.NodeProto]:
    yield helper.make_node("ReorderInput", node.input[:1], [before], domain=BLOCKED)
    pool = onnx.NodeProto()
    pool.CopyFrom(node)
    pool.domain, pool.input[0], pool.output[0] = BLOCKED, before, after
    yield pool
    yield helper.make_node("ReorderOutput", [after], node.output[:1], domain=BLOCKED)
