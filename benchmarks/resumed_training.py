"""Check that killed trainings keep their weights, and long trainings do not use more memory.

A convnet is trained on digits through the command line. The process gets SIGKILL at a random moment
and is started again, until it was killed --kills times and has ended. The weights are compared with
the weights of an uninterrupted training. Then 10,000 steps of a perceptron run in this process, and
the resident memory is read after each thousand steps.

    python benchmarks/resumed_training.py [--kills 20]
"""

from __future__ import annotations

import argparse
import hashlib
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import psutil

from epochcost.execute.training import TrainingRequest, prepare, run_repeat
from epochcost.plan.trial import SessionSettings
from epochcost.specs.loader import load_catalogue
from epochcost.train.loop import Recipe
from epochcost.train.state import Progress

ROOT = Path(__file__).parents[1]
STEPS = 10_000


def command(folder: Path, *more: str) -> list[str]:
    """The command of the training that is killed, which saves its state every 0.02 s."""
    destination = (
        "--to",
        str(folder / "to"),
        "--results",
        str(folder / "results"),
        "--threads",
        "1",
    )
    trained = ("train", "--model", "digits-cnn", "--epochs", "20", "--save-seconds", "0.02")
    return [sys.executable, "-m", "epochcost", *trained, *destination, *more]


def weights(folder: Path) -> str:
    """SHA-256 of the exported model in ``folder``."""
    (path,) = folder.glob("to/*/seed-0/model.onnx")
    return hashlib.sha256(path.read_bytes()).hexdigest()


def killed(folder: Path, kills: int, longest_seconds: float) -> int:
    """Kill a training at random moments; returns the number of kills before the training ended."""
    rng, count = random.Random(0), 0
    while count < kills:
        with subprocess.Popen(
            command(folder), cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        ) as process:
            assert process.stderr is not None
            process.stderr.readline()
            time.sleep(rng.uniform(0, longest_seconds))
            process.send_signal(signal.SIGKILL)
        if process.returncode != -signal.SIGKILL:
            return count
        count += 1
    subprocess.run(command(folder), cwd=ROOT, check=True, capture_output=True)
    return count


def memory(folder: Path) -> list[float]:
    """Resident MiB of this process after each thousand steps."""
    catalogue = load_catalogue(ROOT)
    model = catalogue.model("digits-mlp")
    training = model.training
    assert training is not None
    recipe = Recipe(training.schedule, training.optimizer.learning_rate, 1000, 0)
    digits = catalogue.datasets["digits"]
    settings = SessionSettings(threads=1)
    request = TrainingRequest(model, training, digits, 32, "cpu", settings, 100, 0.2)
    process, readings = psutil.Process(), list[float]()

    def record(_progress: Progress, step: int, _loss: float) -> None:
        if step % 1000 == 0:
            readings.append(process.memory_info().rss / 2**20)

    prepared = prepare(request, recipe, catalogue, folder)
    run_repeat(prepared, 0, folder, record, lambda: len(readings) == STEPS // 1000)
    return readings


def main() -> None:
    """Print the number of kills, whether weights agree, and the memory."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=20)
    kills = parser.parse_args().kills
    with tempfile.TemporaryDirectory() as scratch:
        whole, parts = Path(scratch, "whole"), Path(scratch, "parts")
        begun = time.monotonic()
        subprocess.run(command(whole), cwd=ROOT, check=True, capture_output=True)
        took = time.monotonic() - begun
        count = killed(parts, kills, took / kills / 2)
        same = "the same" if weights(whole) == weights(parts) else "OTHER"
        print(f"killed {count} times, {same} weights as an uninterrupted training")
        readings = memory(Path(scratch, "memory"))
    print("resident MiB after each thousand steps:", ", ".join(f"{each:.1f}" for each in readings))


if __name__ == "__main__":
    main()
