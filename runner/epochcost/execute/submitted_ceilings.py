"""Ceilings that somebody hands in, against the project: whose machine, and what a CPU can do.

A ceiling that is too high makes every figure below it look poor. Nothing is run, and no package
that measures is needed.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from pathlib import Path

from epochcost.errors import Fault
from epochcost.execute.peak import cpu_cycles, cpu_flops
from epochcost.execute.plausibility import contradictions
from epochcost.results.ceilings import Ceiling, Ceilings, load_ceilings
from epochcost.results.records import Environment
from epochcost.results.submission_figures import implausible_dates, implausible_environment
from epochcost.specs.catalogue import Catalogue
from epochcost.specs.hardware import Hardware
from epochcost.units import scientific

# A core reads 128 bytes and writes 64 a cycle at most, from the nearest of its caches.
_COPY_BYTES_A_CYCLE = 192


def ceiling_faults(catalogue: Catalogue, root: Path, now: dt.datetime) -> Iterator[Fault]:
    """A fault for each file below ``root`` that is damaged or cannot be true."""
    loaded = load_ceilings(root)
    yield from loaded.faults
    for path, ceilings in loaded.kept.items():
        words = next(_implausible(catalogue, ceilings, now), None)
        if words is not None:
            yield Fault(path, 1, 1, words)


def _implausible(catalogue: Catalogue, ceilings: Ceilings, now: dt.datetime) -> Iterator[str]:
    hardware, environment = catalogue.hardware.get(ceilings.hardware), ceilings.environment
    if hardware is None:
        yield f"hardware: demanded a machine with a spec; got {ceilings.hardware!r:.80}"
        return
    yield from implausible_dates("measured_at", ceilings.measured_at, ceilings.measured_at, now)
    yield from implausible_environment(environment)
    found = contradictions(hardware, environment)
    unsaid = [words for words in found if words not in ceilings.contradictions]
    if unsaid:
        yield f"environment: demanded {hardware.name}; got {'; '.join(unsaid)}"
    if ceilings.provider != "cpu":
        yield f"provider: demanded cpu, of which ceilings are measured; got {ceilings.provider}"
    for one in ceilings.ceilings:
        yield from _beyond_the_cpu(one, hardware, environment)


def _beyond_the_cpu(
    ceiling: Ceiling, hardware: Hardware, environment: Environment
) -> Iterator[str]:
    logical, threads = environment.logical_cpus, ceiling.threads
    if threads > logical:
        yield f"threads: demanded at most the {logical} CPUs of the machine; got {threads}"
    flops = cpu_flops(hardware, environment, threads)
    copied = cpu_cycles(hardware, environment, threads) * _COPY_BYTES_A_CYCLE
    for key, rate, most, unit in (
        ("product_seconds", ceiling.flops.high, flops, "FLOP/s"),
        ("copy_seconds", ceiling.copy_bytes.high, copied, "bytes/s"),
    ):
        if rate > most:
            demanded = f"demanded at most {scientific(most)} {unit}, what {threads} CPUs can do"
            yield f"{key}: {demanded}; got {scientific(rate)}"
