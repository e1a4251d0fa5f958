"""A run's profile proves its placement; work on the CPU beside CUDA is refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest

from epochcost.measure.job import PlacementError
from epochcost.measure.placement import (
    ExecutedNode,
    prove_placement,
    read_profile,
    require_capturable,
)
from epochcost.measure.session import open_session

CPU, CUDA = "CPUExecutionProvider", "CUDAExecutionProvider"


def node(operator: str, provider: str, size_bytes: int = 16) -> ExecutedNode:
    """An executed node of one operator."""
    return ExecutedNode(f"{operator}_{provider}", "0", operator, provider, size_bytes)


def test_a_real_profile_counts_each_node_once(product: onnx.ModelProto, tmp_path: Path) -> None:
    """Three runs of MatMul and Relu have two nodes, with the bytes that they read and wrote."""
    session = open_session(product.SerializeToString(), "cpu", profile=tmp_path / "profile")
    for _ in range(3):
        session.run(None, {"x": np.ones((2, 4), "f4"), "w": np.ones((4, 3), "f4")})
    nodes = read_profile(Path(session.end_profiling()))
    placement = prove_placement(nodes, "cpu")
    assert placement.nodes_by_provider == {CPU: {"MatMul": 1, "Relu": 1}}
    assert {n.operator: n.size_bytes for n in nodes} == {"MatMul": 104, "Relu": 48}


def test_counts_are_kept_per_provider() -> None:
    """Nodes are counted by provider, shape arithmetic on the CPU included."""
    nodes = (node("Conv", CUDA, 10**6), node("Gather", CPU), node("Add", CUDA), node("Concat", CPU))
    placement = prove_placement(nodes, "cuda")
    assert placement.provider == CUDA
    assert placement.nodes_by_provider == {
        CPU: {"Concat": 1, "Gather": 1},
        CUDA: {"Add": 1, "Conv": 1},
    }


@pytest.mark.parametrize("misplaced", [node("MatMul", CPU), node("Relu", CPU, 10**6)])
def test_work_on_the_cpu_is_refused_under_cuda(misplaced: ExecutedNode) -> None:
    """A heavy operator or much data on the CPU is refused with the operator's name."""
    with pytest.raises(PlacementError, match=misplaced.operator):
        prove_placement((node("Conv", CUDA, 10**6), misplaced), "cuda")


@pytest.mark.parametrize("operator", ["If", "Loop", "Scan", "MemcpyToHost", "MemcpyFromHost"])
def test_what_no_cuda_graph_records_is_refused_in_one_line(operator: str) -> None:
    """Control flow and copies to the host are refused, with the key of the study to change."""
    with pytest.raises(PlacementError, match=rf"got {operator}: set graphs = false") as caught:
        require_capturable((node("Conv", CUDA), node(operator, CUDA)))
    assert "\n" not in str(caught.value)


def test_shape_arithmetic_on_the_cpu_hinders_no_cuda_graph() -> None:
    """Shape arithmetic on the CPU is accepted beside a CUDA graph."""
    require_capturable((node("Conv", CUDA), node("Gather", CPU)))
