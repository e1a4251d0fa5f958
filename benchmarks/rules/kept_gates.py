"""Steps of models with LSTM layers that keep the gates, over steps that compute them again.

    python benchmarks/rules/kept_gates.py [--batch 32] [--rounds 25]

Built for the CPU a step writes its LSTMs out over time and keeps their gates; built for any
provider it has the operator. Printed are medians of CPU time on one thread, in turns. Run it from
the repository's root.
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
    """The step that keeps, and the one that computes again."""
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
    given = parser.parse_args()
    for name in LOSSES:
        pair = sessions(name, given.batch)
        feeds = drawn(pair[0])
        seconds: list[list[float]] = [[], []]
        for _ in range(given.rounds):
            for session, taken in zip(pair, seconds, strict=True):
                begun = time.process_time()
                session.run(None, feeds)
                taken.append(time.process_time() - begun)
        kept, again = (statistics.median(taken) * 1e3 for taken in seconds)
        print(f"{name:24} kept {kept:7.2f} ms, again {again:7.2f} ms  {kept / again:.2f}")


if __name__ == "__main__":
    main()
