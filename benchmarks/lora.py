"""LoRA and full steps of SmolLM2 135M compared with PyTorch's, and QLoRA's memory.

    python benchmarks/lora.py [--tokens 64] [--threads 1] [--steps 20] [--rounds 10]

Run it with the project's environment from the repository's root. PyTorch runs in the same
interpreter, or in one that EPOCHCOST_STEPS_TORCH names, which needs epochcost too. Both sides start
from the same drawn weights and the adapters of ``with_adapters`` (rank 8, alpha 16, every product
of the layers), and train by AdamW on the same random tokens. First the losses are compared; then
the two sides alternate in bursts of three steps. Peaks are the memory of a process during its
steps, weights included. QLoRA's weights are codes of MatMulNBits; QLoRA is compared with the same
step on dequantised weights.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from line_process import LineProcess
from lora_work import ALPHA, DECAY, RANK, RATE, TARGETS, decoder, texts
from steps.worker import forget_peak, resident_bytes

from onnxstep import ADAPTERS, with_adapters
from onnxstep.graphs.parameters import materialise

ROOT = Path(__file__).parents[1]
TURN = 3


class Ours:
    """The training step of epochcost, bound as in a trial and updated in place."""

    def __init__(self, method: str, tokens: int, threads: int) -> None:
        from epochcost.execute.step import carried_values
        from epochcost.graphs.weight_bits import draw_codes, in_few_bits
        from epochcost.measure.session import open_session
        from epochcost.measure.stepping import StepInputs, Stepper
        from epochcost.plan.trial import SessionSettings
        from onnxstep import Adam, StepOptions, first_values, training_step

        graph, values = decoder(method), dict[str, Any]()
        if method in ("qlora", "dequantised"):
            coded = in_few_bits(_head_apart(decoder("full")), integer_activations=False)
            codes = draw_codes(coded)
            coded = with_adapters(coded, RANK, ALPHA, TARGETS)
            values = materialise(coded)
            if method == "dequantised":
                values = {name.replace(".codes", ""): v for name, v in values.items()}
            else:
                graph = coded
            values |= codes if method == "qlora" else _opened(codes)
        sizes = {"batch_size": 1, "sequence_length": tokens, "past_sequence_length": 0}
        options = StepOptions(
            output="logits",
            optimizer=Adam(decoupled=True, weight_decay=DECAY),
            dimensions={**sizes, "total_sequence_length": tokens},
            wrt=() if method == "full" else ADAPTERS,
            provider="cpu",
        )
        step = training_step(graph, options)
        values = first_values(step, graph) | values
        values[step.learning_rate] = np.array(RATE, np.float32)
        values["attention_mask"] = np.ones((1, tokens), np.int64)
        pool = texts(tokens)
        batches = {"input_ids": pool[..., :-1], "target": pool[..., 1:]}
        settings = SessionSettings(threads=threads)
        session = open_session(step.model.SerializeToString(), "cpu", settings)
        names = {entry.name for entry in session.get_inputs()} - batches.keys()
        constants = {name: values[name] for name in names}
        carried = carried_values(step, "cpu")
        inputs = StepInputs(batches, constants)
        self._loss, self._parameters = step.loss, step.parameters
        self._stepper = Stepper(session, "cpu", "training", inputs, carried, settings)

    def __call__(self) -> float:
        """Take a step and return its loss."""
        self._stepper()
        return float(self._stepper.output(self._loss))

    def trained(self) -> dict[str, np.ndarray]:
        """The current parameters."""
        carried = self._stepper.carried_values()
        return {name: carried[name] for name in self._parameters}


def _head_apart(graph: onnx.ModelProto) -> onnx.ModelProto:
    """The graph with a head that reads a copy of the embeddings, and so stays fp32."""
    nodes = [*graph.graph.node]
    for node in nodes:
        if node.op_type == "Transpose" and node.input[0] == "embed.weight":
            node.input[0] = "head.copy"
    del graph.graph.node[:]
    graph.graph.node.append(onnx.helper.make_node("Identity", ["embed.weight"], ["head.copy"]))
    graph.graph.node.extend(nodes)
    return graph


def _opened(codes: dict[str, Any]) -> dict[str, np.ndarray]:
    opened = {}
    for name in (name.removesuffix(".codes") for name in codes if name.endswith(".codes")):
        packed, scales = codes[f"{name}.codes"], codes[f"{name}.scales"]
        digits = np.stack([packed & 15, packed >> 4], axis=-1).reshape(*scales.shape, -1)
        rows = ((digits.astype(np.float32) - 8) * scales[..., None]).reshape(len(scales), -1)
        opened[name] = rows.T.copy()
    return opened


def work(side: str, method: str, tokens: int, threads: int) -> None:
    """Take the steps that standard input asks for, and answer each with a line."""
    if side == "torch":
        from lora_pytorch import PyTorch as Side
    else:
        Side = Ours  # noqa: N806 - a class
    take = Side(method, tokens, threads)
    take()
    gc.collect()
    forget_peak()
    print(json.dumps("ready"), flush=True)
    for line in sys.stdin:
        if line.startswith("save"):
            np.savez(line.split()[1], **take.trained())
            print(json.dumps("saved"), flush=True)
            continue
        begun = time.perf_counter()
        loss = take()
        seconds = time.perf_counter() - begun
        print(json.dumps([loss, seconds, resident_bytes("VmHWM")]), flush=True)


class Worker(LineProcess):
    """A process that takes steps on request."""

    def __init__(self, python: Path, side: str, method: str, tokens: int, threads: int) -> None:
        command = [python, Path(__file__), "--work", side, method]
        command += ["--tokens", str(tokens), "--threads", str(threads)]
        super().__init__(side, command)
        self.peak = 0
        self.answer()

    def step(self) -> tuple[float, float]:
        """Take a step; returns its loss and its seconds."""
        self.send("step")
        loss, seconds, self.peak = self.answer()
        return loss, seconds

    def trained(self, path: Path) -> dict[str, np.ndarray]:
        """The current parameters, which the process writes to a file."""
        self.send(f"save {path}")
        self.answer()
        return dict(np.load(path))


def compare(pair: tuple[Worker, Worker], steps: int, rounds: int) -> Iterator[float]:
    """Yield the largest relative difference of losses, then the median seconds of each side."""
    losses = [[worker.step()[0] for _ in range(steps)] for worker in pair]
    ours, theirs = map(np.array, losses)
    yield float(np.max(abs(ours - theirs) / theirs))  # NaN if any loss is NaN
    seconds: list[list[float]] = [[], []]
    for _ in range(rounds):
        for worker, times in zip(pair, seconds, strict=True):
            times += [worker.step()[1] for _ in range(TURN)]
    yield from map(statistics.median, seconds)


def main() -> None:
    """Print a row for each method."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tokens", type=int, default=64)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--work", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.work:
        work(*options.work, options.tokens, options.threads)
        return
    ours = Path(sys.executable)
    torch = Path(os.environ.get("EPOCHCOST_STEPS_TORCH", ours))
    rest = options.tokens, options.threads
    print("| step | ours | beside it | ratio | ours, peak | beside it, peak | loss apart |")
    print("|---|--:|--:|--:|--:|--:|--:|")
    for method, python, side, reference in (
        ("lora", torch, "torch", "lora"),
        ("full", torch, "torch", "full"),
        ("qlora", ours, "ours", "dequantised"),
    ):
        pair = Worker(ours, "ours", method, *rest), Worker(python, side, reference, *rest)
        difference, first, second = compare(pair, options.steps, options.rounds)
        peaks = [f"{worker.peak / 1e6:,.0f} MB" for worker in pair]
        row = [
            method,
            f"{first:.3f} s",
            f"{second:.3f} s ({side} {reference})",
            f"{first / second:.2f}",
        ]
        print("|", " | ".join([*row, *peaks, f"{difference:.1e}"]), "|", flush=True)
        if side == "ours":
            with tempfile.TemporaryDirectory() as folder:
                a, b = (w.trained(Path(folder) / f"{i}.npz") for i, w in enumerate(pair))
            pairs = [(value, b[name.replace(".codes", "")]) for name, value in a.items()]
            far = np.max([abs(x - y).max() / abs(y).max() for x, y in pairs])
            print(f"adapters after all steps differ by at most {far:.1e} of their largest number")
        for worker in pair:
            worker.close()


if __name__ == "__main__":
    main()
