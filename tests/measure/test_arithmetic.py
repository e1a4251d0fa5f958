"""A precision is proved by the types that nodes read; fp32 hidden behind casts is refused."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper, parser

from epochcost.errors import CapabilityError
from epochcost.measure.job import JobError
from epochcost.measure.placement import (
    Declared,
    ExecutedNode,
    declared_precision,
    naming_missing_kernels,
    prove_arithmetic,
)
from epochcost.specs.study import Precision
from onnxstep import StepOptions, training_step


def node(operator: str, *input_types: str) -> ExecutedNode:
    """An executed node with inputs of these types and one operator."""
    return ExecutedNode(operator, "0", operator, "CUDAExecutionProvider", 10**6, input_types)


@pytest.mark.parametrize(("precision", "word"), [("fp16", "float16"), ("bf16", "bfloat16")])
def test_heavy_nodes_in_half_are_a_proof(precision: Precision, word: str) -> None:
    """Heavy nodes in half precision prove it. Light nodes may be cast and computed in fp32."""
    nodes = (node("Cast", "float"), node("Gemm", word, word), node("ReduceL2", "float"))
    prove_arithmetic(nodes, precision, "cuda")


def test_one_heavy_node_in_fp32_is_refused_by_name() -> None:
    """The refusal names the operator, the precision and the provider."""
    nodes = (node("Gemm", "float16", "float16"), node("Conv", "float", "float"))
    with pytest.raises(CapabilityError, match="the CUDA provider has no fp16 kernel for Conv: it"):
        prove_arithmetic(nodes, "fp16", "cuda")


def test_light_nodes_that_are_declared_in_half_have_to_run_in_it() -> None:
    """Nodes declared in half precision, except casts, must run in half precision."""
    nodes = (node("Gemm", "float16", "float16"), node("Cast", "float"), node("Relu", "float"))
    prove_arithmetic(nodes, "fp16", "cuda", Declared(frozenset({"Gemm", "Cast"})))
    with pytest.raises(CapabilityError, match="the CUDA provider has no fp16 kernel for Relu: it"):
        prove_arithmetic(nodes, "fp16", "cuda", Declared(frozenset({"Gemm", "Cast", "Relu"})))


def test_added_heavy_nodes_that_are_declared_in_fp32_may_run_in_it() -> None:
    """Declared nodes may run in fp32, also fused; further nodes and the model's own may not."""
    declared = Declared(wide=frozenset({"MatMul", "Conv"}), names=frozenset({"MatMul", "Gemm"}))
    nodes = (node("Einsum", "float16"), node("MatMul", "float"), node("FusedMatMul", "float"))
    prove_arithmetic(nodes, "fp16", "cuda", declared)
    for further in ("FusedGemm", "Gemm"):
        with pytest.raises(CapabilityError, match="no fp16 kernel for"):
            prove_arithmetic((*nodes, node(further, "float")), "fp16", "cuda", declared)


def test_a_graph_declares_its_nodes_in_half(tmp_path: Path) -> None:
    """A graph declares nodes that read half numbers, and added heavy nodes that do not."""
    info, half = helper.make_tensor_value_info, TensorProto.FLOAT16
    nodes = [
        helper.make_node("Cast", ["x"], ["h"], name="first", to=half),
        helper.make_node("Abs", ["h"], ["a"], name="second"),
        helper.make_node("Cast", ["a"], ["f"], name="third", to=TensorProto.FLOAT),
        helper.make_node("MatMul", ["f", "f"], ["s"], name="epochcost/fourth"),
        helper.make_node("MatMul", ["f", "f"], ["y"], name="fifth"),
    ]
    ends = [info("x", 1, [2])], [info("y", 1, [])]
    between = [info("h", half, [2]), info("a", half, [2]), info("f", 1, [2]), info("s", 1, [])]
    graph = helper.make_graph(nodes, "g", *ends, value_info=between)
    opsets = [helper.make_opsetid("", 18)]
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=8), tmp_path / "g.onnx")
    names = frozenset(each.name for each in nodes)
    wide = frozenset({"epochcost/fourth"})
    half_nodes = frozenset({"second"})
    path = tmp_path / "g.onnx"
    assert declared_precision(path, "fp16") == Declared(half_nodes, wide, names)
    assert declared_precision(path, "bf16") == Declared(frozenset(), wide, names)
    assert declared_precision(path, "fp32") == Declared()


def executed(step: onnx.ModelProto) -> list[ExecutedNode]:
    """The nodes of a step as they run if every node computes in its declared type."""
    graph = step.graph
    values = (*graph.value_info, *graph.input, *graph.output)
    types = {value.name: value.type.tensor_type.elem_type for value in values}
    types |= {tensor.name: tensor.data_type for tensor in graph.initializer}
    words = {name: TensorProto.DataType.Name(kind).lower() for name, kind in types.items()}
    return [
        replace(node(each.op_type, *(words[name] for name in each.input if name)), name=each.name)
        for each in graph.node
    ]


@pytest.mark.parametrize("precision", ["fp16", "bf16"])
def test_a_convolution_must_be_half_though_sums_are_not(
    precision: Precision, tmp_path: Path
) -> None:
    """In fp16 sums in fp32 are allowed. In bf16 convolutions are fp32, which is refused."""
    text = (
        '<ir_version: 10, opset_import: ["" : 18]> g (float[4,1,6,6] x, float[8,1,3,3] w) '
        "=> (float[4,8,6,6] y) { c = Conv <pads = [1, 1, 1, 1]> (x, w) y = Relu(c) }"
    )
    model = parser.parse_model(text)
    weights = numpy_helper.from_array(np.ones((8, 1, 3, 3), np.float32), "w")
    model.graph.initializer.append(weights)
    del model.graph.input[1]
    options = StepOptions(loss="mse", provider="cuda", precision=precision)
    step = training_step(model, options).model
    onnx.save(step, tmp_path / "step.onnx")
    declared = declared_precision(tmp_path / "step.onnx", precision)
    assert declared.wide
    if precision == "fp16":
        prove_arithmetic(executed(step), precision, "cuda", declared)
    else:
        with pytest.raises(CapabilityError, match="no bf16 kernel for Conv"):
            prove_arithmetic(executed(step), precision, "cuda", declared)


def test_a_graph_without_heavy_nodes_is_judged_by_its_floats() -> None:
    """Without heavy nodes, all operators on floats must be in half. Integers do not count."""
    shape = node("Concat", "int64", "int64")
    prove_arithmetic((shape, node("ReduceMean", "float16", "int64")), "fp16", "cuda")
    with pytest.raises(CapabilityError, match="kernel for ReduceMean"):
        prove_arithmetic((shape, node("ReduceMean", "float", "int64")), "fp16", "cuda")
    with pytest.raises(CapabilityError, match="any operator of this graph"):
        prove_arithmetic((shape,), "fp16", "cuda")


def test_a_missing_kernel_is_one_line() -> None:
    """A missing kernel gives one line that has the operator from ONNX Runtime's message."""
    refusal = "graph: ONNX Runtime refused the graph: NOT_IMPLEMENTED : Could not find an "
    said = JobError(refusal + "implementation for Relu(14) node with name 'r'")
    with (
        pytest.raises(
            CapabilityError, match=r"^bf16: the CPU provider has no bf16 kernel for Relu"
        ),
        naming_missing_kernels("bf16", "cpu"),
    ):
        raise said
    with pytest.raises(JobError), naming_missing_kernels("fp32", "cpu"):
        raise said
