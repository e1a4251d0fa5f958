"""Out of memory: a bounded process fails cleanly, and every message of it is recognised."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

from epochcost.measure.cpu import ControlGroups
from epochcost.measure.job import Job, OutOfMemory
from epochcost.measure.memory import (
    oom_kill_count,
    tells_out_of_memory,
)
from epochcost.measure.trial import run_trial

MIB = 2**20

# As they were met in workers, in issues of ONNX Runtime and in the CUDA libraries' headers.
_OF_MEMORY = (
    "worker: MemoryError: ",
    "worker: MemoryError: Unable to allocate 3.20 GiB for an array with shape (860, 1000000)",
    "worker: killed by SIGABRT\n  its last lines:\n  terminate called after throwing an instance "
    "of 'std::bad_alloc'",
    "worker: JobError: step.onnx: ONNX Runtime refused the graph: bad allocation",
    "worker: RuntimeException: Non-zero status code returned while running Gemm node. Failed to "
    "allocate memory for requested buffer of size 1073741824",
    "worker: RuntimeException: BFCArena::AllocateRawInternal Available memory of 209715200 is "
    "smaller than requested bytes of 411041792",
    "worker: Fail: CUDA failure 2: out of memory ; GPU=0 ; hostname=box ; expr=cudaMalloc(...)",
    "worker: RuntimeException: CUBLAS failure 3: CUBLAS_STATUS_ALLOC_FAILED ; GPU=0",
    "worker: RuntimeException: CUDNN_STATUS_ALLOC_FAILED",
    "worker: RuntimeError: can't start new thread",
    "worker: ended with exit status 1\n  its last lines:\n  OpenBLAS error: Memory allocation "
    "still failed after 10 retries, giving up.",
    "OSError: [Errno 12] Cannot allocate memory",
)
_OF_OTHERS = (
    "worker: JobError: graph: no output is called 'loss'",
    "worker: killed by SIGSEGV; it wrote no lines",
    "worker: CUDA failure 209: no kernel image is available for execution on the device",
    "worker: CUDA failure 222: the PTX was compiled with an unsupported toolchain",
    "worker: the held-out loss is nan",
)


@pytest.mark.parametrize("words", _OF_MEMORY)
def test_words_of_memory_are_known(words: str) -> None:
    """Messages of Python, C++, ONNX Runtime and CUDA are recognised as out of memory."""
    assert tells_out_of_memory(words)


@pytest.mark.parametrize("words", _OF_OTHERS)
def test_other_failures_are_none_of_memory(words: str) -> None:
    """A wrong graph, a crash and another CUDA error are not taken for the end of memory."""
    assert not tells_out_of_memory(words, status=3)


def test_a_kill_is_taken_for_the_system_s() -> None:
    """SIGKILL counts as out of memory unless the kernel counted no kill, and SIGTERM never does."""
    assert tells_out_of_memory("", status=-9)
    assert tells_out_of_memory("", status=-9, oom_killed=True)
    assert not tells_out_of_memory("", status=-9, oom_killed=False)
    assert not tells_out_of_memory("", status=-15)


@pytest.mark.parametrize(
    ("group", "file"),
    [("0::/job", "job/memory.events"), ("4:memory:/job", "memory/job/memory.oom_control")],
)
def test_the_kernels_kills_are_those_of_the_group(tmp_path: Path, group: str, file: str) -> None:
    """The kernel's kills are counted for the group, or without a group for the whole machine."""
    membership, machine = tmp_path / "cgroup", tmp_path / "vmstat"
    membership.write_text(group)
    groups = ControlGroups(membership, tmp_path)
    assert oom_kill_count(groups, machine) is None
    machine.write_text("pgfault 12\noom_kill 7\nswap_ra 1\n")
    assert oom_kill_count(groups, machine) == 7
    (tmp_path / file).parent.mkdir(parents=True)
    (tmp_path / file).write_text("oom 3\noom_kill 2\noom_group_kill 0\n")
    assert oom_kill_count(groups, machine) == 2


def huge_product(rows: int) -> onnx.ModelProto:
    """A graph with a small input x and a product of ``rows`` squared: y = sum(x xᵀ)."""
    helper, kind = onnx.helper, onnx.TensorProto.FLOAT
    nodes = [
        helper.make_node("Transpose", ["x"], ["t"]),
        helper.make_node("MatMul", ["x", "t"], ["p"]),
        helper.make_node("ReduceSum", ["p"], ["y"], keepdims=0),
    ]
    ends = [
        helper.make_tensor_value_info(name, kind, shape)
        for name, shape in (("x", [rows, 2]), ("y", []))
    ]
    graph = helper.make_graph(nodes, "huge", ends[:1], ends[1:])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)


def test_a_worker_out_of_memory_is_recognised(tmp_path: Path, job_of: Callable[..., Job]) -> None:
    """A worker out of memory is recognised, in a step or at its start. Without a limit it runs."""
    rows = 12_000
    batches = {"x": np.ones((2, rows, 2), np.float32)}
    fields: dict[str, Any] = {"mode": "inference", "outputs": ("y",)}
    job = job_of(huge_product(rows), batches, {}, **fields)
    measured = run_trial(job, tmp_path, lambda _: None)
    assert measured.steps_taken > 0
    limited = job.model_copy(update={"memory_limit_bytes": 500 * MIB})
    with pytest.raises(OutOfMemory):
        run_trial(limited, tmp_path, lambda _: None)
    with pytest.raises(OutOfMemory):
        run_trial(job.model_copy(update={"memory_limit_bytes": MIB}), tmp_path, lambda _: None)


_BOUNDED = """
import numpy
from epochcost.measure.memory import limit_memory
limit_memory({limit})
try:
    numpy.ones({bytes}, numpy.uint8)
except MemoryError:
    print("refused")
else:
    print("granted")
"""


def test_a_process_is_bounded() -> None:
    """An allocation above the limit is refused, one below is granted."""

    def said(limit: int, size: int) -> str:
        program = _BOUNDED.format(limit=limit, bytes=size)
        command = [sys.executable, "-c", program]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()

    assert said(128 * MIB, 256 * MIB) == "refused"
    assert said(512 * MIB, 256 * MIB) == "granted"
