"""Lets engines take turns, each in a process of its own, one prompt and its answer a turn.

In processes of their own the idle threads of one engine do not spin while another is timed.
"""

from __future__ import annotations

import contextlib
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np

# Seconds by engine and phase, one figure a round: the median of its steps.
Rounds = Mapping[str, Mapping[str, Sequence[float]]]
_BENCHMARKS = Path(__file__).parents[1]
# An engine's threads go on spinning for a moment after its turn; the next one waits that out.
_PAUSE_SECONDS = 0.25
# Rounding of float32 leaves logits about 1e-6 apart in norm, eight bits of activations 1e-2.
_MOST_APART = {"fp32": 1e-4, "int4": 3e-2}


class Process:
    """An engine's process, ready when it is made."""

    def __init__(self, engine: str, folder: Path) -> None:
        self.engine = engine
        path = [str(_BENCHMARKS), *filter(None, [os.environ.get("PYTHONPATH")])]
        self._process = subprocess.Popen(
            [sys.executable, "-m", "generators.worker", engine, folder],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(path)},
        )
        self._line()

    def answer(self) -> dict[str, float]:
        """Seconds of a step, by phase."""
        assert self._process.stdin is not None
        time.sleep(_PAUSE_SECONDS)
        self._process.stdin.write("\n")
        self._process.stdin.flush()
        return {phase: statistics.median(all_) for phase, all_ in json.loads(self._line()).items()}

    def _line(self) -> str:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            sys.exit(f"{self.engine}: ended early, exit {self._process.wait()}")
        return line

    def close(self) -> None:
        """End it."""
        self._process.kill()
        self._process.communicate()


def compared_and_timed(engines: Sequence[str], folder: Path, count: int) -> Rounds:
    """``count`` rounds of the engines of which ``ours`` is one, without those that differ from it.

    Exits where an engine fails.
    """
    with contextlib.ExitStack() as running:
        processes = []
        for engine in engines:
            processes.append(running.enter_context(contextlib.closing(Process(engine, folder))))
        alike = set(_alike(engines, folder))
        processes = [process for process in processes if process.engine in alike]
        found: dict[str, dict[str, list[float]]] = {p.engine: {} for p in processes}
        # The first round is a warm-up.
        for index in range(count + 1):
            for process in processes if index % 2 else reversed(processes):
                for phase, seconds in process.answer().items():
                    found[process.engine].setdefault(phase, []).append(seconds)
        return {
            engine: {phase: all_[1:] for phase, all_ in phases.items()}
            for engine, phases in found.items()
        }


def _alike(engines: Sequence[str], folder: Path) -> Iterator[str]:
    """The engines that compute what ours does; says how far each is from it."""
    precision = json.loads((folder / "case.json").read_text("utf-8"))["precision"]
    mine = np.load(folder / "ours.npy")
    for engine in engines:
        theirs = np.load(folder / f"{engine}.npy")
        apart = float(np.linalg.norm(theirs - mine) / np.linalg.norm(mine))
        same = float(np.mean(theirs.argmax(axis=-1) == mine.argmax(axis=-1)))
        if engine != "ours":
            said = f"{engine}: logits {apart:.1e} from ours, {same:.0%} of tokens the same"
            print(said, file=sys.stderr)
        if apart <= _MOST_APART[precision]:
            yield engine
        else:
            print(f"{engine}: not timed", file=sys.stderr)
