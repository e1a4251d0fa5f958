# /// script
# requires-python = ">=3.11"
# dependencies = ["epochcost[run]", "torch==2.13.0"]
# ///
"""Gradients of LSTM, GRU and RNN against PyTorch's: least CPU time of many runs.

    python benchmarks/rules/recurrent.py

One forward and one backward pass with all gradients. CPU time on one thread is comparable on a busy
machine, but excludes the gain of several threads.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
import onnxruntime
import torch
from onnx import parser

from onnxstep import vjp_graph

GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}
# Steps, sequences, inputs, hidden units.
SIZES = [(28, 32, 28, 128), (28, 128, 28, 128), (100, 32, 128, 256), (50, 16, 64, 64)]
ROUNDS = 25


def ours(op_type: str, size: tuple[int, int, int, int]) -> Callable[[], object]:
    """A function that runs epochcost's gradient graph of one layer once."""
    steps, batch, width, hidden = size
    rows = GATES[op_type] * hidden
    form = ", linear_before_reset = 1" if op_type == "GRU" else ""  # as PyTorch resets
    model = parser.parse_model(
        f'<ir_version: 10, opset_import: ["" : 18]> g (float[{steps},{batch},{width}] x, '
        f"float[1,{rows},{width}] w, float[1,{rows},{hidden}] r, float[1,{2 * rows}] b) "
        f"=> (float[{steps},1,{batch},{hidden}] y) "
        f"{{ y = {op_type} <hidden_size = {hidden}{form}> (x, w, r, b) }}"
    )
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(
        vjp_graph(model, ["x", "w", "r", "b"]).SerializeToString(), options
    )
    rng = np.random.default_rng(0)
    feeds = {
        entry.name: rng.normal(scale=0.1, size=entry.shape).astype(np.float32)
        for entry in session.get_inputs()
    }
    return lambda: session.run(None, feeds)


def theirs(op_type: str, size: tuple[int, int, int, int]) -> Callable[[], object]:
    """A function that runs PyTorch's layer forward and backward once."""
    steps, batch, width, hidden = size
    layer = getattr(torch.nn, op_type)(width, hidden)
    x = torch.randn(steps, batch, width, requires_grad=True)
    dy = torch.randn(steps, batch, hidden)

    def run() -> None:
        layer.zero_grad()
        x.grad = None
        layer(x)[0].backward(dy)

    return run


def seconds(run: Callable[[], object]) -> float:
    """The CPU time of one run."""
    start = time.process_time()
    run()
    return time.process_time() - start


def main() -> None:
    """Print a line for each layer and size."""
    torch.set_num_threads(1)
    for op_type in GATES:
        for size in SIZES:
            runs = ours(op_type, size), theirs(op_type, size)
            least = [min(seconds(run) for _ in range(ROUNDS)) * 1e3 for run in runs]
            ratio = least[0] / least[1]
            print(f"{op_type:4} {size!s:20} {least[0]:7.2f} {least[1]:7.2f} ms  {ratio:.2f}")


if __name__ == "__main__":
    main()
