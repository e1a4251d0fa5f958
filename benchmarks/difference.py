"""How long `epochcost diff` takes among many results.

    python benchmarks/difference.py [--results 1000]

Makes a repository with the project's specs and models and so many made results (as
benchmarks/store.py makes them), commits it, and compares the commit with the working tree: as it
is; with another price of the machine that has most results; with the epochs of every model doubled;
with every result measured again; with another dirtiest grid, which all energies follow. Seconds are
of the wall and of the CPU (git's too), from the start of the program to its end, the best of three.
"""

from __future__ import annotations

import argparse
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import store

ROOT = Path(__file__).parents[1]
_ROUNDS = 3
_PROGRAM = (sys.executable, "-c", "from epochcost.cli.app import main; main()")


def repository(folder: Path, results: int) -> None:
    """Specs, models and results, committed."""
    for name in ("specs", "models"):
        shutil.copytree(ROOT / name, folder / name)
    (folder / "docs/data/results").mkdir(parents=True)
    store.write(folder / "docs/data/results", results)
    git(folder, "init", "--quiet")
    git(folder, "add", "--all")
    git(folder, "-c", "user.name=x", "-c", "user.email=x@example.org", "commit", "-qm", "x")


def git(folder: Path, *arguments: str) -> None:
    """Run git there."""
    subprocess.run(["git", *arguments], cwd=folder, check=True)


def another_price(folder: Path) -> None:
    """A tenth more for the machine with most results."""
    results = folder / "docs/data/results"
    machine = max(results.iterdir(), key=lambda one: len(list(one.iterdir()))).name
    for path in (folder / "specs/prices").rglob("*.toml"):
        text = path.read_text(encoding="utf-8")
        if f'hardware = "{machine}"' in text:
            path.write_text(re.sub(r"(?m)^(amount|purchase) = (\d)", r"\1 = 1\2", text), "utf-8")


def longer_trainings(folder: Path) -> None:
    """Twice the epochs, for all models."""
    for path in (folder / "specs/models").rglob("*.toml"):
        text = path.read_text(encoding="utf-8")
        path.write_text(re.sub(r"(?m)^epochs = (\d+)$", r"epochs = 2\1", text), "utf-8")


def measured_again(folder: Path) -> None:
    """Every step a tenth of a second longer."""
    for path in (folder / "docs/data/results").glob("*/*.json"):
        text = path.read_text(encoding="utf-8")
        path.write_text(re.sub(r'("samples_seconds": \[)\d+\.', r"\g<1>1.", text), "utf-8")


def another_grid(folder: Path) -> None:
    """One that emits more than any."""
    path = next((folder / "specs/grids").glob("*.toml"))
    text = path.read_text(encoding="utf-8")
    path.write_text(re.sub(r"(?m)^(kg_co2e_per_kwh) = .*$", r"\1 = 2.5", text), "utf-8")


def seconds(folder: Path) -> tuple[float, float, str]:
    """The best of three by the wall and by the CPU, and the first line of what is said."""
    wall, cpu, line = float("inf"), float("inf"), ""
    for _ in range(_ROUNDS):
        begun, before = time.perf_counter(), _used()
        command = [*_PROGRAM, "diff", "HEAD"]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True)
        wall, cpu = min(wall, time.perf_counter() - begun), min(cpu, _used() - before)
        line = done.stdout.partition("\n")[0].partition(": ")[2]
    return wall, cpu, line or "nothing"


def _used() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def main() -> None:
    """Each change by itself."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--results", type=int, default=1000)
    options = parser.parse_args()
    changes: tuple[Callable[[Path], None], ...] = (
        lambda _: None,
        another_price,
        longer_trainings,
        measured_again,
        another_grid,
    )
    names = ("nothing", "a price", "all epochs", "all results", "a grid")
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        repository(folder, options.results)
        for name, change in zip(names, changes, strict=True):
            change(folder)
            wall, cpu, said = seconds(folder)
            print(f"{name:12} wall {wall:6.2f} s, CPU {cpu:6.2f} s  {said}", flush=True)
            git(folder, "checkout", "--quiet", ".")


if __name__ == "__main__":
    main()
