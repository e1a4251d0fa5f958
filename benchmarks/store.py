"""Time to load stored results and to join them with prices, and whether it is linear.

    python benchmarks/store.py [--results 10000]

Generates results of the catalogue's models on its machines, with as many hosts as needed and 30 to
400 samples each (log-uniform), one file each. An eighth, a quarter, half and all of them are loaded
and joined as for the site: files read and checked, means with their intervals, warnings, a row for
every price. "read" only opens the files and reads the bytes. It is part of "load", and no more
could be saved by packing results into one file. Seconds are CPU time (``time.process_time``), each
size in a separate process. The ratio is the time of all results over the time of an eighth: 8 if
the time is linear.
"""

from __future__ import annotations

import argparse
import datetime as dt
import gc
import itertools
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from made_trials import made_trial

from epochcost.analysis.inputs import read_inputs
from epochcost.analysis.observations import observe
from epochcost.analysis.rows import price_rows
from epochcost.results.environment import Conditions, Environment, fingerprint
from epochcost.results.plausibility import contradictions
from epochcost.results.records import (
    FORMAT_VERSION,
    Measurement,
    Placement,
    Result,
    serialise_result,
)
from epochcost.results.store import ResultStore, load_all
from epochcost.specs.catalogue import Catalogue
from epochcost.specs.hardware import Hardware
from epochcost.specs.loader import load_catalogue

ROOT = Path(__file__).parents[1]
_BATCHES = (1, 2, 4, 8, 16, 32, 64, 128)
_FEWEST, _MOST = 30, 400
# Parts of the results that are measured: an eighth, a quarter, half and all.
_SIZES = (8, 4, 2, 1)
_ROW = "{:>9} {:>9} {:>9} {:>9} {:>9} {:>9} {:>9} {:>9}"


def generated(catalogue: Catalogue) -> Iterator[Result]:
    """Generate results without end: all work on all machines, then the same on further hosts."""
    machines = [name for name in catalogue.hardware if catalogue.prices_of(name)]
    models = [name for name, model in catalogue.models.items() if model.training and model.graph]
    chance = random.Random(0)
    for host in itertools.count():
        for machine, batch, model in itertools.product(machines, _BATCHES, models):
            yield _result(catalogue.hardware[machine], model, batch, host, chance)


def _result(machine: Hardware, model: str, batch: int, host: int, chance: random.Random) -> Result:
    trial = made_trial(model, batch, "onnxruntime-gpu==1.31.1")
    environment = _environment(host)
    return Result(
        format_version=FORMAT_VERSION,
        trial_id=trial.id,
        trial=trial,
        hardware=machine.id,
        measurement=_measurement(batch, chance),
        environment=environment,
        contradictions=contradictions(machine, environment),
    )


def _measurement(batch: int, chance: random.Random) -> Measurement:
    count = round(_FEWEST * (_MOST / _FEWEST) ** chance.random())
    step = batch * chance.uniform(0.5, 2)
    samples = tuple(round(step * chance.lognormvariate(0, 0.05), 9) for _ in range(count))
    return Measurement(
        started_at=dt.datetime(2026, 11, 21, 12, tzinfo=dt.UTC),
        wall_seconds=sum(samples) + sum(samples[:20]) + 2,
        warmup_seconds=samples[:20],
        samples_seconds=samples,
        stop_reason="precise",
        placement=Placement(
            provider="CPUExecutionProvider",
            nodes_by_provider={"CPUExecutionProvider": {"Gemm": 9, "Relu": 6, "Add": 12}},
        ),
        steps_taken=count + 21,
        held_out_loss_before=2.3,
        held_out_loss_after=0.4,
        peak_memory_bytes=2**28,
        conditions=Conditions(
            seconds=sum(samples), others_cpus=0.1, steal_share=0.0, frozen_seconds=0, throttles=()
        ),
    )


def _environment(host: int) -> Environment:
    """The environment of a host; hosts differ in their memory."""
    memory_bytes = (8 + host) * 2**30
    return Environment(
        fingerprint=fingerprint("AMD EPYC", 1, 2, memory_bytes, ()),
        cpu="AMD EPYC",
        physical_cores=1,
        logical_cpus=2,
        memory_bytes=memory_bytes,
        operating_system="Linux 6.1",
        python="3.11.2",
        runtime="onnxruntime-gpu==1.31.1",
        packages={"numpy": "2.3.5", "onnx": "1.22.0", "onnxruntime-gpu": "1.31.1"},
        timer_step_seconds=4e-8,
        unknown={"instance": "no cloud is named by the firmware"},
    )


def write(folder: Path, count: int) -> int:
    """Store the first ``count`` generated results; returns their bytes."""
    catalogue, store = load_catalogue(ROOT), ResultStore(folder)
    total = 0
    for result in itertools.islice(generated(catalogue), count):
        path = store.path_of(result.trial, result.hardware, result.environment.fingerprint)
        path.parent.mkdir(exist_ok=True)
        total += path.write_bytes(serialise_result(result))
    return total


def measured(folder: Path, count: int) -> None:
    """Read, load and join this many results of a folder; prints the rows and the seconds."""
    catalogue = load_catalogue(ROOT)
    results = _subset(folder, count)
    begun = time.process_time()
    assert all(path.read_bytes() for path in results.glob("*/*.json"))
    read = time.process_time() - begun
    begun = time.process_time()
    loaded = len(load_all(results).records)
    load = time.process_time() - begun
    begun = time.process_time()
    inputs = read_inputs(catalogue, [results], ROOT / "docs")
    rows = price_rows(inputs.catalogue, observe(inputs))
    process = time.process_time() - begun
    assert loaded == len(inputs.stored) == count, inputs.problems[:3]
    print(len(rows), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, read, load, process)


def _subset(folder: Path, count: int) -> Path:
    subset = folder.parent / f"subset-{count}"
    files = sorted(folder.glob("*/*.json"))
    for path in files[:: len(files) // count][:count]:
        target = subset / path.parent.name / path.name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.hardlink_to(path)
    return subset


def main() -> None:
    """Write the results, and time each size in a fresh process."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--results", type=int, default=10_000)
    parser.add_argument("--measure", nargs=2, metavar=("FOLDER", "COUNT"), help="one size")
    options = parser.parse_args()
    if options.results < _SIZES[0]:
        parser.error(f"expected at least {_SIZES[0]} results, got {options.results}")
    # As the command line does.
    gc.set_threshold(100_000)
    if options.measure:
        measured(Path(options.measure[0]), int(options.measure[1]))
        return
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) / "results"
        folder.mkdir()
        _run(folder, options.results)


def _run(folder: Path, most: int) -> None:
    size = write(folder, most)
    print(f"{most} results, {size / most / 1e3:.1f} kB each")
    print(
        _ROW.format("results", "rows", "peak MB", "read s", "load s", "join s", "both s", "ms each")
    )
    totals = []
    for count in (most // divisor for divisor in _SIZES):
        command = [sys.executable, __file__, "--measure", str(folder), str(count)]
        process = subprocess.run(command, capture_output=True, text=True, check=True)
        rows, kibibytes, *seconds = process.stdout.split()
        read, load, both_seconds = map(float, seconds)
        totals.append(both_seconds)
        cells = (f"{value:.2f}" for value in (read, load, both_seconds - load, both_seconds))
        peak = f"{int(kibibytes) * 1024 / 1e6:.0f}"
        print(
            _ROW.format(count, rows, peak, *cells, f"{1e3 * both_seconds / count:.2f}"), flush=True
        )
    print(f"ratio of all to an eighth: {totals[-1] / totals[0]:.2f} (8 is linear)")


if __name__ == "__main__":
    main()
