"""Energy meters: which there are, and what each counted between two moments.

CPUs: RAPL through the kernel's powercap files. GPUs: NVML's energy counter, or where a device has
none its power integrated over time. A meter that cannot be read, or that stands still while a
machine computes, is unknown with the reason, never zero. When to read is left to ``watch``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Literal

from epochcost.measure.gpus import Handle, Library, ask
from epochcost.measure.kernel_files import read_number, read_text, why_unreadable
from epochcost.results.conditions import Energy, MeteredEnergy

PowerDomain = Literal["cpu", "memory", "gpu"]
POWERCAP = Path("/sys/class/powercap")
# Zones that add up to what RAPL sees: `core` and `uncore` are parts of a package, `psys` holds
# packages. `intel-rapl-mmio` shows the same packages again (the kernel's power/powercap).
_ZONES = "intel-rapl:*"
_JOULES_PER_MICROJOULE = 1e-6
_JOULES_PER_MILLIJOULE = 1e-3
_WATTS_PER_MILLIWATT = 1e-3


@dataclass
class Meter:
    """Counts energy from its first reading on.

    ``sense`` reads a counter or a power; None fails the meter, for the reason of
    ``why_unreadable``. ``counts_between`` says what an earlier reading, a later one and the seconds
    between them add, in units of ``joules_per_count``.
    """

    name: str
    of: PowerDomain
    sense: Callable[[], float | None]
    counts_between: Callable[[float, float, float], float]
    joules_per_count: float = 1.0
    why_unreadable: Callable[[], str] = lambda: "not readable"
    _first: float | None = None
    _last: float = 0.0
    _before: float = 0.0
    _counts: float = 0
    _failed: bool = False

    def read(self, now_seconds: float) -> None:
        """Take a reading at a moment of any clock, the same for all readings."""
        present = self.sense()
        if present is None:
            self._failed = True
            return
        if self._first is None:
            self._first = now_seconds
        else:
            self._counts += self.counts_between(self._before, present, now_seconds - self._last)
        self._before, self._last = present, now_seconds

    def energy(self) -> MeteredEnergy | str:
        """What was counted between the first and the last reading; or why nothing is known."""
        if self._failed:
            return self.why_unreadable()
        seconds = 0.0 if self._first is None else self._last - self._first
        if seconds <= 0:
            return "read less than twice"
        if self._counts <= 0:
            return f"stood still for {seconds:.3g} s"
        joules = self._counts * self.joules_per_count
        return MeteredEnergy(meter=self.name, of=self.of, joules=joules, seconds=seconds)


def counter_difference(
    before: float, present: float, _seconds: float, wraps_at: int | None = None
) -> float:
    """What a counter that starts again at ``wraps_at`` has counted; None: it never does.

    It must be read more often than it wraps around. Without a known range a step back is a reset:
    what came before it is lost.
    """
    return present - before + (wraps_at or before) * (present < before)


def _trapezoid(before: float, present: float, seconds: float) -> float:
    """The energy in joules of a power in watts."""
    return (before + present) / 2 * seconds


def rapl_meters(powercap: Path = POWERCAP) -> tuple[Meter, ...]:
    """A meter for each package and each memory that RAPL knows; none where it is absent."""
    zones = sorted(powercap.glob(_ZONES))
    names = {zone.name: read_text(zone / "name") or "" for zone in zones}
    meters: list[Meter] = []
    for zone in zones:
        name = names[zone.name]
        if name.startswith("package"):
            meters.append(_rapl_meter(zone, f"RAPL {name}", "cpu"))
        elif name == "dram":
            package = names.get(zone.name.rpartition(":")[0], "")
            meters.append(_rapl_meter(zone, f"RAPL {name} of {package}", "memory"))
    return tuple(meters)


def why_no_rapl(powercap: Path = POWERCAP) -> str:
    """Why there is no meter of RAPL."""
    if not powercap.is_dir():
        return f"{powercap}: absent, as in most virtual machines and containers"
    return f"{powercap}: has no package of RAPL"


def _rapl_meter(zone: Path, name: str, of: PowerDomain) -> Meter:
    """``energy_uj`` counts microjoules up to ``max_energy_range_uj`` and starts again."""
    file = zone / "energy_uj"
    highest = read_number(zone / "max_energy_range_uj")
    return Meter(
        name=name,
        of=of,
        sense=lambda: read_number(file),
        counts_between=partial(
            counter_difference, wraps_at=None if highest is None else highest + 1
        ),
        joules_per_count=_JOULES_PER_MICROJOULE,
        why_unreadable=lambda: why_unreadable(file),
    )


def gpu_meter(library: Library, handle: Handle, number: int) -> Meter:
    """The device's energy counter (Volta and later), or else its power integrated."""
    count, power = library.nvmlDeviceGetTotalEnergyConsumption, library.nvmlDeviceGetPowerUsage
    silent = "NVML tells neither energy nor power of this device"
    if ask(library, count, handle) is not None:
        return Meter(
            name=f"NVML energy counter of GPU {number}",
            of="gpu",
            sense=lambda: ask(library, count, handle),
            counts_between=counter_difference,
            joules_per_count=_JOULES_PER_MILLIJOULE,
        )
    return Meter(
        name=f"NVML power of GPU {number}, integrated",
        of="gpu",
        sense=lambda: ask(library, power, handle),
        counts_between=_trapezoid,
        joules_per_count=_WATTS_PER_MILLIWATT,
        why_unreadable=lambda: silent,
    )


def total_energy(meters: tuple[Meter, ...], unknown: dict[str, str]) -> Energy:
    """What all meters counted; ``unknown`` says why others are not among them."""
    told = {meter.name: meter.energy() for meter in meters}
    return Energy(
        readings=tuple(one for one in told.values() if isinstance(one, MeteredEnergy)),
        unknown=unknown | {name: one for name, one in told.items() if isinstance(one, str)},
    )
