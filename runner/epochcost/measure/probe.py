"""Test software in a separate process: ``python -m epochcost.measure.probe cuda|engine``.

``cuda`` runs a graph and prints a JSON list of what this machine lacks for CUDA. ``engine`` prints
the software of a serving engine's environment. A broken driver may crash the process.
"""

from __future__ import annotations

import ctypes
import importlib
import json
import sys
from pathlib import Path

import numpy as np
import onnxruntime as ort
import pynvml
from onnx.parser import parse_model

from epochcost.errors import EpochcostError
from epochcost.measure.gpus import open_nvml
from epochcost.measure.runtime import engine_software
from epochcost.measure.session import load_cuda_libraries, open_session
from epochcost.results.records import EXECUTION_PROVIDERS

# Turns a matrix of 16 ones into a matrix of 16s, by a convolution and a matrix product, which load
# and use cuDNN and cuBLAS.
_MODEL = """
<ir_version: 8, opset_import: ["": 17]>
probe (float[1, 1, 4, 4] x) => (float[1, 1, 4, 4] y) <float[1, 1, 1, 1] four = {4}> {
    scaled = Conv <kernel_shape = [1, 1]> (x, four)
    y = MatMul (scaled, x)
}
"""


def missing_for_cuda() -> list[str]:
    """The software or hardware for CUDA that this machine lacks; empty if CUDA works."""
    if EXECUTION_PROVIDERS["cuda"] not in ort.get_available_providers():
        return ["an ONNX Runtime built with CUDA (the package onnxruntime-gpu)", *_driver_faults()]
    try:
        _run_probe_on_cuda()
    except Exception as error:  # ONNX Runtime's exceptions have no narrower base class
        faults = [*_driver_faults(), *_cuda_library_faults()]
        return faults or [f"a CUDA session that runs ({_first_line(error)})"]
    return []


def _run_probe_on_cuda() -> None:
    session = open_session(parse_model(_MODEL).SerializeToString(), "cuda", strict=True)
    matrix = np.ones((1, 1, 4, 4), np.float32)
    (result,) = session.run(None, {"x": matrix})
    if result.shape != matrix.shape or not np.all(result == 16):
        raise EpochcostError(f"expected 16 everywhere from the GPU, got {result.ravel()[:4]}")


def _driver_faults() -> list[str]:
    try:
        with open_nvml() as boards:
            return [] if boards else ["an NVIDIA GPU (the driver sees none)"]
    except pynvml.NVMLError as error:
        return [f"an NVIDIA driver ({error})"]


def _cuda_library_faults() -> list[str]:
    load_cuda_libraries()
    folder = Path(ort.__file__).parent / "capi"
    faults = []
    for library in sorted(folder.glob("*onnxruntime_providers_cuda.*")):
        try:
            ctypes.CDLL(str(library))
        except OSError as error:
            faults.append(f"a CUDA library ({_first_line(error)})")
    return faults


def _first_line(error: Exception) -> str:
    return str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__


if __name__ == "__main__":
    if sys.argv[1] == "cuda":
        sys.stdout.write(json.dumps(missing_for_cuda()) + "\n")
    else:
        # Imported so that a package that the worker lacks is noticed now.
        importlib.import_module("epochcost.measure.worker")
        sys.stdout.write(engine_software(ort).model_dump_json())
