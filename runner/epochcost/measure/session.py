"""Open ONNX Runtime sessions without a fallback to another provider, and fill tensors for them."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Collection, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import onnx
import onnxruntime as ort
from numpy.typing import NDArray
from onnx import TensorProto, helper
from onnx.parser import parse_model

from epochcost.errors import CapabilityError
from epochcost.measure.job import JobError
from epochcost.plan.trial import SessionSettings
from epochcost.results.records import EXECUTION_PROVIDERS
from epochcost.specs.study import Provider
from onnxstep.graphs.loading import load_model

# ONNX Runtime's name of the memory of the host.
_HOST_MEMORY = "Cpu"
_ERRORS_ONLY = 3
_PLAIN = SessionSettings()
# With these settings, memory is freed as soon as no node needs it. By default a session traces its
# first run and allocates a block for all later runs in addition to the arena of the first. It also
# keeps the memory of an unused tensor until another of the same size is needed. With both defaults,
# training steps took 1.4 to 2.3 times the peak memory and were no faster
# (docs/explanation/performance.md).
_ONE_BLOCK_FOR_ALL_RUNS = False
_KEEP_DEAD_TENSORS = False
# ONNX Runtime's defaults, except that the arena does not double whenever it grows.
_DECLARED = {
    "cudnn_conv_algo_search": "EXHAUSTIVE",
    "cudnn_conv_use_max_workspace": "1",
    "do_copy_in_default_stream": "1",
    "prefer_nhwc": "0",
    "tunable_op_enable": "0",
    "arena_extend_strategy": "kSameAsRequested",
}


def open_session(
    graph: Path | bytes,
    provider: Provider,
    settings: SessionSettings = _PLAIN,
    profile: Path | None = None,
    strict: bool = False,
    weights: Mapping[str, NDArray[Any]] = MappingProxyType({}),
) -> ort.InferenceSession:
    """Open a session for ``graph`` that runs on ``provider`` alone.

    ``weights`` become constants without a copy; the caller must keep them as long as the session.
    ``profile`` is a profile's path prefix. Under CUDA, ``strict`` forbids nodes on the CPU. Raises
    CapabilityError if ONNX Runtime takes another provider, and JobError if it refuses the graph.
    """
    if provider == "cuda":
        load_cuda_libraries()
    # If not strict, ONNX Runtime may use the CPU; ``placement`` later checks this.
    options = _options(settings, provider, profile, strict and provider == "cuda")
    source = str(graph) if isinstance(graph, Path) else graph
    if weights:
        model = load_model(graph) if isinstance(graph, Path) else onnx.load_from_string(graph)
        _make_weights_external(model.graph, weights)
        source = model.SerializeToString()
        values = [_host_value_without_copy(array) for array in weights.values()]
        options.add_external_initializers([*weights], values)
    requested = EXECUTION_PROVIDERS[provider]
    try:
        session = ort.InferenceSession(
            source, options, providers=[(requested, _provider_options(provider, settings))]
        )
    except Exception as error:  # ONNX Runtime's exceptions have no narrower base class
        raise JobError(f"{_graph_name(graph)}: ONNX Runtime refused the graph: {error}") from error
    got = session.get_providers()[0]
    if got != requested:
        raise CapabilityError(
            f"{_graph_name(graph)}: expected a session on {requested}; ONNX Runtime fell back to "
            f"{got}: see `epochcost run --provider cuda` for what this machine lacks"
        )
    return session


def _make_weights_external(graph: onnx.GraphProto, weight_names: Collection[str]) -> None:
    inputs = [value for value in graph.input if value.name in weight_names]
    for value in inputs:
        graph.input.remove(value)
        kind = value.type.tensor_type
        tensor = graph.initializer.add(name=value.name, data_type=kind.elem_type)
        tensor.dims.extend(dim.dim_value for dim in kind.shape.dim)
        # There is no such file: the session gets the values from memory.
        tensor.data_location = onnx.TensorProto.EXTERNAL
        tensor.external_data.add(key="location", value="given-to-the-session")


def _host_value_without_copy(array: NDArray[Any]) -> ort.OrtValue:
    contiguous = np.ascontiguousarray(array)
    if array.dtype != BFLOAT16:
        return ort.OrtValue.ortvalue_from_numpy(contiguous)
    bits = contiguous.view(np.uint16)
    return ort.OrtValue.ortvalue_from_numpy_with_onnx_type(bits, TensorProto.BFLOAT16)


def input_devices(session: ort.InferenceSession, device: str) -> dict[str, str]:
    """The device on which to bind each graph input: ``device``, or "cpu" for shapes and the like.

    If an input is bound on another device, ONNX Runtime copies it once and ignores later changes.
    """
    pairs = zip(session.get_inputs(), session.get_input_memory_infos(), strict=True)
    return {value.name: "cpu" if memory.name == _HOST_MEMORY else device for value, memory in pairs}


def load_cuda_libraries() -> None:
    """Load CUDA libraries from Python packages, where the system's loader does not look.

    Errors go to standard error. If a library is missing, opening a session fails later. The
    function also makes CUDA number the GPUs as NVML does, in the order of the PCI bus instead of by
    speed.
    """
    os.environ["CUDA_DEVICE_ORDER"] = "PCI_BUS_ID"
    preload = getattr(ort, "preload_dlls", None)
    if preload is not None:
        with contextlib.redirect_stdout(sys.stderr):
            preload(directory="")


def _provider_options(provider: Provider, settings: SessionSettings) -> dict[str, str]:
    if provider == "cpu":
        return {}
    # Options that change times are all set, see docs/explanation/measurement.md. TF32, which keeps
    # 10 of 23 bits of the mantissa, is off unless requested.
    options = _DECLARED | {
        "device_id": str(settings.device),
        "use_tf32": str(int(settings.tf32)),
        "enable_cuda_graph": str(int(settings.cuda_graph)),
    }
    if settings.device_memory_limit_bytes is not None:
        options["gpu_mem_limit"] = str(settings.device_memory_limit_bytes)
    return options


def _options(
    settings: SessionSettings, provider: Provider, profile: Path | None, strict: bool
) -> ort.SessionOptions:
    options = ort.SessionOptions()
    options.intra_op_num_threads = settings.threads
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_ALL
    options.log_severity_level = _ERRORS_ONLY
    if provider == "cpu":
        options.enable_mem_pattern = _ONE_BLOCK_FOR_ALL_RUNS
        options.enable_mem_reuse = _KEEP_DEAD_TENSORS
    if strict:
        options.add_session_config_entry("session.disable_cpu_ep_fallback", "1")
    if profile is not None:
        options.enable_profiling = True
        options.profile_file_prefix = str(profile)
    return options


def _graph_name(graph: Path | bytes) -> str:
    return str(graph) if isinstance(graph, Path) else "graph"


BFLOAT16 = np.dtype(helper.tensor_dtype_to_np_dtype(TensorProto.BFLOAT16))
_BFLOAT16_TYPE = "tensor(bfloat16)"


def with_stored_type(array: NDArray[Any]) -> NDArray[Any]:
    """An array of an .npz file, with the type bfloat16 instead of V2, as which NumPy writes it."""
    return array.view(BFLOAT16) if array.dtype == np.dtype("V2") else array


def allocate(
    shape: tuple[int, ...], dtype: np.dtype[Any], device: str, number: int = 0
) -> ort.OrtValue:
    """Allocate an uninitialised tensor on "cpu" or "cuda"; ``number`` is the GPU's number."""
    kind = TensorProto.BFLOAT16 if dtype == BFLOAT16 else dtype
    place = 0 if device == "cpu" else number
    return ort.OrtValue.ortvalue_from_shape_and_type(shape, kind, device, place)


def copy_into(value: ort.OrtValue, array: NDArray[Any], settings: SessionSettings) -> None:
    """Copy an array into a tensor of the same shape and, except for bfloat16, the same type."""
    if value.data_type() == _BFLOAT16_TYPE:
        _fill_bfloat16(value, array, settings)
    else:
        value.update_inplace(np.ascontiguousarray(array))


def _fill_bfloat16(value: ort.OrtValue, array: NDArray[Any], settings: SessionSettings) -> None:
    provider: Provider = "cpu" if value.device_name() == "cpu" else "cuda"
    plain = SessionSettings(threads=settings.threads, device=settings.device)
    # ONNX Runtime's Python interface cannot copy bfloat16 from NumPy.
    cast = parse_model(
        '<ir_version: 8, opset_import: ["": 18]>'
        f"cast (float{[*array.shape]} x) => (bfloat16{[*array.shape]} y) "
        f"{{ y = Cast <to = {TensorProto.BFLOAT16}> (x) }}"
    )
    session = open_session(cast.SerializeToString(), provider, plain)
    binding = session.io_binding()
    binding.bind_cpu_input("x", np.ascontiguousarray(array, np.float32))
    binding.bind_ortvalue_output("y", value)
    session.run_with_iobinding(binding)
    binding.synchronize_outputs()
