"""``allowed_inputs`` says which inputs of a node may be fp16 or bf16 instead of float32."""

from __future__ import annotations

import onnx
from onnx import TensorProto, helper

from onnxstep.graphs.precision import (
    WIDE,
    WIDE_IN_TRAINING,
    allowed_inputs,
)

FP16, BF16 = TensorProto.FLOAT16, TensorProto.BFLOAT16


def schema(operator: str, opset: int) -> onnx.defs.OpSchema:
    """ONNX's schema of an operator at an opset."""
    return onnx.defs.get_schema(operator, opset, "")


def test_the_tables_name_operators_of_onnx() -> None:
    """The tables ``WIDE`` and ``WIDE_IN_TRAINING`` list only operators of ONNX.

    A half-precision model computes the operators of a table in fp32. ``WIDE`` is for inference.
    ``WIDE_IN_TRAINING`` is for training and has all operators of ``WIDE`` and more.
    """
    names = {entry.name for entry in onnx.defs.get_all_schemas()}
    assert names >= WIDE_IN_TRAINING > WIDE


def test_the_last_formal_input_stands_for_all_after_it() -> None:
    """Inputs beyond the last formal input of a schema may have the same types as that input.

    All three operands of a Concat, which has a single formal input, may be fp16. Resize has a
    formal input for its scales, which stay float32.
    """
    many = helper.make_node("Concat", ["a", "b", "c"], ["y"], axis=0)
    assert allowed_inputs(many, schema("Concat", 18), FP16) == [True] * 3
    resize = helper.make_node("Resize", ["x", "", "scales"], ["y"])
    assert allowed_inputs(resize, schema("Resize", 18), FP16) == [True, True, False]


def test_of_contributed_operators_products_alone_are_half() -> None:
    """FusedMatMul may have bf16 inputs, and BiasGelu may not; neither has an ONNX schema."""
    product = helper.make_node("FusedMatMul", ["a", "b"], ["y"], domain="com.microsoft")
    gelu = helper.make_node("BiasGelu", ["a", "b"], ["y"], domain="com.microsoft")
    assert allowed_inputs(product, None, BF16) == [True, True]
    assert allowed_inputs(gelu, None, BF16) == [False, False]
