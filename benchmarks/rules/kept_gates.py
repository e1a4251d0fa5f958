"""Steps of LSTM models with saved gates, compared with steps that recompute them.

    python benchmarks/rules/kept_gates.py [--batch 32] [--rounds 25]

A step built for the CPU unrolls its LSTMs and saves their gates; a portable step has the operator
LSTM. Both run in turn. Prints medians of CPU time on one thread. Run it from the repository's root.
"""

from __future__ import annotations

import argparse
import statistics
import time
from pathlib import Path

import numpy as np
import onnxruntime
from interleaved import session_of
from numpy.typing import NDArray

from onnxstep import StepOptions, training_step
from onnxstep.graphs.loading import load_model

LOSSES = {
    "lstm_text_generation": "softmax_cross_entropy",
    "imdb_bidirectional_lstm": "sigmoid_cross_entropy",
}


def sessions(name: str, batch: int) -> list[onnxruntime.InferenceSession]:
    """Sessions of the step that saves gates, and of the step that recomputes them."""
    model = load_model(Path("models") / f"{name}.onnx")
    steps = [
        training_step(
            model,
            StepOptions(loss=LOSSES[name], dimensions={"batch": batch}, seed=1, provider=provider),
        )
        for provider in ("cpu", None)
    ]
    return [session_of(step.model, threads=1) for step in steps]


def drawn(session: onnxruntime.InferenceSession) -> dict[str, NDArray[np.generic]]:
    """Small numbers and small indices for every input."""
    rng = np.random.default_rng(0)
    return {
        info.name: np.asarray(rng.normal(scale=0.1, size=info.shape), np.float32)
        if info.type == "tensor(float)"
        else rng.integers(0, 2, info.shape)
        for info in session.get_inputs()
    }


def main() -> None:
    """Print a line for each model."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--rounds", type=int, default=25)
    options = parser.parse_args()
    for name in LOSSES:
        pair = sessions(name, options.batch)
        feeds = drawn(pair[0])
        seconds: list[list[float]] = [[], []]
        for _ in range(options.rounds):
            for session, times in zip(pair, seconds, strict=True):
                begun = time.process_time()
                session.run(None, feeds)
                times.append(time.process_time() - begun)
        saved, again = (statistics.median(times) * 1e3 for times in seconds)
        print(f"{name:24} kept {saved:7.2f} ms, again {again:7.2f} ms  {saved / again:.2f}")


if __name__ == "__main__":
    main()
