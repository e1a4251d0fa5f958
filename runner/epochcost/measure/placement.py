"""Prove on which device and in which precision a graph ran, from the profile of a run.

ONNX Runtime may silently compute in fp32, for example without an fp16 kernel of an operator.
"""

from __future__ import annotations

import contextlib
import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

import onnxruntime as ort
from onnx import TensorProto

from epochcost.errors import CapabilityError
from epochcost.measure.job import JobError, PlacementError
from epochcost.results.records import EXECUTION_PROVIDERS, Placement
from epochcost.specs.study import Precision, Provider
from onnxstep.builder import ADDED
from onnxstep.graphs.loading import load_model
from onnxstep.graphs.tensors import declared_values

_CUDA = EXECUTION_PROVIDERS["cuda"]
_KERNEL = "_kernel_time"
# "Heavy" operators: their number of operations grows faster than their data.
HEAVY_OPERATORS = frozenset(
    {
        "Attention", "Conv", "ConvTranspose", "Einsum", "FusedConv", "FusedGemm", "FusedMatMul",
        "GRU", "Gemm", "GroupQueryAttention", "LSTM", "MatMul", "MatMulNBits", "MultiHeadAttention",
        "RNN",
    }
)  # fmt: skip
# ONNX Runtime computes shapes, which are a few integers, on the CPU on purpose. A node that reads
# and writes more bytes than these works on data.
_SHAPE_ARITHMETIC_BYTES = 1024
# Nodes that a CUDA graph cannot capture: branches and loops, which the host decides, and copies
# between the host and the device in the middle of a graph (inference_session.cc).
_NOT_CAPTURED = frozenset({"If", "Loop", "Scan", "MemcpyFromHost", "MemcpyToHost"})


@dataclass(frozen=True)
class ExecutedNode:
    """A node that ran, from a profile; ``size_bytes`` is the size of inputs, weights and outputs.

    ``index`` tells nodes with equal names apart. ``input_types`` are names such as float16.
    """

    name: str
    index: str
    operator: str
    provider: str
    size_bytes: int
    input_types: tuple[str, ...] = ()


def executed_nodes(session: ort.InferenceSession) -> tuple[ExecutedNode, ...]:
    """End a session's profiler, return the nodes in its profile, and delete the profile.

    An ended profiler does not slow steps: 23 nodes took 13.19 µs, and 13.20 µs without a profiler.
    """
    profile = Path(session.end_profiling())
    nodes = read_profile(profile)
    profile.unlink()
    return nodes


def read_profile(path: Path) -> tuple[ExecutedNode, ...]:
    """The nodes in a profile, each node once, in order of execution."""
    events = json.loads(path.read_text(encoding="utf-8"))
    nodes = (_node(event) for event in events if event.get("cat") == "Node")
    return tuple({(n.name, n.index): n for n in nodes if n is not None}.values())


def prove_placement(nodes: tuple[ExecutedNode, ...], provider: Provider) -> Placement:
    """Check where the nodes of a graph ran, and count them by provider and operator type.

    Raises PlacementError without nodes, or if under CUDA the CPU computed more than shapes.
    """
    if not nodes:
        raise PlacementError("placement: expected a profile of a run, got one without nodes")
    if provider == "cuda":
        _require_on_cuda(nodes)
    counts: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for node in nodes:
        counts[node.provider][node.operator] += 1
    return Placement(
        provider=EXECUTION_PROVIDERS[provider],
        nodes_by_provider={name: dict(sorted(ops.items())) for name, ops in sorted(counts.items())},
    )


def require_capturable(nodes: tuple[ExecutedNode, ...]) -> None:
    """Raise PlacementError if a CUDA graph cannot record a step with these nodes."""
    wrong = [node for node in nodes if node.operator in _NOT_CAPTURED]
    if wrong:
        raise PlacementError(
            "CUDA graph: expected a step without control flow and without copies to or from the "
            f"host, got {_operators(wrong)}: set graphs = false in the study's table [cuda], or "
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
    )


def _is_data(node: ExecutedNode) -> bool:
    return node.operator in HEAVY_OPERATORS or node.size_bytes > _SHAPE_ARITHMETIC_BYTES


def _require_on_cuda(nodes: Iterable[ExecutedNode]) -> None:
    misplaced = [node for node in nodes if node.provider != _CUDA and _is_data(node)]
    if misplaced:
        operators = _operators(misplaced)
        raise PlacementError(
            f"placement: expected every node that works on data on {_CUDA}; {len(misplaced)} ran "
            f"elsewhere ({operators}): ONNX Runtime has no CUDA kernel for them in this form; "
            "measure this model with --provider cpu, or change the operators in its graph"
        )


_FLOATING = (HEAVY_OPERATORS - {"MatMulNBits"}) | {"NhwcConv", "NhwcFusedConv"}
_PRODUCTS_OF_TWO = frozenset(
    {"Einsum", "FusedGemm", "FusedMatMul", "Gemm", "MatMul", "MultiHeadAttention"}
)
_HALVES: dict[Precision, str] = {"fp16": "float16", "bf16": "bfloat16"}
# ONNX's element types of the half precisions.
HALF_TYPES: Mapping[Precision, int] = {"fp16": TensorProto.FLOAT16, "bf16": TensorProto.BFLOAT16}
_MISSING_KERNEL = re.compile(r"Could not find an implementation for (\w+)\(")
_FLOATS = frozenset({"float", "float16", "bfloat16"})


@dataclass(frozen=True)
class Declared:
    """Names of the nodes in a training step's graph, by the precision of their inputs.

    ``half`` has the nodes with an input of half precision, except casts. ``wide`` has the heavy
    nodes (such as MatMul) that onnxstep added without such an input. ``names`` has all nodes.
    """

    half: frozenset[str] = frozenset()
    wide: frozenset[str] = frozenset()
    names: frozenset[str] = frozenset()


def declared_precision(graph: Path, precision: Precision) -> Declared:
    """Group a step's nodes by precision of inputs; empty unless ``precision`` is fp16 or bf16."""
    if precision not in HALF_TYPES:
        return Declared()
    model = load_model(graph).graph
    half = {
        value.name
        for value in declared_values(model)
        if value.type.tensor_type.elem_type == HALF_TYPES[precision]
    }
    computing = [node for node in model.node if node.op_type != "Cast"]
    halves = frozenset(node.name for node in computing if half.intersection(node.input))
    added = {node.name for node in computing if node.name.startswith(ADDED)}
    heavy = {node.name for node in computing if node.op_type in HEAVY_OPERATORS}
    names = frozenset(node.name for node in model.node)
    return Declared(halves, frozenset(heavy & added) - halves, names)


def prove_arithmetic(
    nodes: Sequence[ExecutedNode],
    precision: Precision,
    provider: Provider,
    declared: Declared = Declared(),
) -> None:
    """Raise CapabilityError if nodes computed in fp32 instead of ``precision``.

    In fp16 and bf16, the nodes in ``declared.half`` must have an input of half precision. So must
    all heavy nodes (with many operations) that are not in ``declared.wide``. If no heavy node ran,
    so must all nodes that read floats, except casts. In int4, matrix products must be MatMulNBits
    nodes, which have quantised weights. TF32 is not checked.
    """
    if precision in _HALVES:
        _prove_half(nodes, precision, provider, declared)
    elif precision == "int4":
        _prove_quantised_products(nodes, provider)


@contextlib.contextmanager
def naming_missing_kernels(precision: Precision, provider: Provider) -> Iterator[None]:
    """In this context, turn errors about missing kernels into CapabilityErrors, except in fp32."""
    try:
        yield
    except JobError as error:
        missing = _MISSING_KERNEL.search(str(error))
        if precision == "fp32" or missing is None:
            raise
        raise _no_kernel(precision, provider, missing[1]) from None


def _no_kernel(precision: Precision, provider: Provider, operators: str) -> CapabilityError:
    return CapabilityError(
        f"{precision}: the {provider.upper()} provider has no {precision} kernel for {operators}; "
        "measure this model in fp32 here, or on a machine whose provider computes in it"
    )


def _prove_half(
    nodes: Sequence[ExecutedNode], precision: Precision, provider: Provider, declared: Declared
) -> None:
    heavy = [node for node in nodes if node.operator in _FLOATING]
    judged = heavy or [n for n in nodes if n.operator != "Cast" and _FLOATS & set(n.input_types)]
    named = [node for node in nodes if node.name in declared.half and node.operator != "Cast"]
    word = _HALVES[precision]
    # If there are heavy nodes, only they count: ONNX Runtime moves casts around the others.
    wrong = _undeclared_fp32_nodes(
        [node for node in judged if word not in node.input_types], nodes, declared
    )
    wrong = wrong or [node for node in named if word not in node.input_types]
    if wrong or not judged:
        operators = f"{_operators(wrong)}: it would compute in fp32 between casts"
        raise _no_kernel(precision, provider, operators)


def _undeclared_fp32_nodes(
    fp32_nodes: Iterable[ExecutedNode], all_nodes: Iterable[ExecutedNode], declared: Declared
) -> list[ExecutedNode]:
    """The ``fp32_nodes`` not declared in fp32; empty if all may be fusions of declared nodes.

    ONNX Runtime gives a fusion a new name, and the nodes that it replaces do not run.
    """
    apart = [node for node in fp32_nodes if node.name not in declared.wide]
    # A fusion is not in ``declared.names``.
    fused = [node for node in apart if node.name not in declared.names]
    # A fusion may replace a declared node that did not run.
    replaced = declared.wide.difference(node.name for node in all_nodes)
    return [] if len(fused) == len(apart) <= len(replaced) else apart


def _prove_quantised_products(nodes: Sequence[ExecutedNode], provider: Provider) -> None:
    # The attention node, which multiplies activations with each other, is not checked.
    wrong = [node for node in nodes if node.operator in _PRODUCTS_OF_TWO]
    if wrong or not any(node.operator == "MatMulNBits" for node in nodes):
        raise CapabilityError(
            "int4: expected every product with weights in 4 bits on the "
            f"{provider.upper()} provider, got {_operators(wrong)} in fp32: measure this model in "
            "fp32 here"
        )


def _operators(nodes: Iterable[ExecutedNode]) -> str:
    return ", ".join(sorted({node.operator for node in nodes})) or "any operator of this graph"
