"""Common parts of the benchmarks of rules: candidates as sessions, timed in turn."""

from __future__ import annotations

import statistics
import time
from collections.abc import Mapping
from typing import Any

import onnx
import onnxruntime
from numpy.typing import NDArray

ROUNDS = 25


def session_of(model: onnx.ModelProto, threads: int = 0) -> onnxruntime.InferenceSession:
    """A session on the CPU provider that logs errors only; 0 threads: one for each core."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    options.intra_op_num_threads = threads
    return onnxruntime.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )


def median_seconds(
    models: Mapping[str, onnx.ModelProto], feeds: Mapping[str, NDArray[Any]], threads: int = 0
) -> dict[str, float]:
    """Median time of each model's run; every round runs all of them in turn.

    ``threads`` 0 is one for each core.
    """
    sessions = {name: session_of(model, threads) for name, model in models.items()}
    seconds: dict[str, list[float]] = {name: [] for name in sessions}
    for _ in range(ROUNDS):
        for name, session in sessions.items():
            begun = time.perf_counter()
            session.run(None, feeds)
            seconds[name].append(time.perf_counter() - begun)
    return {name: statistics.median(values) for name, values in seconds.items()}
