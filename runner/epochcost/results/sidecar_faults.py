"""What stands beside results against the project: sweeps of batch sizes, ceilings, trainings.

A ceiling that is too high makes every figure below it look poor. Results themselves are judged by
the table of ``results.checks``.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Container, Iterator
from pathlib import Path

from epochcost.errors import Fault
from epochcost.results.ceilings import FOLDER as CEILINGS
from epochcost.results.ceilings import Ceiling, Ceilings, ceilings_path, load_ceilings
from epochcost.results.checks import (
    another_machine,
    edited_environment,
    unknown_machine,
    wrong_clock,
)
from epochcost.results.format import DamagedResultError
from epochcost.results.limits import FOLDER as LIMITS
from epochcost.results.limits import load_limits
from epochcost.results.peak import MOST_HERTZ, cpu_flops, gpu_copy, gpu_products, gpus_of
from epochcost.results.plain import read_plain
from epochcost.results.store import LoadedSidecars, SidecarT
from epochcost.results.trainings import FOLDER as TRAININGS
from epochcost.results.trainings import Trainings, load_trainings
from epochcost.specs.catalogue import Catalogue
from epochcost.units import scientific

SIDECAR_FOLDERS = (LIMITS, CEILINGS, TRAININGS)
# A core reads 128 bytes and writes 64 a cycle at most, from the nearest of its caches.
_COPY_BYTES_A_CYCLE = 192


def sidecar_faults(catalogue: Catalogue, root: Path, now: dt.datetime) -> Iterator[Fault]:
    """What is wrong first with each record beside the results below ``root``."""
    faults = (
        *load_limits(root).faults,
        *ceiling_faults(catalogue, root, now),
        *training_faults(catalogue, root, now),
    )
    found = {fault.path: fault for fault in faults}
    for folder in SIDECAR_FOLDERS:
        for path in sorted(root.glob(f"*/{folder}/*.json")):
            try:
                read_plain(path, root)
            except DamagedResultError as error:
                found[path] = error.fault
    yield from found.values()


def ceiling_faults(catalogue: Catalogue, root: Path, now: dt.datetime) -> Iterator[Fault]:
    """A fault for each file below ``root`` that is damaged or cannot be true."""
    loaded = load_ceilings(root)
    yield from _sidecar_faults(loaded, lambda one: _implausible(catalogue, one, now))
    for path, record in loaded.records.items():
        if path != (expected := ceilings_path(root, record)):
            yield Fault(path, 1, 1, f"expected the name {expected.name}, got {path.name!r:.120}")


def ceiling_remarks(root: Path, hosts: Container[tuple[str, str]]) -> Iterator[tuple[str, Path]]:
    """What a reviewer should look at of ceilings, of which predictions of their machine follow.

    ``hosts`` are the machines, and their fingerprints, that have results.
    """
    for path, record in load_ceilings(root).records.items():
        yield from ((f"measured as is: {words}", path) for words in record.contradictions)
        if (record.hardware, record.environment.fingerprint) not in hosts:
            yield f"ceilings of {record.hardware} from a host without a result", path


def training_faults(catalogue: Catalogue, root: Path, now: dt.datetime) -> Iterator[Fault]:
    """The same for trainings: their model, data set and machine have specs, their times a past."""
    loaded = load_trainings(root)
    return _sidecar_faults(loaded, lambda one: _implausible_training(catalogue, one, now))


def _sidecar_faults(
    loaded: LoadedSidecars[SidecarT], judge: Callable[[SidecarT], Iterator[str]]
) -> Iterator[Fault]:
    """Those of reading, and the first of each file that was read."""
    yield from loaded.faults
    for path, record in loaded.records.items():
        words = next(judge(record), None)
        if words is not None:
            yield Fault(path, 1, 1, words)


def _implausible_training(
    catalogue: Catalogue, trainings: Trainings, now: dt.datetime
) -> Iterator[str]:
    model = catalogue.models.get(trainings.model)
    if model is None or model.training is None:
        yield f"model: expected one whose spec has training, got {trainings.model!r:.80}"
    if trainings.dataset not in catalogue.datasets:
        yield f"dataset: expected one with a spec, got {trainings.dataset!r:.80}"
    yield from _of_another_machine(catalogue, trainings, now)


def _of_another_machine(
    catalogue: Catalogue, record: Ceilings | Trainings, now: dt.datetime
) -> Iterator[str]:
    """What of a record beside results is not of its machine, or of a clock that is not set."""
    environment = record.environment
    if fault := unknown_machine(catalogue, record.hardware):
        yield fault
        return
    hardware = catalogue.hardware[record.hardware]
    faults = (
        wrong_clock("measured_at", record.measured_at, record.measured_at, now),
        edited_environment(environment),
        another_machine(hardware, environment, record.contradictions),
    )
    yield from filter(None, faults)
    if record.provider == "cuda" and not environment.gpus:
        yield "gpus: expected the GPU that was measured, found none"


def _implausible(catalogue: Catalogue, ceilings: Ceilings, now: dt.datetime) -> Iterator[str]:
    yield from _of_another_machine(catalogue, ceilings, now)
    if ceilings.hardware in catalogue.hardware:
        for ceiling in ceilings.ceilings:
            yield from _beyond_the_device(catalogue, ceilings, ceiling)


def _beyond_the_device(catalogue: Catalogue, ceilings: Ceilings, ceiling: Ceiling) -> Iterator[str]:
    hardware, environment = catalogue.hardware[ceilings.hardware], ceilings.environment
    if ceilings.provider == "cpu":
        logical, threads = environment.logical_cpus, ceiling.threads
        if threads > logical:
            yield f"threads: expected at most the {logical} CPUs of the machine, got {threads}"
        device, flops = f"{threads} CPUs", cpu_flops(hardware, environment, threads)
        copied = MOST_HERTZ * min(threads, logical) * _COPY_BYTES_A_CYCLE
    else:
        chips = gpus_of(catalogue, hardware, environment)
        device, flops = "this GPU", gpu_products(chips, ceiling.precision)
        copied = gpu_copy(chips)
    for key, rate, most, unit in (
        ("product_seconds", ceiling.flops.high, flops, "FLOP/s"),
        ("copy_seconds", ceiling.copy_bytes.high, copied, "bytes/s"),
    ):
        if rate > most:
            expected = f"expected at most {scientific(most)} {unit}, what {device} can do"
            yield f"{key}: {expected}, got {scientific(rate)}"
