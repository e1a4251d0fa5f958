"""What happened on the machine while a trial was sampled: others, clocks, energy, its pace. Frozen.

How it is watched is left to ``measure.watch``, ``measure.power`` and ``measure.pace``; what follows
from it to ``results.stability``, ``results.pace`` and ``results.undisturbed``.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from epochcost.results.fields import (
    Count,
    FiniteSeconds,
    NonNegative,
    NonNegativeInt,
    PositiveNumber,
    ProcessBytes,
    Record,
    Share,
)

Throttle = Literal["cpu-heat", "gpu-heat", "gpu-power-cap", "gpu-power-brake", "gpu-slowdown"]


class Conditions(Record):
    """What happened on the machine during the sampling phase, and what the trial held by then.

    ``others_cpus``: how many CPUs' worth of time other programs took; ``steal_share``: the
    part of all CPU time that the hypervisor gave to other machines; ``frozen_seconds``: how long a
    CPU quota stopped this control group; the first two of a pinned trial are of its CPUs and of
    their siblings alone. ``throttles``: the reasons for which the CPU or the GPU lowered its
    clocks, empty where they were watched and there was none. ``graphics_clock_hertz`` is the mean.
    ``devices`` are the GPUs that the trial used, by their addresses on the PCI bus.
    ``device_memory_bytes`` is the most that the worker held of its devices, by
    ``device_memory_meter``; ``group_memory_bytes`` the most that its control group held, page cache
    and neighbours included. ``unknown`` says by a field's name why it is None.
    """

    seconds: FiniteSeconds
    others_cpus: NonNegative | None = None
    steal_share: Share | None = None
    frozen_seconds: NonNegative | None = None
    throttles: tuple[Throttle, ...] | None = None
    graphics_clock_hertz: Count | None = None
    devices: tuple[str, ...] | None = None
    device_memory_bytes: ProcessBytes | None = None
    device_memory_meter: str | None = None
    group_memory_bytes: ProcessBytes | None = None
    unknown: dict[str, str] = Field(default_factory=dict)


class MeteredEnergy(Record):
    """What one meter counted over ``seconds`` of the sampling phase; ``meter`` names it.

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
        return sum(one.watts for one in self.readings) if self.readings else None

    @property
    def meter(self) -> str:
        """The names of the meters that read."""
        return " + ".join(one.meter for one in self.readings)


class Pace(Record):
    """Times of two fixed works that were taken between the samples, with as many threads.

    ``product_seconds`` are of so many ``products`` of two square matrices of ``matrix_side``,
    ``copy_seconds`` of reading ``copied_bytes``, in so many ``copies``, and writing them elsewhere;
    ``after_samples`` says how many samples were taken before each reading. ``waited_seconds`` is
    how long the trial's threads together waited for a CPU since the one before, and
    ``waited_within_seconds`` during the reading itself. ``threads`` are those asked for, 0 for all.
    """

    threads: NonNegativeInt
    matrix_side: Count
    products: Count
    copied_bytes: Count
    copies: Count
    after_samples: Annotated[tuple[NonNegativeInt, ...], Field(min_length=1)]
    product_seconds: tuple[FiniteSeconds, ...]
    copy_seconds: tuple[FiniteSeconds, ...]
    waited_seconds: tuple[NonNegative, ...]
    waited_within_seconds: tuple[NonNegative, ...]

    @property
    def works(self) -> tuple[int, ...]:
        """What the works are: times of others are not to be compared with these."""
        return self.threads, self.matrix_side, self.products, self.copied_bytes, self.copies

    @model_validator(mode="after")
    def _one_of_each_in_order(self) -> Pace:
        times = self.product_seconds, self.copy_seconds
        waits = self.waited_seconds, self.waited_within_seconds
        lengths = [len(one) for one in (self.after_samples, *times, *waits)]
        if len(set(lengths)) > 1 or list(self.after_samples) != sorted(self.after_samples):
            got = "/".join(map(str, lengths))
            raise ValueError(f"should have as many of each kind of time, in order, not {got}")
        return self
