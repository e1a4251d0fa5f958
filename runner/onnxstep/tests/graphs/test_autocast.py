"""Inputs and outputs of nodes that may be fp16 or bf16 instead of float32."""

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
    """All operators in ``WIDE_IN_TRAINING`` are ONNX operators, and ``WIDE`` is a part of this set.

    A half-precision model computes the operators in ``WIDE`` in fp32. For training, the operators
    in ``WIDE_IN_TRAINING`` take their place.
    """
    names = {entry.name for entry in onnx.defs.get_all_schemas()}
    assert names >= WIDE_IN_TRAINING > WIDE


def test_the_last_formal_input_stands_for_all_after_it() -> None:
    """All three operands of a Concat may be fp16, but Resize's scales stay float32."""
    many = helper.make_node("Concat", ["a", "b", "c"], ["y"], axis=0)
    assert allowed_inputs(many, schema("Concat", 18), FP16) == [True] * 3
    resize = helper.make_node("Resize", ["x", "", "scales"], ["y"])
    assert allowed_inputs(resize, schema("Resize", 18), FP16) == [True, True, False]


def test_of_contributed_operators_products_alone_are_half() -> None:
    """Of two operators without ONNX schema, only FusedMatMul, a product, may have bf16 inputs."""
    product = helper.make_node("FusedMatMul", ["a", "b"], ["y"], domain="com.microsoft")
    gelu = helper.make_node("BiasGelu", ["a", "b"], ["y"], domain="com.microsoft")
    assert allowed_inputs(product, None, BF16) == [True, True]
    assert allowed_inputs(gelu, None, BF16) == [False, False]
