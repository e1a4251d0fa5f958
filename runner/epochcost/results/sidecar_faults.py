"""Check stored records that are not results, such as sweeps, peak rates, trainings and payments."""

from __future__ import annotations

import datetime as dt
from collections.abc import Container, Iterator
from pathlib import Path

from epochcost.errors import Fault
from epochcost.results.ceilings import Ceiling, Ceilings
from epochcost.results.checks import (
    another_machine,
    edited_environment,
    unknown_machine,
    unknown_model,
    wrong_clock,
)
from epochcost.results.plausibility import MOST_HERTZ, cpu_flops, gpu_copy, gpu_products, gpus_of
from epochcost.results.records import DamagedResultError, damaged
from epochcost.results.reported import ReportedRun, spec_faults
from epochcost.results.sidecars import BatchLimit, Payment
from epochcost.results.store import (
    Sidecar,
    load_sidecars,
    read_sidecar,
    require_name,
    require_plain,
)
from epochcost.results.trainings import Trainings
from epochcost.specs.catalogue import Catalogue
from epochcost.units import scientific

KINDS: tuple[type[Sidecar], ...] = (BatchLimit, Ceilings, Trainings, ReportedRun, Payment)
# In a cycle, a core reads at most 128 bytes from its nearest cache and writes at most 64 bytes.
_COPY_BYTES_A_CYCLE = 192


def sidecar_faults(catalogue: Catalogue, root: Path, now: dt.datetime) -> Iterator[Fault]:
    """Yield a fault for each faulty record below ``root``, except records of results."""
    for kind in KINDS:
        for path in sorted(root.glob(f"*/{kind.folder}/*.json")):
            try:
                require_plain(path, root)
                record = read_sidecar(path, root, kind)
                if message := next(_messages(catalogue, record, now), None):
                    raise damaged(path, message)
                require_name(path, record.path(root).name)
            except DamagedResultError as error:
                yield error.fault


def ceiling_remarks(root: Path, hosts: Container[object]) -> Iterator[tuple[str, Path]]:
    """Remarks on peak rates that differ from the spec or whose host has no result, with paths.

    ``hosts`` are the hosts with results, each as (machine, fingerprint of the environment).
    """
    for path, record in load_sidecars(root, Ceilings).records.items():
        yield from ((f"differs from the spec: {each}", path) for each in record.contradictions)
        if (record.hardware, record.environment.fingerprint) not in hosts:
            yield f"ceilings of {record.hardware} from a host without a result", path


def _messages(catalogue: Catalogue, record: Sidecar, now: dt.datetime) -> Iterator[str]:
    yield from unknown_machine(catalogue, record.hardware)
    if isinstance(record, Trainings):
        yield from unknown_model(catalogue, record.model, "training")
        if record.dataset not in catalogue.datasets:
            yield f"dataset: expected a data set with a spec, got {record.dataset!r:.80}"
    if isinstance(record, ReportedRun):
        yield from spec_faults(catalogue, record)
    if isinstance(record, Ceilings | Trainings):
        yield from _environment_messages(catalogue, record, now)
    if isinstance(record, Ceilings):
        for ceiling in record.ceilings:
            yield from _beyond_the_device(catalogue, record, ceiling)


def _environment_messages(
    catalogue: Catalogue, record: Ceilings | Trainings, now: dt.datetime
) -> Iterator[str]:
    environment, hardware = record.environment, catalogue.hardware[record.hardware]
    yield from wrong_clock("measured_at", record.measured_at, record.measured_at, now)
    yield from edited_environment(environment)
    yield from another_machine(hardware, environment, record.contradictions)
    if record.provider == "cuda" and not environment.gpus:
        yield "gpus: expected the GPU that was measured, got none"


def _beyond_the_device(catalogue: Catalogue, ceilings: Ceilings, ceiling: Ceiling) -> Iterator[str]:
    hardware, environment = catalogue.hardware[ceilings.hardware], ceilings.environment
    if ceilings.provider == "cpu":
        logical, threads = environment.logical_cpus, ceiling.threads
        if threads > logical:
            yield f"threads: expected at most the {logical} CPUs of the machine, got {threads}"
        device, flops = f"{threads} CPUs", cpu_flops(hardware, environment, threads)
        copied = MOST_HERTZ * min(threads, logical) * _COPY_BYTES_A_CYCLE
    else:
        chips = gpus_of(catalogue, hardware, environment, ceilings.device)
        device, flops = "this GPU", gpu_products(chips, ceiling.precision)
        copied = gpu_copy(chips)
    for key, rate, most, unit in (
        ("product_seconds", ceiling.flops.high, flops, "FLOP/s"),
        ("copy_seconds", ceiling.copy_bytes.high, copied, "bytes/s"),
    ):
        if rate > most:
            expected = f"expected at most {scientific(most)} {unit}, what {device} can do"
            yield f"{key}: {expected}, got {scientific(rate)}"
