"""Contenders in turn, each in a separate process; a round is one short burst of steps each.

Separate processes keep the idle threads of one runtime from spinning while another is timed. A
ratio is computed round by round, so that the machine's other load affects both sides.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from line_process import LineProcess, with_benchmarks

from steps.cases import OURS

# Limits of the time until a contender has taken its first steps, and of the time of a burst.
_START_SECONDS, _BURST_SECONDS = 400.0, 600.0
# The next contender waits until the threads of the previous one stop spinning.
_PAUSE_SECONDS = 0.25
_LEAST_ROUNDS, _MOST_ROUNDS = 5, 15
_MOST_CHARACTERS = 300


class StoppedError(Exception):
    """A contender was not ready in time or ended too early; the message has the reason."""

    def __init__(self, contender: str, reason: str) -> None:
        super().__init__(reason)
        self.contender = contender


@dataclass(frozen=True)
class Timed:
    """Seconds of a step by contender, one number for each round.

    ``start_seconds`` include compiling and the first step. ``peak_bytes`` is the peak memory
    without libraries, weights and data. ``versions`` name the program, if it says so.
    """

    seconds: Mapping[str, Sequence[float]]
    start_seconds: Mapping[str, float]
    peak_bytes: Mapping[str, int]
    versions: Mapping[str, str | None]


class Process(LineProcess):
    """A contender's process."""

    def __init__(
        self, python: Path, contender: str, folder: Path, threads: int, *options: str
    ) -> None:
        self._log = folder / f"{contender}-{threads}.log"
        command: list[str | Path] = [python, "-m", "steps.worker", contender, folder]
        command += [str(threads), *options]
        with self._log.open("w", encoding="utf-8") as log:
            super().__init__(contender, command, stderr=log, env=_environment(folder))

    def answer(self, most_seconds: float = _START_SECONDS) -> dict[str, Any]:
        """The process's next answer; raises StoppedError if no answer comes in time."""
        late = threading.Timer(most_seconds, self._process.kill)
        late.start()
        line = self.receive()
        in_time = late.is_alive()
        late.cancel()
        if not line:
            late_text = f"not ready after {most_seconds:.0f} s"
            raise StoppedError(self.name, self._last_error_line() if in_time else late_text)
        answer: dict[str, Any] = json.loads(line)
        return answer

    def burst(self) -> float:
        """Seconds of a step, measured in one burst."""
        time.sleep(_PAUSE_SECONDS)
        self.send()
        return float(self.answer(_BURST_SECONDS)["seconds"])

    def _last_error_line(self) -> str:
        lines = [line for line in self._log.read_text("utf-8").splitlines() if line.strip()]
        self._process.wait()
        reason = lines[-1].strip() if lines else "nothing was said"
        return f"{reason[-_MOST_CHARACTERS:]} (exit {self._process.returncode})"


def _environment(folder: Path) -> dict[str, str]:
    """Environment variables with caches of compiled code next to the case, for a fast restart."""
    cache = folder.parent / "compiled"
    return {
        **with_benchmarks(),
        "TORCHINDUCTOR_CACHE_DIR": str(cache / "torch"),
        "JAX_COMPILATION_CACHE_DIR": str(cache / "jax"),
    }


def take_turns(
    pythons: Mapping[str, Path], folder: Path, threads: int, most_seconds: float
) -> tuple[Timed | None, dict[str, str]]:
    """Time the contenders of ``pythons`` together; also returns why some did not start.

    ``most_seconds`` limits the bursts of one contender (0: no timing).
    """
    running, ready, failed = _started(pythons, folder, threads)
    try:
        if len(running) < 2 or OURS in failed or not most_seconds:
            return None, failed
        seconds = _rounds(running, most_seconds)
    except StoppedError as error:
        return None, {**failed, error.contender: str(error)}
    finally:
        for process in running:
            process.close()
    timed = Timed(
        seconds,
        {name: answer["start_seconds"] for name, answer in ready.items()},
        {name: answer["peak_bytes"] for name, answer in ready.items()},
        {name: answer["version"] for name, answer in ready.items()},
    )
    return timed, failed


def first_answer(
    python: Path, contender: str, folder: Path, threads: int, *options: str
) -> dict[str, Any]:
    """The first answer of a contender's process, as ``steps.worker`` describes it.

    Raises StoppedError if the process does not start or ends too early.
    """
    with closing(Process(python, contender, folder, threads, *options)) as process:
        return process.answer()


def _started(
    pythons: Mapping[str, Path], folder: Path, threads: int
) -> tuple[list[Process], dict[str, dict[str, Any]], dict[str, str]]:
    """Start processes one after the other: simultaneous starts would disturb each other."""
    running: list[Process] = []
    ready: dict[str, dict[str, Any]] = {}
    failed: dict[str, str] = {}
    for name, python in pythons.items():
        process = Process(python, name, folder, threads)
        try:
            ready[name] = process.answer()
            running.append(process)
        except StoppedError as error:
            failed[name] = str(error)
            process.close()
    return running, ready, failed


def _rounds(running: Sequence[Process], most_seconds: float) -> dict[str, list[float]]:
    """The number of rounds for which the slowest contender has time, between the limits."""
    seconds: dict[str, list[float]] = {process.name: [] for process in running}
    spent = dict.fromkeys(seconds, 0.0)
    for index in range(_MOST_ROUNDS):
        if index >= _LEAST_ROUNDS and max(spent.values()) > most_seconds:
            break
        for process in running if index % 2 == 0 else reversed(running):
            begun = time.perf_counter()
            seconds[process.name].append(process.burst())
            spent[process.name] += time.perf_counter() - begun
    return seconds
