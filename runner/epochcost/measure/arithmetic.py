"""Proof of the arithmetic: that the heavy nodes computed in the type that the trial declares.

Where a provider has no kernel of a half type, ONNX Runtime puts casts around its fp32 kernel and
says nothing; a weight that is not quantised is multiplied in fp32. The types that each node read
stand in the profile of the first step. What a node's place is is left to ``placement``.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path

from onnx import TensorProto

from epochcost.errors import CapabilityError
from epochcost.graphs.loading import load_model
from epochcost.graphs.tensors import declared_values
from epochcost.measure.failures import JobError
from epochcost.measure.placement import HEAVY_OPERATORS, ExecutedNode
from epochcost.specs.study import Precision, Provider

INTEGER_OPERATORS = frozenset(
    {
        "ConvInteger", "DynamicQuantizeLSTM", "DynamicQuantizeMatMul", "MatMulInteger",
        "MatMulIntegerToFloat", "QAttention", "QGemm", "QLinearConv", "QLinearMatMul",
    }
)  # fmt: skip
_FLOATING = HEAVY_OPERATORS | {"GroupQueryAttention", "NhwcConv", "NhwcFusedConv"}
_PRODUCTS_OF_TWO = frozenset(
    {"Einsum", "FusedGemm", "FusedMatMul", "Gemm", "MatMul", "MultiHeadAttention"}
)
_HALVES: dict[Precision, str] = {"fp16": "float16", "bf16": "bfloat16"}
_TYPES: dict[Precision, int] = {"fp16": TensorProto.FLOAT16, "bf16": TensorProto.BFLOAT16}
_NAMES: dict[Provider, str] = {"cpu": "CPU provider", "cuda": "CUDA provider"}
_MISSING_KERNEL = re.compile(r"Could not find an implementation for (\w+)\(")
_FLOATS = frozenset({"float", "float16", "bfloat16"})


def declared_in_half(graph: Path, precision: Precision) -> frozenset[str]:
    """The names of the nodes that a graph has read numbers of a half type, casts apart.

    Empty in other precisions. The graph declares the types of what lies between its nodes.
    """
    if precision not in _TYPES:
        return frozenset()
    model = load_model(graph).graph
    half = {
        value.name
        for value in declared_values(model)
        if value.type.tensor_type.elem_type == _TYPES[precision]
    }
    return frozenset(
        node.name for node in model.node if node.op_type != "Cast" and half.intersection(node.input)
    )


def prove_arithmetic(
    nodes: Iterable[ExecutedNode],
    precision: Precision,
    provider: Provider,
    declared: Collection[str] = (),
) -> None:
    """Raise CapabilityError where an fp32 figure would go under another precision's name.

    Half precision: every heavy node read a number of that type, and so did every node of the names
    in ``declared``; in a graph without heavy nodes, every node that reads floats did, casts apart.
    int8: integer kernels ran, and no heavy node
    multiplied weights in another type; a product of two activations, as in attention, may.
    Nothing is proved of TF32, whose numbers are fp32 wherever they can be seen.
    """
    every = tuple(nodes)
    if precision in _HALVES:
        _prove_half(every, precision, provider, declared)
    elif precision == "int8":
        _prove_int8(every, provider)


@contextlib.contextmanager
def demanding_kernels(precision: Precision, provider: Provider) -> Iterator[None]:
    """Say in one line which kernel is missing where ONNX Runtime opens no session for that."""
    try:
        yield
    except JobError as error:
        missing = _MISSING_KERNEL.search(str(error))
        if precision == "fp32" or missing is None:
            raise
        raise CapabilityError(
            f"{precision}: the {_NAMES[provider]} has no {precision} kernel for {missing[1]}; "
            "measure this model in fp32 here, or on a machine whose provider computes in it"
        ) from None


def _prove_half(
    nodes: tuple[ExecutedNode, ...],
    precision: Precision,
    provider: Provider,
    declared: Collection[str],
) -> None:
    heavy = [node for node in nodes if node.operator in _FLOATING]
    judged = heavy or [n for n in nodes if n.operator != "Cast" and _FLOATS & set(n.input_types)]
    named = [node for node in nodes if node.name in declared and node.operator != "Cast"]
    word = _HALVES[precision]
    # The heavy ones alone where there are some: around them ONNX Runtime moves its casts at will.
    wrong = [n for n in judged if word not in n.input_types] or [
        n for n in named if word not in n.input_types
    ]
    if wrong or not judged:
        raise CapabilityError(
            f"{precision}: the {_NAMES[provider]} has no {precision} kernel for "
            f"{_operators(wrong)}: it would compute in fp32 between casts; measure this "
            "model in fp32 here, or on a machine whose provider computes in it"
        )


def _prove_int8(nodes: tuple[ExecutedNode, ...], provider: Provider) -> None:
    wrong = [node for node in nodes if node.operator in _FLOATING and not _of_activations(node)]
    if wrong or not any(node.operator in INTEGER_OPERATORS for node in nodes):
        raise CapabilityError(
            f"int8: the {_NAMES[provider]} has no integer kernel for {_operators(wrong)} as "
            "quantised: it would compute in fp32; measure this model in fp32 here, or name the "
            'other quantization ("dynamic" or "static") in the study'
        )


def _of_activations(node: ExecutedNode) -> bool:
    """Whether a product reads no weights; a profile leaves out those that are packed."""
    two = node.operator in _PRODUCTS_OF_TWO and len(node.input_types) >= 2
    return two and not node.reads_weights


def _operators(nodes: Iterable[ExecutedNode]) -> str:
    return ", ".join(sorted({node.operator for node in nodes})) or "any operator of this graph"
