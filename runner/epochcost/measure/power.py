"""Energy meters: which there are, and what each counted between two moments.

CPUs: RAPL through the kernel's powercap files. GPUs: NVML's energy counter, or where a device has
none its power integrated over time. A meter that cannot be read, or that stands still while a
machine computes, is unknown with the reason, never zero. When to read is left to ``watch``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, Protocol

from epochcost.measure.gpus import Handle, Library, ask
from epochcost.measure.kernel_files import read_number, read_text, why_unreadable
from epochcost.results.records import Energy, MeteredEnergy

PowerDomain = Literal["cpu", "memory", "gpu"]
POWERCAP = Path("/sys/class/powercap")
# Zones that add up to what RAPL sees: `core` and `uncore` are parts of a package, `psys` holds
# packages. `intel-rapl-mmio` shows the same packages again (the kernel's power/powercap).
_ZONES = "intel-rapl:*"
_JOULES_PER_MICROJOULE = 1e-6
_JOULES_PER_MILLIJOULE = 1e-3
_WATTS_PER_MILLIWATT = 1e-3


class Meter(Protocol):
    """Something that counts energy from its first reading on."""

    name: str

    def read(self, now_seconds: float) -> None:
        """Take a reading at a moment of any clock, the same for all readings."""
        ...

    def energy(self) -> MeteredEnergy | str:
        """What was counted between the first and the last reading; or why nothing is known."""
        ...


@dataclass
class ReadingSpan:
    """The first and the last moment of readings, and how many failed."""

    first: float | None = None
    last: float = 0.0
    failed: int = 0

    def extend(self, now_seconds: float) -> None:
        """Take in a moment."""
        self.first = now_seconds if self.first is None else self.first
        self.last = now_seconds

    @property
    def seconds(self) -> float:
        """The time covered; zero before the second reading."""
        return 0.0 if self.first is None else self.last - self.first


@dataclass
class CountingMeter:
    """A meter that counts up and starts again at ``wraps_at`` (counts); None: it never does.

    It must be read more often than it wraps around.
    """

    name: str
    of: PowerDomain
    count: Callable[[], int | None]
    joules_per_count: float
    wraps_at: int | None = None
    why_unreadable: Callable[[], str] = lambda: "not readable"
    _span: ReadingSpan = field(default_factory=ReadingSpan)
    _before: int | None = None
    _counted: int = 0

    def read(self, now_seconds: float) -> None:
        """Add what was counted since the last reading."""
        present = self.count()
        if present is None:
            self._span.failed += 1
            return
        if self._before is not None:
            self._counted += self._since(present, self._before)
        self._before = present
        self._span.extend(now_seconds)

    def _since(self, present: int, before: int) -> int:
        # Without a known range a step back is a reset: what came before it is lost.
        return present - before + (self.wraps_at or before) * (present < before)

    def energy(self) -> MeteredEnergy | str:
        """The counts in joules."""
        if self._span.failed:
            return self.why_unreadable()
        return _metered(self.name, self.of, self._counted * self.joules_per_count, self._span)


@dataclass
class IntegratingMeter:
    """A meter that shows power only: the trapezoids between its readings."""

    name: str
    of: PowerDomain
    watts: Callable[[], float | None]
    _span: ReadingSpan = field(default_factory=ReadingSpan)
    _before: float | None = None
    _joules: float = 0.0

    def read(self, now_seconds: float) -> None:
        """Add the power since the last reading times its time."""
        present = self.watts()
        if present is None:
            self._span.failed += 1
            return
        if self._before is not None:
            self._joules += (self._before + present) / 2 * (now_seconds - self._span.last)
        self._before = present
        self._span.extend(now_seconds)

    def energy(self) -> MeteredEnergy | str:
        """The integral in joules."""
        if self._span.failed:
            return "NVML tells neither energy nor power of this device"
        return _metered(self.name, self.of, self._joules, self._span)


def _metered(name: str, of: PowerDomain, joules: float, span: ReadingSpan) -> MeteredEnergy | str:
    if span.seconds <= 0:
        return "read less than twice"
    if joules <= 0:
        return f"stood still for {span.seconds:.3g} s"
    return MeteredEnergy(meter=name, of=of, joules=joules, seconds=span.seconds)


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
    """The reason where there is no meter."""
    if not powercap.is_dir():
        return f"{powercap}: absent, as in most virtual machines and containers"
    return f"{powercap}: has no package of RAPL"


def _rapl_meter(zone: Path, name: str, of: PowerDomain) -> CountingMeter:
    """``energy_uj`` counts microjoules up to ``max_energy_range_uj`` and starts again."""
    file = zone / "energy_uj"
    highest = read_number(zone / "max_energy_range_uj")
    return CountingMeter(
        name=name,
        of=of,
        count=lambda: read_number(file),
        joules_per_count=_JOULES_PER_MICROJOULE,
        wraps_at=None if highest is None else highest + 1,
        why_unreadable=lambda: why_unreadable(file),
    )


def gpu_meter(library: Library, handle: Handle, number: int) -> Meter:
    """The device's energy counter (Volta and later), or else its power integrated."""
    if ask(library, library.nvmlDeviceGetTotalEnergyConsumption, handle) is not None:
        return CountingMeter(
            name=f"NVML energy counter of GPU {number}",
            of="gpu",
            count=lambda: ask(library, library.nvmlDeviceGetTotalEnergyConsumption, handle),
            joules_per_count=_JOULES_PER_MILLIJOULE,
        )

    def watts() -> float | None:
        milliwatts = ask(library, library.nvmlDeviceGetPowerUsage, handle)
        return None if milliwatts is None else milliwatts * _WATTS_PER_MILLIWATT

    return IntegratingMeter(name=f"NVML power of GPU {number}, integrated", of="gpu", watts=watts)


def total_energy(meters: tuple[Meter, ...], unknown: dict[str, str]) -> Energy:
    """What all meters counted; ``unknown`` says why others are not among them."""
    told = {meter.name: meter.energy() for meter in meters}
    return Energy(
        readings=tuple(one for one in told.values() if isinstance(one, MeteredEnergy)),
        unknown=unknown | {name: one for name, one in told.items() if isinstance(one, str)},
    )
