"""The energy of a GPU between two moments, from NVIDIA's library.

The device's energy counter (Volta and later), else its power integrated over time. If a meter
cannot be read, or stands still while the device computes, the energy is unknown with the reason,
never zero. ``watch`` decides when to read.
"""

from __future__ import annotations

from collections.abc import Callable

from epochcost.measure.gpus import Handle, Library, ask
from epochcost.results.conditions import MeteredEnergy

_JOULES_PER_MILLIJOULE = 1e-3
_WATTS_PER_MILLIWATT = 1e-3


class GpuMeter:
    """Counts the energy of the device ``number`` from the first reading on."""

    def __init__(self, library: Library, handle: Handle, number: int) -> None:
        self._library, self._handle = library, handle
        self._counts = self._sense(library.nvmlDeviceGetTotalEnergyConsumption) is not None
        name = f"NVML energy counter of GPU {number}"
        self.name = name if self._counts else f"NVML power of GPU {number}, integrated"
        self._joules, self._seconds = 0.0, 0.0
        self._before: tuple[float, float] | None = None
        self._failed = False

    def _sense(self, question: Callable[..., float]) -> float | None:
        return ask(self._library, question, self._handle)

    def read(self, now_seconds: float) -> None:
        """Take a reading at a moment of any clock, the same for all readings."""
        library = self._library
        present = self._sense(
            library.nvmlDeviceGetTotalEnergyConsumption
            if self._counts
            else library.nvmlDeviceGetPowerUsage
        )
        if present is None:
            self._failed = True
            return
        if self._before is not None:
            then, value = self._before
            passed = now_seconds - then
            self._seconds += passed
            if self._counts:
                # A step back is a reset, and the energy before it is lost.
                self._joules += max(present - value, 0.0) * _JOULES_PER_MILLIJOULE
            else:
                self._joules += (value + present) / 2 * passed * _WATTS_PER_MILLIWATT
        self._before = now_seconds, present

    def energy(self) -> MeteredEnergy | str:
        """The energy between the first and the last reading, or the reason why it is unknown."""
        if self._failed:
            return "NVML tells neither energy nor power of this device"
        if self._seconds <= 0:
            return "read less than twice"
        if self._joules <= 0:
            return f"stood still for {self._seconds:.3g} s"
        return MeteredEnergy(meter=self.name, of="gpu", joules=self._joules, seconds=self._seconds)
