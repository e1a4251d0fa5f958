"""Build time of the site at several numbers of pages, and whether it is linear.

    python benchmarks/site_build.py [--pages 10 100 500] [--rounds 3]

Each number of pages is a project in a temporary folder: nine in ten pages are machines, the others
models. Every machine has a price and results of one model: seven of nine at two batch sizes, which
gives two charts, and two of nine at one batch size, which gives one chart. The page of a measured
model has four charts. On average that is two charts a page. The repository's hand-written pages,
templates and configuration are added, with the charts of the first page and of the prices.

The first build draws all charts ("cold"); before the second the amount of one price is edited
("changed"). Seconds are wall-clock and CPU time; each build is a separate process. Megabytes are
the peak of the build's processes, with shared memory counted once. Prints medians of several
rounds; caches are removed before each round. The ratio is the time per page over the time per page
of the smallest project: 1 if the time is linear, less if a part does not depend on the pages. The
last columns are the fastest and the slowest cold build, which differ on shared CPUs.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from statistics import median
from threading import Event

from made_trials import made_trial

from epochcost.results.environment import Environment
from epochcost.results.records import FORMAT_VERSION, Measurement, Placement, Result
from epochcost.results.store import ResultStore

ROOT = Path(__file__).parents[1]
_PAGES_OF_A_MODEL = 10
_BATCHES = (32, 128)
_LOOK_SECONDS = 0.1
_ONE_BATCH = (0, 4)
_CELL = "{:>7}"
_HEADS = (
    *("pages", "charts", "cold s", "CPU s", "a page"),
    *("changed", "CPU s", "a page", "MB", "fastest", "slowest"),
)
_ROW = " ".join([_CELL] * len(_HEADS))
_MODEL = """\
id = "{id}"
name = "Model {id}"
task = "classification"
example = "an image"
graph = "mnist_mlp.onnx"
source = "a benchmark"

[[inputs]]
name = "image"

[training]
loss = "softmax_cross_entropy"
output = "logits"
target = {{ classes = 10 }}
optimizer = {{ name = "sgd", learning_rate = 0.1 }}
batch_sizes = [32, 128]
examples_per_epoch = 60000
epochs = 10
"""
_MACHINE = """\
id = "{id}"
name = "Machine {id}"
provider = "Cloud"
vcpus = 4
memory_gib = 16
cpu = "Some CPU"
source = "a benchmark"
"""
_PRICE = """\
id = "{id}-2026"
hardware = "{id}"
plan = "on-demand"
provider = "Cloud"
region = "east"
amount = {amount}
source = "a benchmark"
as_of = 2026-07-01
"""


def written(folder: Path, pages: int) -> Path:
    """Write a project with this many pages of machines and models."""
    models = [f"m{at:04}" for at in range(max(2, pages // _PAGES_OF_A_MODEL))]
    machines = [f"h{at:04}" for at in range(pages - len(models))]
    texts = {f"models/{model}.toml": _MODEL.format(id=model) for model in models}
    for at, machine in enumerate(machines):
        texts[f"hardware/{machine}.toml"] = _MACHINE.format(id=machine)
        texts[f"prices/{machine}.toml"] = _PRICE.format(
            id=machine, amount=Decimal(50 + at % 97) / 100
        )
    for name, text in texts.items():
        path = folder / "specs" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    for name in ("models", "site_templates"):
        shutil.copytree(ROOT / name, folder / name)
    ignored = shutil.ignore_patterns("results", "*.json")
    shutil.copytree(ROOT / "docs", folder / "docs", ignore=ignored)
    shutil.copyfile(ROOT / "mkdocs.yml", folder / "mkdocs.yml")
    store = ResultStore(folder / "docs/data/results")
    for result in _results(machines, models):
        (store.folder / result.hardware).mkdir(parents=True, exist_ok=True)
        store.write(result)
    return folder


def _results(machines: Sequence[str], models: Sequence[str]) -> Iterator[Result]:
    for at, machine in enumerate(machines):
        for batch in _BATCHES[: 1 if at % 9 in _ONE_BATCH else 2]:
            yield _result(machine, models[at % len(models)], batch, 0.01 * (1 + at % 13))


def _result(machine: str, model: str, batch: int, step: float) -> Result:
    trial = made_trial(model, batch, "onnxruntime==1.31.1")
    samples = tuple(round(step * batch / 32 * (1 + 0.01 * (at * 7 % 11)), 9) for at in range(60))
    return Result(
        format_version=FORMAT_VERSION,
        trial_id=trial.id,
        trial=trial,
        hardware=machine,
        measurement=Measurement(
            started_at="2026-11-21T12:00:00Z",
            wall_seconds=sum(samples),
            warmup_seconds=samples[:5],
            samples_seconds=samples,
            stop_reason="precise",
            placement=Placement(provider="CPUExecutionProvider", nodes_by_provider={}),
            steps_taken=len(samples),
        ),
        environment=Environment(
            fingerprint=f"{machine:0>16}".replace("h", "0"),
            cpu="Some CPU",
            physical_cores=2,
            logical_cpus=4,
            memory_bytes=2**34,
            operating_system="Linux",
            python="3.11.2",
            runtime="onnxruntime==1.31.1",
        ),
    )


@dataclass(frozen=True)
class Build:
    """Cost of one build: wall-clock and CPU seconds, and peak megabytes."""

    wall: float
    cpu: float
    megabytes: float


def built(project: Path) -> Build:
    """Build the site of a project in a separate process."""
    command = [sys.executable, "-m", "mkdocs", "build", "--quiet", "--site-dir", "site"]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    begun = time.perf_counter()
    process = subprocess.Popen(command, cwd=project, env=environment)
    ended = Event()
    with ThreadPoolExecutor(1) as pool:
        most = pool.submit(_most_held, process.pid, ended)
        _, status, used = os.wait4(process.pid, 0)
        wall = time.perf_counter() - begun
        ended.set()
    assert status == 0, "a build of the site failed"
    return Build(wall, used.ru_utime + used.ru_stime, most.result())


def _most_held(process: int, ended: Event) -> float:
    """Peak megabytes of a process and its children, sampled until the process ends."""
    most = 0.0
    while not ended.wait(_LOOK_SECONDS):
        most = max(most, sum(map(_resident, _family(process))))
    return most


def _family(process: int) -> Iterator[int]:
    yield process
    with contextlib.suppress(OSError):
        children = Path(f"/proc/{process}/task/{process}/children").read_text(encoding="ascii")
        for child in children.split():
            yield from _family(int(child))


def _resident(process: int) -> float:
    """Memory of a process in megabytes, with its share of shared memory."""
    with contextlib.suppress(OSError):
        lines = Path(f"/proc/{process}/smaps_rollup").read_text(encoding="ascii").splitlines()
        return sum(int(line.split()[1]) * 1024 / 1e6 for line in lines if line.startswith("Pss:"))
    return 0.0


def edited(project: Path) -> None:
    """Change the price of the project's first machine."""
    price = project / "specs/prices/h0000.toml"
    text = price.read_text(encoding="utf-8")
    here, there = ("amount = 0.5", "amount = 0.7")[:: 1 if "amount = 0.5" in text else -1]
    assert here in text
    price.write_text(text.replace(here, there, 1), encoding="utf-8")


def round_of(project: Path) -> list[Build]:
    """Build the site from nothing, and again after a price was edited."""
    for cached in (".cache", "site"):
        shutil.rmtree(project / cached, ignore_errors=True)
    cold = built(project)
    edited(project)
    return [cold, built(project)]


def middle(builds: Sequence[Build]) -> Build:
    """Medians of several builds, and the highest peak memory."""
    return Build(
        median(build.wall for build in builds),
        median(build.cpu for build in builds),
        max(build.megabytes for build in builds),
    )


def measured(
    pages: int, rounds: int, smallest: tuple[int, Sequence[Build]] | None
) -> tuple[int, list[Build]]:
    """Make a project, build it in rounds and print a line."""
    with tempfile.TemporaryDirectory() as scratch:
        project = written(Path(scratch), pages)
        every = [round_of(project) for _ in range(rounds)]
        charts = len(list((project / "site/data/figures").glob("*.svg")))
    builds = [middle(same) for same in zip(*every, strict=True)]
    fewest, first = smallest or (pages, builds)
    cells = [str(pages), str(charts)]
    for build, base in zip(builds, first, strict=True):
        linear = build.wall / pages / (base.wall / fewest)
        cells += [f"{build.wall:.1f}", f"{build.cpu:.1f}", f"{linear:.2f}"]
    cold = sorted(builds[0].wall for builds in every)
    cells += [f"{middle(builds).megabytes:.0f}", f"{cold[0]:.1f}", f"{cold[-1]:.1f}"]
    print(_ROW.format(*cells), flush=True)
    return pages, builds


def main() -> None:
    """Print a line for each number of pages."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pages", type=int, nargs="+", default=[10, 100, 500])
    parser.add_argument("--rounds", type=int, default=1)
    options = parser.parse_args()
    print(_ROW.format(*_HEADS))
    smallest = None
    for pages in options.pages:
        times = measured(pages, options.rounds, smallest)
        smallest = smallest or times


if __name__ == "__main__":
    main()
