"""Time from the start of a process to its first answer, with and without the disk cache.

    python benchmarks/cold_start.py [--model mnist-cnn …] [--rounds 5]

A server that is scaled to zero spends this time on its first request: the interpreter, ONNX
Runtime, the model's file with its weights, the optimised session, one run at a batch of 1. Before a
cold start, posix_fadvise drops the cached pages of the model and of the packages. posix_fadvise
cannot drop pages that a process has mapped, so this program imports neither ONNX Runtime nor NumPy.
Prints medians of interleaved rounds.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

_MODELS = ("mnist-cnn", "mobilenet-v3-large", "resnet50", "minilm-l6", "bert-base", "gpt2")
_ROW = "{:<20} {:>9} {:>9} {:>9} {:>9} {:>12}"
_PACKAGES = ("onnxruntime", "numpy")


def make(name: str, folder: Path) -> None:
    """Write a model's graph for serving with drawn weights, and one batch of inputs."""
    import numpy as np
    import onnx

    from epochcost.cli.bundled import own_catalogue
    from epochcost.execute.build import build_job
    from epochcost.execute.planning import plan_run
    from epochcost.plan.make import RunRequest
    from epochcost.train.state import with_values
    from onnxstep.graphs.loading import load_model
    from onnxstep.graphs.parameters import materialise

    catalogue = own_catalogue()
    planned = plan_run(catalogue, RunRequest(models=(name,), providers=("cpu",), batch_size=1))
    trial = next(
        trial for trial in planned.trials if trial.mode == "inference" and not trial.variant
    )
    model = catalogue.model(name)
    job = build_job(trial, model, catalogue.graph_path(model), folder, None)
    graph = load_model(job.graph)
    onnx.save(with_values(graph, materialise(graph)), folder / "model.onnx")
    with np.load(job.batches) as pools:
        np.savez(folder / "batch.npz", **{key: pools[key][0] for key in pools.files})
    os.sync()


def start(folder: Path) -> None:
    """Run the steps of a server up to its first answer."""
    import numpy as np
    import onnxruntime as ort

    options = ort.SessionOptions()
    options.log_severity_level = 3  # errors only
    path = folder / "model.onnx"
    session = ort.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    with np.load(folder / "batch.npz") as batch:
        session.run(None, {entry.name: batch[entry.name] for entry in session.get_inputs()})
    print("answered", flush=True)
    os._exit(0)


def forget(folder: Path) -> None:
    """Ask the system to drop the cached pages of the model and of the packages."""
    places = [folder]
    for name in _PACKAGES:
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.origin is not None:
            places.append(Path(spec.origin).parent)
    for path in (path for place in places for path in place.rglob("*") if path.is_file()):
        handle = os.open(path, os.O_RDONLY)
        os.posix_fadvise(handle, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(handle)


def timed_start(folder: Path) -> float:
    """Seconds from the start of a process to the message that it has answered."""
    begun = time.perf_counter()
    command = [sys.executable, __file__, "--start", str(folder)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        answer_line = process.stdout.readline()
        seconds = time.perf_counter() - begun
    if b"answered" not in answer_line:
        raise SystemExit(f"{folder.name}: expected an answer, got {answer_line!r}")
    return seconds


def main() -> int:
    """Print a line for each model."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--model", nargs="+", default=_MODELS)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--make", nargs=2, help=argparse.SUPPRESS)
    parser.add_argument("--start", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.make:
        make(options.make[0], Path(options.make[1]))
        return 0
    if options.start:
        start(Path(options.start))
        return 0
    with tempfile.TemporaryDirectory() as scratch:
        folders = [Path(scratch) / name for name in options.model]
        for folder in folders:
            folder.mkdir()
            subprocess.run(
                [sys.executable, __file__, "--make", folder.name, str(folder)], check=True
            )
        warm: dict[str, list[float]] = {folder.name: [] for folder in folders}
        cold: dict[str, list[float]] = {folder.name: [] for folder in folders}
        for _ in range(options.rounds):
            for folder in folders:
                forget(folder)
                cold[folder.name].append(timed_start(folder))
                warm[folder.name].append(timed_start(folder))
        print(_ROW.format("model", "file MB", "warm s", "cold s", "ratio", "warm spread"))
        for folder in folders:
            size = (folder / "model.onnx").stat().st_size / 1e6
            warm_s, cold_s = (statistics.median(each[folder.name]) for each in (warm, cold))
            spread = max(warm[folder.name]) / min(warm[folder.name]) - 1
            row = (
                f"{size:.1f}",
                f"{warm_s:.2f}",
                f"{cold_s:.2f}",
                f"{cold_s / warm_s:.2f}",
                f"{spread:.0%}",
            )
            print(_ROW.format(folder.name, *row))
    return 0


if __name__ == "__main__":
    sys.exit(main())
