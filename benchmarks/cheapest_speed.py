"""CPU time and peak memory of `epochcost cheapest`, with an empty and with a filled cache.

    python benchmarks/cheapest_speed.py [--model resnet50 …] [--rounds 5] [--against CHECKOUT]

Run it in the project's folder. Prints medians of interleaved rounds: user and system time of the
process with its children, and the peak resident memory of the process. ``--against`` measures
another checkout of this project too. As after an installation, Python has compiled the modules.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Sequence
from itertools import product
from pathlib import Path

_ROW = "{:<24} {:<8} {:>8} {:>8}"
_MIB_PER_UNIT = 2**-20 if sys.platform == "darwin" else 2**-10


def measure(checkout: Path, model: str, cache: Path, compiled: Path) -> tuple[float, float]:
    """CPU seconds and peak MiB of `epochcost cheapest` for one model.

    ``compiled`` is the folder of Python's compiled modules.
    """
    environment = os.environ | {
        "PYTHONPATH": f"{checkout}/runner{os.pathsep}{checkout}/runner/onnxstep",
        "XDG_CACHE_HOME": str(cache),
        "PYTHONPYCACHEPREFIX": str(compiled),
    }
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    command = [sys.executable, "-m", "epochcost", "cheapest", "--model", model]
    process = subprocess.Popen(command, cwd=checkout, env=environment, stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{model}: ended with {process.returncode}")
    return used.ru_utime + used.ru_stime, used.ru_maxrss * _MIB_PER_UNIT


def _costs(
    checkouts: Sequence[Path], models: Sequence[str], rounds: int, compiled: Path
) -> dict[tuple[str, str], list[tuple[float, float]]]:
    """Costs of each round by (model, state of the cache), after a round that does not count."""
    costs = defaultdict[tuple[str, str], list[tuple[float, float]]](list)
    for number in range(rounds + 1):
        for checkout, model in product(checkouts, models):
            name = model if checkout == checkouts[0] else f"{model}, other"
            with tempfile.TemporaryDirectory() as cache:
                for state in ("cold", "warm"):
                    cost = measure(checkout, model, Path(cache), compiled)
                    if number:
                        costs[name, state].append(cost)
    return costs


def main() -> None:
    """Measure and print a row for each model, checkout and state of the cache."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", nargs="+", default=["resnet50"])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--against", type=Path)
    options = parser.parse_args()
    checkouts = [Path.cwd(), *([options.against.resolve()] if options.against else [])]
    with tempfile.TemporaryDirectory() as compiled:
        costs = _costs(checkouts, options.model, options.rounds, Path(compiled))
    print(_ROW.format("model", "cache", "CPU s", "MiB"))
    for (name, state), runs in costs.items():
        seconds, mebibytes = (statistics.median(column) for column in zip(*runs, strict=True))
        print(_ROW.format(name, state, f"{seconds:.2f}", f"{mebibytes:.0f}"))


if __name__ == "__main__":
    main()
