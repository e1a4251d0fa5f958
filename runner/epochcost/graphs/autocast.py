"""Which operators compute in half precision, in inference and in training, and which in fp32.

Two tables by operator, and what ONNX's schemas allow of each input and output. Where a graph is
rewritten is left to ``precision``, where gradients are emitted to ``autodiff.mixed``.
"""

from __future__ import annotations

from collections.abc import Sequence

import onnx
from onnx import TensorProto

from epochcost.graphs.contrib import DOMAIN

HALVES = frozenset({TensorProto.FLOAT16, TensorProto.BFLOAT16})
_TYPE_WORDS: dict[int, str] = {
    TensorProto.FLOAT16: "tensor(float16)",
    TensorProto.BFLOAT16: "tensor(bfloat16)",
}
# Sums of many terms, powers and exponentials soon pass the 65504 of fp16, and coordinates want more
# than its 11 bits: autocasting frameworks keep their like in fp32 as well.
WIDE = frozenset(
    {
        "CumSum", "Exp", "GridSample", "MeanVarianceNormalization", "Pow", "Range", "ReduceL2",
        "ReduceLogSumExp", "ReduceProd", "ReduceSum", "ReduceSumSquare", "Resize", "Upsample",
    }
)  # fmt: skip
# In training also what PyTorch's autocast keeps (its page on torch.amp, "CUDA Ops that can autocast
# to float32"): normalisations, softmax, losses, logarithms and their inverses; and every other mean
# or norm, whose statistics and gradients are sums of many terms.
WIDE_IN_TRAINING = WIDE | {
    "Acos", "Asin", "BatchNormalization", "Cosh", "CumProd", "GlobalAveragePool", "GlobalLpPool",
    "GroupNormalization", "InstanceNormalization", "LRN", "LayerNormalization", "Log", "LogSoftmax",
    "LpNormalization", "NegativeLogLikelihoodLoss", "RMSNormalization", "Reciprocal", "ReduceL1",
    "ReduceLogSum", "ReduceMean", "Sinh", "Softmax", "SoftmaxCrossEntropyLoss", "Softplus", "Sqrt",
    "Tan",
}  # fmt: skip
# Products of ONNX Runtime's own domain, which has no schema in onnx: all their numbers may be half
# (ContribOperators.md).
_CONTRIBUTED_PRODUCTS = frozenset({"FusedMatMul", "TransposeMatMul"})


def allowed_inputs(
    node: onnx.NodeProto, schema: onnx.defs.OpSchema | None, half: int
) -> list[bool]:
    """Which inputs of the node may be of the half type; all False where nothing is known of it."""
    return _allowed(node, None if schema is None else schema.inputs, schema, half, len(node.input))


def allowed_outputs(
    node: onnx.NodeProto, schema: onnx.defs.OpSchema | None, half: int
) -> list[bool]:
    """Which outputs of the node may be of the half type."""
    formals = None if schema is None else schema.outputs
    return _allowed(node, formals, schema, half, len(node.output))


def _allowed(
    node: onnx.NodeProto,
    formals: Sequence[onnx.defs.OpSchema.FormalParameter] | None,
    schema: onnx.defs.OpSchema | None,
    half: int,
    count: int,
) -> list[bool]:
    """By place; the last formal parameter stands for all after it."""
    if formals is None or schema is None:
        return [node.domain == DOMAIN and node.op_type in _CONTRIBUTED_PRODUCTS] * count
    types = {c.type_param_str: c.allowed_type_strs for c in schema.type_constraints}
    word = _TYPE_WORDS[half]
    flags = [word in types.get(formal.type_str, [formal.type_str]) for formal in formals]
    return [bool(flags) and flags[min(place, len(flags) - 1)] for place in range(count)]
