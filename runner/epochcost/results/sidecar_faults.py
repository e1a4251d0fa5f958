"""What stands beside results against the project: sweeps of batch sizes, ceilings, trainings.

A ceiling that is too high makes every figure below it look poor. Results themselves are checked in
``results.submissions``.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Container, Iterator
from pathlib import Path

from epochcost.errors import Fault
from epochcost.results.ceilings import FOLDER as CEILINGS
from epochcost.results.ceilings import Ceiling, Ceilings, ceilings_path, load_ceilings
from epochcost.results.environment import Environment
from epochcost.results.format import DamagedResultError
from epochcost.results.limits import FOLDER as LIMITS
from epochcost.results.limits import load_limits
from epochcost.results.peak import cpu_cycles, cpu_flops, gpu_copy, gpu_products, gpus_of
from epochcost.results.plausibility import contradictions
from epochcost.results.store import LoadedSidecars, SidecarT
from epochcost.results.submission import read_plain
from epochcost.results.submission_figures import implausible_dates, implausible_environment
from epochcost.results.trainings import FOLDER as TRAININGS
from epochcost.results.trainings import Trainings, load_trainings
from epochcost.specs.catalogue import Catalogue
from epochcost.specs.hardware import Hardware
from epochcost.units import scientific

SIDECAR_FOLDERS = (LIMITS, CEILINGS, TRAININGS)
# A core reads 128 bytes and writes 64 a cycle at most, from the nearest of its caches.
_COPY_BYTES_A_CYCLE = 192
# Less than any call of ONNX Runtime takes.
_LEAST_STEP_SECONDS = 1e-6


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
    for repeat in trainings.repeats:
        least = repeat.steps * _LEAST_STEP_SECONDS
        if repeat.step_seconds < least:
            yield f"step_seconds of seed {repeat.seed}: expected {least:.3g} or more"


def _of_another_machine(
    catalogue: Catalogue, record: Ceilings | Trainings, now: dt.datetime
) -> Iterator[str]:
    """What of a record beside results is not of its machine, or of a time to come."""
    hardware, environment = catalogue.hardware.get(record.hardware), record.environment
    if hardware is None:
        yield f"hardware: expected a machine with a spec, got {record.hardware!r:.80}"
        return
    yield from implausible_dates("measured_at", record.measured_at, record.measured_at, now)
    yield from implausible_environment(environment)
    found = contradictions(hardware, environment)
    unsaid = [words for words in found if words not in record.contradictions]
    if unsaid:
        yield f"environment: expected {hardware.name}, got {'; '.join(unsaid)}"
    if record.provider == "cuda" and not environment.gpus:
        yield "gpus: expected the GPU that was measured, found none"


def _implausible(catalogue: Catalogue, ceilings: Ceilings, now: dt.datetime) -> Iterator[str]:
    yield from _of_another_machine(catalogue, ceilings, now)
    hardware, environment = catalogue.hardware.get(ceilings.hardware), ceilings.environment
    if hardware is None:
        return
    if ceilings.provider == "cpu":
        for one in ceilings.ceilings:
            yield from _beyond_the_cpu(one, hardware, environment)
    else:
        chips = gpus_of(catalogue, hardware, environment)
        for one in ceilings.ceilings:
            most = gpu_products(chips, one.precision)
            yield from _beyond("product_seconds", one.flops.high, most, "FLOP/s", "this GPU")
            copied = gpu_copy(chips)
            yield from _beyond("copy_seconds", one.copy_bytes.high, copied, "bytes/s", "this GPU")


def _beyond_the_cpu(
    ceiling: Ceiling, hardware: Hardware, environment: Environment
) -> Iterator[str]:
    logical, threads = environment.logical_cpus, ceiling.threads
    if threads > logical:
        yield f"threads: expected at most the {logical} CPUs of the machine, got {threads}"
    flops = cpu_flops(hardware, environment, threads)
    copied = cpu_cycles(hardware, environment, threads) * _COPY_BYTES_A_CYCLE
    for key, rate, most, unit in (
        ("product_seconds", ceiling.flops.high, flops, "FLOP/s"),
        ("copy_seconds", ceiling.copy_bytes.high, copied, "bytes/s"),
    ):
        yield from _beyond(key, rate, most, unit, f"{threads} CPUs")


def _beyond(key: str, rate: float, most: float, unit: str, device: str) -> Iterator[str]:
    if rate > most:
        expected = f"expected at most {scientific(most)} {unit}, what {device} can do"
        yield f"{key}: {expected}, got {scientific(rate)}"
