"""Proof of where a graph ran: ONNX Runtime's own profile of one run, read and judged.

Owns the reading of profiles and the rules of what may run on the CPU beside CUDA, and of what a
CUDA graph can record.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from epochcost.measure.failures import PlacementError
from epochcost.results.records import EXECUTION_PROVIDERS, Placement

_CUDA = EXECUTION_PROVIDERS["cuda"]
_KERNEL = "_kernel_time"
# Operators whose work grows faster than their data, whatever the size.
HEAVY_OPERATORS = frozenset(
    {
        "Attention", "Conv", "ConvTranspose", "Einsum", "FusedConv", "FusedGemm", "FusedMatMul",
        "GRU", "Gemm", "LSTM", "MatMul", "MultiHeadAttention", "RNN",
    }
)  # fmt: skip
# ONNX Runtime places shape arithmetic on the CPU on purpose: a handful of integers. Anything that
# reads and writes more than this is data.
_SHAPE_ARITHMETIC_BYTES = 1024
# What ONNX Runtime captures no CUDA graph around: branches and loops, whose way the host decides,
# and copies between the host and the device in the middle of a graph (inference_session.cc).
_NOT_CAPTURED = frozenset({"If", "Loop", "Scan", "MemcpyFromHost", "MemcpyToHost"})


@dataclass(frozen=True)
class ExecutedNode:
    """One node of a profile; ``size_bytes`` counts what it read and wrote, weights included.

    ``index`` is its place in ONNX Runtime's order: names alone need not be unique.
    ``input_types`` are ONNX Runtime's words for what it read, such as float16; ``reads_weights``:
    some of it is stored in the graph.
    """

    name: str
    index: str
    operator: str
    provider: str
    size_bytes: int
    input_types: tuple[str, ...] = ()
    reads_weights: bool = False


def read_profile(path: Path) -> tuple[ExecutedNode, ...]:
    """Read the nodes that ran, each once, in order of execution."""
    events = json.loads(path.read_text(encoding="utf-8"))
    nodes = (_node(event) for event in events if event.get("cat") == "Node")
    return tuple({(n.name, n.index): n for n in nodes if n is not None}.values())


def prove_placement(nodes: tuple[ExecutedNode, ...], execution_provider: str) -> Placement:
    """Count the nodes per provider; raises PlacementError for data on the CPU beside CUDA."""
    if not nodes:
        raise PlacementError("placement: demanded a profile of a run; got one without nodes")
    if execution_provider == _CUDA:
        _refuse([node for node in nodes if node.provider != _CUDA and _is_data(node)])
    counts: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for node in nodes:
        counts[node.provider][node.operator] += 1
    return Placement(
        provider=execution_provider,
        nodes_by_provider={name: dict(sorted(ops.items())) for name, ops in sorted(counts.items())},
    )


def require_capturable(nodes: tuple[ExecutedNode, ...]) -> None:
    """Raise PlacementError where a CUDA graph cannot record a step of these nodes."""
    found = sorted({node.operator for node in nodes if node.operator in _NOT_CAPTURED})
    if found:
        raise PlacementError(
            "CUDA graph: demanded a step without control flow and without copies to or from the "
            f"host; got {', '.join(found)}: set graphs = false in the study's table [cuda], or "
            "leave this model out of the study"
        )


def _node(event: dict[str, object]) -> ExecutedNode | None:
    name, arguments = event.get("name"), event.get("args")
    if not isinstance(name, str) or not name.endswith(_KERNEL) or not isinstance(arguments, dict):
        return None
    sizes = ("activation_size", "parameter_size", "output_size")
    return ExecutedNode(
        name=name.removesuffix(_KERNEL),
        index=str(arguments.get("node_index")),
        operator=str(arguments.get("op_name")),
        provider=str(arguments.get("provider")),
        size_bytes=sum(int(arguments.get(size) or 0) for size in sizes),
        input_types=tuple(chain.from_iterable(arguments.get("input_type_shape") or ())),
        reads_weights=int(arguments.get("parameter_size") or 0) > 0,
    )


def _is_data(node: ExecutedNode) -> bool:
    return node.operator in HEAVY_OPERATORS or node.size_bytes > _SHAPE_ARITHMETIC_BYTES


def _refuse(misplaced: list[ExecutedNode]) -> None:
    if misplaced:
        operators = ", ".join(sorted({node.operator for node in misplaced}))
        raise PlacementError(
            f"placement: demanded every node that works on data on {_CUDA}; {len(misplaced)} ran "
            f"elsewhere ({operators}): ONNX Runtime has no CUDA kernel for them in this form; "
            "measure this model with --provider cpu, or change the operators in its graph"
        )
