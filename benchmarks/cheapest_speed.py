"""CPU time and peak memory of `epochcost cheapest`, with an empty and with a filled cache.

    python benchmarks/cheapest_speed.py [--model resnet50 …] [--rounds 5] [--against CHECKOUT]

Run it in the project's folder. Prints medians of interleaved rounds: user and system time of the
process with its children, and the peak resident memory of the process. ``--against`` measures
another checkout of this project too.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
from collections import defaultdict
from pathlib import Path

_ROW = "{:<24} {:<8} {:>8} {:>8}"
_MIB_PER_UNIT = 2**-20 if sys.platform == "darwin" else 2**-10


def measure(checkout: Path, model: str, cache: Path) -> tuple[float, float]:
    """CPU seconds and peak MiB of `epochcost cheapest` for one model."""
    code = f"{checkout}/runner{os.pathsep}{checkout}/runner/onnxstep"
    places = {"PYTHONPATH": code, "XDG_CACHE_HOME": str(cache)}
    command = [sys.executable, "-m", "epochcost", "cheapest", "--model", model]
    process = subprocess.Popen(
        command, cwd=checkout, env=os.environ | places, stdout=subprocess.DEVNULL
    )
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{model}: ended with {process.returncode}")
    return used.ru_utime + used.ru_stime, used.ru_maxrss * _MIB_PER_UNIT


def main() -> None:
    """Measure and print a row for each model, checkout and state of the cache."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", nargs="+", default=["resnet50"])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--against", type=Path)
    options = parser.parse_args()
    checkouts = [Path.cwd(), *([options.against.resolve()] if options.against else [])]
    costs: defaultdict[tuple[str, str], list[tuple[float, float]]] = defaultdict(list)
    for _ in range(options.rounds):
        for checkout in checkouts:
            for model in options.model:
                with tempfile.TemporaryDirectory() as cache:
                    for state in ("cold", "warm"):
                        name = model if checkout == checkouts[0] else f"{model}, other"
                        costs[name, state].append(measure(checkout, model, Path(cache)))
    print(_ROW.format("model", "cache", "CPU s", "MiB"))
    for (name, state), runs in costs.items():
        seconds, mebibytes = (statistics.median(column) for column in zip(*runs, strict=True))
        print(_ROW.format(name, state, f"{seconds:.2f}", f"{mebibytes:.0f}"))


if __name__ == "__main__":
    main()
