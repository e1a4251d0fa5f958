"""Parts that the benchmarks of rules share: candidates as graphs and sessions, timed in turn."""

from __future__ import annotations

import argparse
import functools
import statistics
import time
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import onnx
import onnxruntime
from numpy.typing import NDArray
from onnxruntime import OrtValue

from epochcost.measure.session import open_session
from epochcost.plan.trial import SessionSettings
from onnxstep.builder import Value
from onnxstep.forward import Forward, close_model

ROUNDS = 25


def provider_options(documentation: str) -> argparse.Namespace:
    """The options of a benchmark that runs on the CPU or on CUDA."""
    parser = argparse.ArgumentParser(description=documentation.splitlines()[0])
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--provider", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--tf32", action="store_true")
    return parser.parse_args()


def candidate_model(inputs: list[Value], outputs: list[Value]) -> onnx.ModelProto:
    """The graph of one candidate form."""
    return close_model(Forward(inputs[0].op, (), (), {}), inputs, outputs, "candidate")


def normal_feeds(model: onnx.ModelProto, rng: np.random.Generator) -> dict[str, NDArray[Any]]:
    """Normal numbers in float32 for each input of a graph."""
    return {
        info.name: rng.standard_normal(
            [dim.dim_value for dim in info.type.tensor_type.shape.dim], dtype=np.float32
        )
        for info in model.graph.input
    }


def milliseconds(seconds: Mapping[str, float], digits: int) -> str:
    """Render each candidate with its time."""
    return ", ".join(f"{name} {value * 1e3:.{digits}f} ms" for name, value in seconds.items())


def median_seconds(
    models: Mapping[str, onnx.ModelProto],
    feeds: Mapping[str, NDArray[Any]],
    threads: int = 0,
    provider: str = "cpu",
    *,
    tf32: bool = False,
    clock: Callable[[], float] = time.perf_counter,
) -> dict[str, float]:
    """Median time of each model's runs; in every round all models run in turn.

    ``threads`` 0 means one thread for each core.
    """
    runs: dict[str, Callable[[], object]] = {}
    for name, model in models.items():
        if provider == "cuda":
            runs[name] = _run_on_gpu(model, feeds, tf32)
        else:
            runs[name] = functools.partial(_session_on_cpu(model, threads).run, None, feeds)
    seconds: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(ROUNDS):
        for name, run in runs.items():
            begun = clock()
            run()
            seconds[name].append(clock() - begun)
    return {name: statistics.median(values) for name, values in seconds.items()}


def _session_on_cpu(model: onnx.ModelProto, threads: int) -> onnxruntime.InferenceSession:
    """A session that logs errors only."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    options.intra_op_num_threads = threads
    return onnxruntime.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )


def _run_on_gpu(
    model: onnx.ModelProto, feeds: Mapping[str, NDArray[Any]], tf32: bool
) -> Callable[[], object]:
    """A run with the session options of a trial; all nodes, inputs and outputs are on the GPU."""
    settings = SessionSettings(tf32=tf32)
    session = open_session(model.SerializeToString(), "cuda", settings, strict=True)
    binding = session.io_binding()
    for key, value in feeds.items():
        binding.bind_ortvalue_input(key, OrtValue.ortvalue_from_numpy(value, "cuda", 0))
    for output in session.get_outputs():
        binding.bind_output(output.name, "cuda")
    return functools.partial(session.run_with_iobinding, binding)
