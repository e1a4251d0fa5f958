"""A precision is proved by the types that nodes read; fp32 hidden behind casts is refused."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest
from onnx import TensorProto, helper

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


def test_heavy_nodes_that_are_declared_in_fp32_may_run_in_it() -> None:
    """As many heavy nodes may run in fp32 as the graph declares so, and no more."""
    nodes = (node("Gemm", "float16", "float16"), node("MatMul", "float", "float"))
    prove_arithmetic(nodes, "fp16", "cuda", Declared(wide_products=1))
    with pytest.raises(CapabilityError, match="no fp16 kernel for MatMul: it"):
        prove_arithmetic((*nodes, nodes[1]), "fp16", "cuda", Declared(wide_products=1))


def test_a_graph_declares_its_nodes_in_half(tmp_path: Path) -> None:
    """A graph declares the nodes that read half numbers, and counts heavy nodes that do not."""
    info, half = helper.make_tensor_value_info, TensorProto.FLOAT16
    nodes = [
        helper.make_node("Cast", ["x"], ["h"], name="first", to=half),
        helper.make_node("Abs", ["h"], ["a"], name="second"),
        helper.make_node("Cast", ["a"], ["f"], name="third", to=TensorProto.FLOAT),
        helper.make_node("MatMul", ["f", "f"], ["y"], name="fourth"),
    ]
    ends = [info("x", 1, [2])], [info("y", 1, [])]
    between = [info("h", half, [2]), info("a", half, [2]), info("f", 1, [2])]
    graph = helper.make_graph(nodes, "g", *ends, value_info=between)
    opsets = [helper.make_opsetid("", 18)]
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=8), tmp_path / "g.onnx")
    assert declared_precision(tmp_path / "g.onnx", "fp16") == Declared(frozenset({"second"}), 1)
    assert declared_precision(tmp_path / "g.onnx", "bf16") == Declared(frozenset(), 1)
    assert declared_precision(tmp_path / "g.onnx", "fp32") == Declared()


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
