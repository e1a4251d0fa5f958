"""Records of the conditions during sampling: load by other programs, lowered clocks, and energy.

``measure.watch`` fills the records; ``results.stability`` derives warnings from them.
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from epochcost.results.fields import (
    FiniteSeconds,
    Former,
    NonNegative,
    PositiveNumber,
    ProcessBytes,
    Record,
    Share,
)

Throttle = Literal["cpu-heat", "gpu-heat", "gpu-power-cap", "gpu-power-brake", "gpu-slowdown"]


class Conditions(Record):
    """Conditions on the machine while the samples were taken, and the trial's device memory.

    ``others_cpus`` is the number of CPUs that other programs kept busy on average, and
    ``steal_share`` the share of all CPU time that the hypervisor gave to other machines. For a
    pinned trial, both cover only its CPUs and their hardware siblings. ``frozen_seconds`` is the
    time for which a CPU quota stopped this control group. ``throttles`` are the reasons why the CPU
    or the GPU lowered its clocks; empty if they did not. ``devices`` are the PCI bus addresses of
    the GPUs used. ``device_memory_bytes`` is the worker's peak memory on these GPUs, as
    ``device_memory_meter`` measured it. ``unknown`` has the reason for each field that is None.
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
    """Energy that a meter counted during ``seconds`` of the sampling.

    ``of`` is the part of the machine that the meter covers: the CPU's package (its cores and the
    rest of the die), the memory, or one GPU with its memory.
    """

    meter: str
    of: Literal["cpu", "memory", "gpu"]
    joules: PositiveNumber
    seconds: FiniteSeconds

    @property
    def watts(self) -> float:
        """The mean power of the metered part in watts."""
        return self.joules / self.seconds


class Energy(Record):
    """The energy that all meters counted; ``unknown`` says why a meter has no reading."""

    readings: tuple[MeteredEnergy, ...] = ()
    unknown: dict[str, str] = Field(default_factory=dict)

    @property
    def watts(self) -> float | None:
        """The mean power of all metered parts together, in watts; None without a reading."""
        return sum(reading.watts for reading in self.readings) if self.readings else None

    @property
    def meter(self) -> str:
        """The names of all meters that gave a reading, joined by plus signs."""
        return " + ".join(reading.meter for reading in self.readings)
