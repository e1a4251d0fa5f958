"""Steps of LSTM models with saved gates, compared with steps that recompute them.

    python benchmarks/rules/kept_gates.py [--batch 32]

A step built for the CPU unrolls its LSTMs and saves their gates; a portable step has the operator
LSTM. Both run in turn. Prints medians of CPU time on one thread. Run it from the repository's root.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np
import onnx
from interleaved import median_seconds
from numpy.typing import NDArray

from onnxstep import StepOptions, training_step
from onnxstep.builder import Provider
from onnxstep.graphs.loading import load_model

LOSSES = {
    "lstm_text_generation": "softmax_cross_entropy",
    "imdb_bidirectional_lstm": "sigmoid_cross_entropy",
}


def step_of(name: str, batch: int, provider: Provider | None) -> onnx.ModelProto:
    """The graph of a model's step for a provider."""
    model = load_model(Path("models") / f"{name}.onnx")
    options = StepOptions(loss=LOSSES[name], dimensions={"batch": batch}, seed=1, provider=provider)
    return training_step(model, options).model


def drawn(step: onnx.ModelProto) -> dict[str, NDArray[np.generic]]:
    """Small numbers and small indices for every input."""
    rng, feeds = np.random.default_rng(0), dict[str, NDArray[np.generic]]()
    for info in step.graph.input:
        kind = info.type.tensor_type
        shape = [dim.dim_value for dim in kind.shape.dim]
        if kind.elem_type == onnx.TensorProto.FLOAT:
            feeds[info.name] = np.asarray(rng.normal(scale=0.1, size=shape), np.float32)
        else:
            feeds[info.name] = rng.integers(0, 2, shape)
    return feeds


def main() -> None:
    """Print a line for each model."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--batch", type=int, default=32)
    batch = parser.parse_args().batch
    for name in LOSSES:
        steps = {"kept": step_of(name, batch, "cpu"), "again": step_of(name, batch, None)}
        seconds = median_seconds(steps, drawn(steps["kept"]), threads=1, clock=time.process_time)
        saved, again = (seconds[form] * 1e3 for form in ("kept", "again"))
        print(f"{name:24} kept {saved:7.2f} ms, again {again:7.2f} ms  {saved / again:.2f}")


if __name__ == "__main__":
    main()
