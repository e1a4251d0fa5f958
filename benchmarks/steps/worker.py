"""A contender's process: prints a line when warm, then times a burst for each line it reads.

    python -m steps.worker CONTENDER FOLDER THREADS [--losses COUNT]

Answers are lines of JSON. Prints of libraries go to standard error.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import json
import os
import re
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TextIO

from steps.work import Contender, read_work

_CLASSES = {
    "ours": ("steps.ours", "Ours"),
    "eager": ("steps.pytorch", "PyTorch"),
    "fused": ("steps.pytorch", "Fused"),
    "compile": ("steps.pytorch", "Compiled"),
    "jax": ("steps.jax_step", "Jax"),
    "ort-training": ("steps.ort_training", "OrtTraining"),
}
_INFERENCE_CLASSES = {
    "ours": ("steps.inference", "Ours"),
    "eager": ("steps.inference", "PyTorch"),
    "compile": ("steps.inference", "Compiled"),
    "openvino": ("steps.inference", "OpenVino"),
}
_BURST_SECONDS = 0.4
_WARM_STEPS, _WARM_SECONDS = 10, 4.0


def main() -> None:
    """Serve the steps of one contender."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("contender")
    parser.add_argument("folder", type=Path)
    parser.add_argument("threads", type=int)
    parser.add_argument("--losses", type=int, default=0, help="only the first losses")
    options = parser.parse_args()
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    work = read_work(options.folder)
    classes = _CLASSES if work.mode == "training" else _INFERENCE_CLASSES
    module, name = classes[options.contender]
    contender = getattr(importlib.import_module(module), name)(work, options.threads)
    if options.losses:
        contender.start()
        losses = [_stepped(contender) for _ in range(options.losses)]
        _say(answers, losses=losses, note=getattr(contender, "note", None))
        return
    _serve(contender, answers, queued=work.device != "cpu")


def _serve(contender: Contender, answers: TextIO, *, queued: bool) -> None:
    forget_peak()
    before = resident_bytes("VmRSS")
    begun = time.perf_counter()
    contender.start()
    contender()
    first_seconds = time.perf_counter() - begun
    _warm(contender)
    _say(
        answers,
        start_seconds=round(first_seconds, 3),
        peak_bytes=resident_bytes("VmHWM") - before,
        version=getattr(contender, "version", None),
    )
    for _ in sys.stdin:
        _say(answers, seconds=queued_burst(contender) if queued else burst(contender))


def _stepped(contender: Contender) -> float:
    contender()
    return contender.loss()


def _warm(contender: Contender) -> None:
    """Take at least one step after the first, within the limits of time and number."""
    begun = time.perf_counter()
    for _ in range(_WARM_STEPS):
        contender()
        if time.perf_counter() - begun > _WARM_SECONDS:
            return


def burst(step: Callable[[], None]) -> float:
    """The median seconds of the steps of one burst.

    The first step, with cold caches, is dropped if it is a small part of the burst. A step that
    takes longer than a burst is the whole burst.
    """
    first = _seconds(step)
    if first > _BURST_SECONDS:
        return first
    seconds: list[float] = []
    while sum(seconds) < _BURST_SECONDS or len(seconds) < 3:
        seconds.append(_seconds(step))
    return statistics.median(seconds)


def queued_burst(contender: Contender) -> float:
    """The mean seconds of steps that are queued on a GPU and run one after the other.

    The time of one awaited step determines how many steps fill the burst.
    """

    def finished() -> None:
        contender()
        contender.finish()

    count = max(3, round(_BURST_SECONDS / _seconds(finished)))
    begun = time.perf_counter()
    for _ in range(count):
        contender()
    contender.finish()
    return (time.perf_counter() - begun) / count


def _seconds(step: Callable[[], None]) -> float:
    begun = time.perf_counter()
    step()
    return time.perf_counter() - begun


def _say(answers: TextIO, **fields: Any) -> None:
    print(json.dumps(fields), file=answers, flush=True)


def forget_peak() -> None:
    """Reset the high-water mark of memory (Linux, proc(5): 5 to clear_refs)."""
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5", "ascii")


def resident_bytes(field: str) -> int:
    """The current memory of this process (VmRSS), or its high-water mark (VmHWM)."""
    match = re.search(rf"^{field}:\s+(\d+) kB$", Path("/proc/self/status").read_text(), re.M)
    assert match is not None, f"this system does not tell {field}"
    return int(match[1]) * 1024


if __name__ == "__main__":
    main()
