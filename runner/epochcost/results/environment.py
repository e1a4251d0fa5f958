"""The machine and the software on which a trial ran, and the fingerprint of the host. Frozen."""

from __future__ import annotations

import hashlib
from typing import Literal

from pydantic import Field

from epochcost.results.fields import Count, Former, HexDigits, PositiveNumber, Record, Revision

CloudProvider = Literal["AWS EC2", "Google Compute Engine", "Azure"]


class Gpu(Record):
    """An accelerator as its driver describes it; what it does not tell is None.

    ``mig``: whether the device is partitioned. ``Conditions.devices`` has its ``pci_address``;
    ``compute_capability`` is NVIDIA's major.minor.
    """

    name: str | None
    memory_bytes: Count | None
    driver: str | None
    power_limit_watts: PositiveNumber | None = None
    graphics_clock_hertz: Former = None
    memory_clock_hertz: Former = None
    ecc: Former = None
    mig: bool | None = None
    pci_address: str | None = None
    compute_capability: str | None = None


class Processor(Record):
    """The kernel's governors of the CPU's clock."""

    governor: str | None = None
    sockets: Former = None
    numa_nodes: Former = None
    lowest_frequency_hertz: Former = None
    highest_frequency_hertz: Former = None
    turbo: Former = None


class Instance(Record):
    """A machine rented from a cloud, as its metadata service names it."""

    provider: CloudProvider
    type: str
    region: Former = None
    zone: Former = None
    spot: Former = None


class Environment(Record):
    """The machine and its software; unknown values are None, never zero.

    ``fingerprint`` is a hash of what makes two hosts alike (CPU, cores, memory, GPUs): figures of
    different fingerprints are never pooled. ``cpu_quota`` (CPUs) and ``memory_limit_bytes`` are
    what control groups leave of the machine, None where they set no limit.
    ``revision`` is the commit of the measuring code's checkout, ``modified`` whether files of it
    differ from that commit. ``timer_step_seconds`` is the smallest step that the timer was seen to
    take. ``unknown`` says by a field's name why it is None.
    """

    fingerprint: HexDigits
    cpu: str | None
    physical_cores: Count | None
    logical_cpus: Count
    memory_bytes: Count | None
    gpus: tuple[Gpu, ...] = ()
    operating_system: str
    python: str
    runtime: str
    packages: dict[str, str] = Field(default_factory=dict)
    virtualisation: str | None = None
    instance: Instance | None = None
    instance_type: Former = None
    load_average_1min: Former = None
    processor: Processor = Processor()
    container: Former = None
    cpu_quota: PositiveNumber | None = None
    memory_limit_bytes: Count | None = None
    timer_step_seconds: PositiveNumber | None = None
    revision: Revision | None = None
    modified: bool | None = None
    unknown: dict[str, str] = Field(default_factory=dict)


class Software(Record):
    """A worker's software: the runtime as ``package==version``, Python, and other packages.

    The names are those of ``Environment``, which is where a result keeps them.
    """

    runtime: str
    python: str
    packages: dict[str, str] = Field(default_factory=dict)


_GIB = 2**30


def fingerprint(
    cpu: str | None,
    physical_cores: int | None,
    logical_cpus: int,
    memory_bytes: int,
    gpus: tuple[Gpu, ...],
) -> str:
    """Hash what makes two hosts alike: CPU, cores, memory to the GiB, GPUs; 16 hex digits.

    Drivers and kernels may differ: they are versions, not machines. Memory is rounded because
    what a kernel keeps for itself varies from boot to boot.
    """
    parts = [cpu, physical_cores, logical_cpus, round(memory_bytes / _GIB)]
    parts += [f"{gpu.name}/{round((gpu.memory_bytes or 0) / _GIB)}" for gpu in gpus]
    return hashlib.sha256("|".join(map(str, parts)).encode()).hexdigest()[:16]
