"""Sessions run on the requested provider; without a GPU the message says what is missing."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from onnx import TensorProto, helper

from epochcost.errors import CapabilityError
from epochcost.measure.job import JobError
from epochcost.measure.runtime import require_cuda
from epochcost.measure.session import (
    BFLOAT16,
    allocate,
    copy_into,
    input_devices,
    load_cuda_libraries,
    open_session,
)
from epochcost.plan.trial import SessionSettings
from usable_providers import usable_providers

without_cuda = pytest.mark.skipif(
    "cuda" in usable_providers(), reason="this machine has a usable GPU"
)


def test_a_session_gives_memory_back_as_soon_as_nobody_needs_it(product: onnx.ModelProto) -> None:
    """Sessions neither reserve one block for all runs nor reuse dead tensors."""
    session = open_session(product.SerializeToString(), "cpu")
    options = session.get_session_options()
    assert not options.enable_mem_pattern
    assert not options.enable_mem_reuse


@without_cuda
def test_asking_for_cuda_without_a_gpu_names_what_is_missing() -> None:
    """The error has exit code 3, names the driver or library, and says how to install it."""
    with pytest.raises(CapabilityError) as caught:
        require_cuda()
    message = str(caught.value)
    assert caught.value.exit_code == 3
    assert "NVIDIA driver (" in message or "CUDA library (" in message
    assert "requirements/gpu.txt" in message
    assert "Traceback" not in message


@without_cuda
def test_a_cuda_session_never_falls_back_silently(product: onnx.ModelProto) -> None:
    """A session that falls back to the CPU is an error, not a warning."""
    with pytest.raises(CapabilityError, match=r"expected a session on CUDA.*fell back to CPU"):
        open_session(product.SerializeToString(), "cuda")


@pytest.mark.cuda
@pytest.mark.skipif("cuda" not in usable_providers(), reason="no usable GPU")
def test_cuda_is_accepted_where_it_runs(product: onnx.ModelProto) -> None:
    """On a machine with a GPU, CUDA is accepted and a session opens on the GPU."""
    require_cuda()
    session = open_session(product.SerializeToString(), "cuda")
    assert session.get_providers()[0] == "CUDAExecutionProvider"


def test_a_broken_graph_is_named(tmp_path: Path) -> None:
    """The error for a graph that ONNX Runtime refuses names the file."""
    path = tmp_path / "broken.onnx"
    path.write_bytes(b"\x00\x01")
    with pytest.raises(JobError, match=r"broken\.onnx: ONNX Runtime refused"):
        open_session(path, "cpu")


def test_settings_reach_the_session(product: onnx.ModelProto) -> None:
    """The session has the threads and the optimization level of its settings."""
    settings = SessionSettings(threads=1)
    options = open_session(product.SerializeToString(), "cpu", settings).get_session_options()
    assert options.intra_op_num_threads == 1
    assert options.graph_optimization_level == ort.GraphOptimizationLevel.ORT_ENABLE_ALL


def asked_of_cuda(monkeypatch: pytest.MonkeyPatch, settings: SessionSettings) -> dict[str, str]:
    """The options that a session passes to the CUDA provider."""
    asked = []

    def refuse(*_: object, providers: list[tuple[str, dict[str, str]]]) -> None:
        asked.extend(providers)
        raise RuntimeError("no GPU here")

    monkeypatch.setattr(ort, "InferenceSession", refuse)
    with pytest.raises(JobError, match="no GPU here"):
        open_session(b"", "cuda", settings)
    ((name, options),) = asked
    assert name == "CUDAExecutionProvider"
    return options


def test_everything_that_changes_times_on_cuda_is_said_by_name(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """All options that change times are set, so that no new default changes them."""
    assert asked_of_cuda(monkeypatch, SessionSettings()) == {
        "device_id": "0",
        "use_tf32": "0",
        "enable_cuda_graph": "0",
        "cudnn_conv_algo_search": "EXHAUSTIVE",
        "cudnn_conv_use_max_workspace": "1",
        "do_copy_in_default_stream": "1",
        "prefer_nhwc": "0",
        "tunable_op_enable": "0",
        "arena_extend_strategy": "kSameAsRequested",
    }
    settings = SessionSettings(
        tf32=True, cuda_graph=True, device=2, device_memory_limit_bytes=2**30
    )
    options = asked_of_cuda(monkeypatch, settings)
    assert (options["use_tf32"], options["enable_cuda_graph"]) == ("1", "1")
    assert (options["device_id"], options["gpu_mem_limit"]) == ("2", "1073741824")


def test_gpus_are_counted_in_the_order_of_the_bus(monkeypatch: pytest.MonkeyPatch) -> None:
    """CUDA numbers GPUs in bus order, as the watch does, whatever order the user has set."""
    monkeypatch.setenv("CUDA_DEVICE_ORDER", "FASTEST_FIRST")
    load_cuda_libraries()
    assert os.environ["CUDA_DEVICE_ORDER"] == "PCI_BUS_ID"


def test_an_input_is_put_where_the_session_reads_it(product: onnx.ModelProto) -> None:
    """An input that the session reads in host memory is bound there."""
    session = open_session(product.SerializeToString(), "cpu")
    assert input_devices(session, "cuda") == {"x": "cpu", "w": "cpu"}


PLAIN = SessionSettings(threads=1)


def test_bfloat16_arrives_exactly() -> None:
    """Values in bfloat16 are unchanged in the session, where a Cast reads them."""
    array = np.array([[0.5, -3.0, 1e30], [65536, 0, 1.0078125]], "f4").astype(BFLOAT16)
    value = allocate(array.shape, array.dtype, "cpu")
    copy_into(value, array, PLAIN)
    assert value.data_type() == "tensor(bfloat16)"
    graph = helper.make_graph(
        [helper.make_node("Cast", ["x"], ["y"], to=TensorProto.FLOAT)],
        "back",
        [helper.make_tensor_value_info("x", TensorProto.BFLOAT16, [2, 3])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [2, 3])],
    )
    opsets = [helper.make_opsetid("", 18)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=8)
    session = ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    (back,) = session.run_with_ort_values(None, {"x": value})
    np.testing.assert_array_equal(back.numpy(), array.astype("f4"))
