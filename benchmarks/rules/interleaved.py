"""Parts that the benchmarks of rules share: candidates as sessions, timed in turn."""

from __future__ import annotations

import functools
import statistics
import time
from collections.abc import Callable, Mapping
from typing import Any

import onnx
import onnxruntime
from numpy.typing import NDArray
from onnxruntime import OrtValue

from epochcost.measure.session import open_session
from epochcost.plan.trial import SessionSettings

ROUNDS = 25


def session_of(model: onnx.ModelProto, threads: int = 0) -> onnxruntime.InferenceSession:
    """A session on the CPU provider that logs errors only; 0 threads means one for each core."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    options.intra_op_num_threads = threads
    return onnxruntime.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )


def median_seconds(
    models: Mapping[str, onnx.ModelProto], feeds: Mapping[str, NDArray[Any]], threads: int = 0
) -> dict[str, float]:
    """Median time of each model's runs; in every round all models run in turn.

    ``threads`` 0 means one thread for each core.
    """
    sessions = {name: session_of(model, threads) for name, model in models.items()}
    return _medians({name: lambda s=s: s.run(None, feeds) for name, s in sessions.items()})


def median_seconds_on_gpu(
    models: Mapping[str, onnx.ModelProto], feeds: Mapping[str, NDArray[Any]], *, tf32: bool = False
) -> dict[str, float]:
    """Median times as in ``median_seconds``, on CUDA, with the session options of a trial.

    Inputs and outputs stay on the GPU.
    """
    runs = {}
    for name, model in models.items():
        settings = SessionSettings(tf32=tf32)
        session = open_session(model.SerializeToString(), "cuda", settings)
        binding = session.io_binding()
        for key, value in feeds.items():
            binding.bind_ortvalue_input(key, OrtValue.ortvalue_from_numpy(value, "cuda", 0))
        for output in session.get_outputs():
            binding.bind_output(output.name, "cuda")
        runs[name] = functools.partial(session.run_with_iobinding, binding)
    return _medians(runs)


def _medians(runs: Mapping[str, Callable[[], object]]) -> dict[str, float]:
    seconds: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(ROUNDS):
        for name, run in runs.items():
            begun = time.perf_counter()
            run()
            seconds[name].append(time.perf_counter() - begun)
    return {name: statistics.median(values) for name, values in seconds.items()}
