"""Records of the machine and the software that ran a trial, and of the conditions during sampling.

``measure.watch`` reads the conditions, and ``results.stability`` derives warnings from them.
"""

from __future__ import annotations

import hashlib
from typing import Literal

from pydantic import Field

from epochcost.results.fields import (
    Count,
    FiniteSeconds,
    Former,
    HexDigits,
    NonNegative,
    PositiveNumber,
    ProcessBytes,
    Record,
    Revision,
    Share,
)

Throttle = Literal["cpu-heat", "gpu-heat", "gpu-power-cap", "gpu-power-brake", "gpu-slowdown"]
CloudProvider = Literal["AWS EC2", "Google Compute Engine", "Azure"]


class Gpu(Record):
    """A GPU as its driver describes it; values that the driver does not state are None.

    ``mig`` says whether the GPU is partitioned. ``compute_capability`` is a number such as 8.9.
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
    """The kernel's CPU clock policy (``governor``); only old files have the other fields."""

    governor: str | None = None
    sockets: Former = None
    numa_nodes: Former = None
    lowest_frequency_hertz: Former = None
    highest_frequency_hertz: Former = None
    turbo: Former = None


class Instance(Record):
    """A rented machine, as described by the cloud's metadata service."""

    provider: CloudProvider
    type: str
    region: Former = None
    zone: Former = None
    spot: Former = None


class Environment(Record):
    """The machine and its software during a measurement; unknown values are None, never zero.

    ``cpu_quota`` (in CPUs) and ``memory_limit_bytes`` are None without a limit. ``modified`` says
    whether the code at ``revision`` had uncommitted changes. ``unknown`` has reasons for None.
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
    """The software of a worker process; ``runtime`` has the form ``package==version``."""

    runtime: str
    python: str
    packages: dict[str, str] = Field(default_factory=dict)


_GIB = 2**30


def fingerprint(
    cpu: str | None,
    physical_cores: int | None,
    logical_cpus: int,
    memory_bytes: int | None,
    gpus: tuple[Gpu, ...],
) -> str:
    """Hash CPU, cores, memory (rounded to GiB) and GPUs, not drivers, to 16 hexadecimal digits."""
    parts = [cpu, physical_cores, logical_cpus, round((memory_bytes or 0) / _GIB)]
    parts += [f"{gpu.name}/{round((gpu.memory_bytes or 0) / _GIB)}" for gpu in gpus]
    return hashlib.sha256("|".join(map(str, parts)).encode()).hexdigest()[:16]


class Conditions(Record):
    """Conditions on the machine while the samples were taken, and the trial's device memory.

    ``others_cpus`` is how many CPUs other programs kept busy on average, ``steal_share`` the share
    of CPU time that the hypervisor gave to other machines. For a pinned trial, both cover its CPUs
    and their hardware siblings. A CPU quota stopped the trial for ``frozen_seconds``. ``throttles``
    is empty if no clock was lowered. ``devices`` are PCI bus addresses of GPUs, and
    ``device_memory_bytes`` is the worker's peak memory there. ``unknown`` has reasons for None.
    """

    seconds: FiniteSeconds
    others_cpus: NonNegative | None = None
    steal_share: Share | None = None
    frozen_seconds: NonNegative | None = None
    throttles: tuple[Throttle, ...] | None = None
    graphics_clock_hertz: Former = None
    devices: tuple[str, ...] | None = None
    device_memory_bytes: ProcessBytes | None = None
    device_memory_meter: str | None = None
    group_memory_bytes: Former = None
    unknown: dict[str, str] = Field(default_factory=dict)


class MeteredEnergy(Record):
    """The energy that a meter counted; "cpu" is the whole package, "gpu" includes its memory."""

    meter: str
    of: Literal["cpu", "memory", "gpu"]
    joules: PositiveNumber
    seconds: FiniteSeconds

    @property
    def watts(self) -> float:
        """The mean power in watts of the part of the machine that the meter covers."""
        return self.joules / self.seconds


class Energy(Record):
    """The energy that all meters counted; ``unknown`` has reasons for missing readings."""

    readings: tuple[MeteredEnergy, ...] = ()
    unknown: dict[str, str] = Field(default_factory=dict)

    @property
    def watts(self) -> float | None:
        """The total mean power in watts of all parts with a meter; None without a reading."""
        return sum(reading.watts for reading in self.readings) if self.readings else None

    @property
    def meter(self) -> str:
        """The names of all meters that gave a reading, joined by plus signs."""
        return " + ".join(reading.meter for reading in self.readings)
