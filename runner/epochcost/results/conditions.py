"""Conditions on the machine while a trial was sampled: others, clocks, energy. Frozen.

``measure.watch`` and ``measure.power`` record them; ``results.stability`` warns of them.
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
    """Conditions on the machine during the sampling phase, and the trial's device memory.

    ``others_cpus``: how many CPUs' worth of time other programs took; ``steal_share``: the
    part of all CPU time that the hypervisor gave to other machines; ``frozen_seconds``: how long a
    CPU quota stopped this control group; the first two of a pinned trial are of its CPUs and of
    their siblings alone. ``throttles``: the reasons for which the CPU or the GPU lowered its
    clocks, empty where they were watched and there was none.
    ``devices`` are the GPUs that the trial used, by their addresses on the PCI bus.
    ``device_memory_bytes`` is the most that the worker held of its devices, by
    ``device_memory_meter``. ``unknown`` says by a field's name why it is None.
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
    """A meter's reading over ``seconds`` of the sampling phase; ``meter`` names it.

    ``of`` is the part of the machine that it covers: the CPU's package (its cores and what is on
    the die), the memory, or one GPU with its memory.
    """

    meter: str
    of: Literal["cpu", "memory", "gpu"]
    joules: PositiveNumber
    seconds: FiniteSeconds

    @property
    def watts(self) -> float:
        """The mean power in watts."""
        return self.joules / self.seconds


class Energy(Record):
    """The readings of all meters, and by the name of each that gave none the reason."""

    readings: tuple[MeteredEnergy, ...] = ()
    unknown: dict[str, str] = Field(default_factory=dict)

    @property
    def watts(self) -> float | None:
        """The mean power in watts that all meters read together; None where none could."""
        return sum(reading.watts for reading in self.readings) if self.readings else None

    @property
    def meter(self) -> str:
        """The names of the meters that read."""
        return " + ".join(reading.meter for reading in self.readings)
