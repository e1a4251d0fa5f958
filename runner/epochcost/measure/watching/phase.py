"""One stretch of time under watch: counters are read at its begin, at its end and in between.

What the counters mean is left to ``host``, ``devices`` and ``power``; when the stretch begins and
ends, to ``watch``.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator

import psutil

from epochcost.measure.kernel_files import ControlGroups, read_number
from epochcost.measure.watching.devices import DeviceWatch
from epochcost.measure.watching.host import HostChange, HostCounters, change, read_host, unknown_of
from epochcost.measure.watching.power import Meter, energy_of
from epochcost.results.records import Conditions, Energy, Throttle

NO_DEVICE = "NVML shows no device in use by the worker"


class Phase:
    """Watched from ``start`` to ``stop``; ``own`` are the processes of the trial.

    ``devices`` is None where no GPU is in use; ``silent`` says by a meter's name why it is not
    among ``meters``; ``cpus`` are those on which others would disturb the trial, None for all.
    """

    def __init__(
        self,
        own: tuple[psutil.Process, ...],
        devices: DeviceWatch | None,
        meters: tuple[Meter, ...],
        silent: dict[str, str],
        groups: ControlGroups | None = None,
        cpus: frozenset[int] | None = None,
    ) -> None:
        self._own, self._devices, self._cpus = own, devices, cpus
        self._meters, self._silent = meters, silent
        self._groups = groups or ControlGroups()
        self._group_bytes: int | None = None
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None
        self._before = self._counters()

    @property
    def started(self) -> bool:
        """Whether the first reading is taken."""
        return self._thread is not None

    def start(self, period_seconds: float) -> None:
        """Take the first reading, and others from a thread."""
        self._before = self._counters()
        self._read()
        self._thread = threading.Thread(target=self._repeat, args=(period_seconds,), daemon=True)
        self._thread.start()

    def stop(self) -> tuple[Conditions, Energy]:
        """Take the last reading; what happened since the first, of ``start``."""
        self._ended.set()
        if self._thread is not None:
            self._thread.join()
        self._read()
        changed = change(self._before, self._counters())
        return self._conditions(changed), energy_of(self._meters, self._silent)

    def _counters(self) -> HostCounters:
        return read_host(self._own, self._groups, cpus=self._cpus)

    def _repeat(self, period_seconds: float) -> None:
        while not self._ended.wait(period_seconds):
            self._read()

    def _read(self) -> None:
        for meter in self._meters:
            meter.read(time.monotonic())
        if self._devices is not None:
            self._devices.read()
        held = group_memory_bytes(self._groups)
        if held is not None:
            self._group_bytes = max(held, self._group_bytes or 0)

    def _conditions(self, changed: HostChange) -> Conditions:
        watch = self._devices
        meter, memory = (watch.memory if watch else None) or (None, None)
        throttles = _throttles(changed.throttled, watch)
        return Conditions(
            seconds=changed.seconds,
            others_cpus=changed.others_cpus,
            steal_share=changed.steal_share,
            frozen_seconds=changed.frozen_seconds,
            throttles=throttles,
            graphics_clock_hertz=watch.clock_hertz if watch else None,
            devices=watch.addresses if watch else None,
            device_memory_bytes=memory,
            device_memory_meter=meter,
            group_memory_bytes=self._group_bytes,
            unknown=dict(unknown_of(changed)) | dict(self._unknown(throttles, memory)),
        )

    def _unknown(
        self, throttles: tuple[Throttle, ...] | None, memory: int | None
    ) -> Iterator[tuple[str, str]]:
        if throttles is None:
            yield "throttles", "neither the kernel nor a driver tells"
        if memory is None and (self._devices is not None or "NVML" in self._silent):
            yield "device_memory_bytes", self._silent.get("NVML", NO_DEVICE)
        if self._group_bytes is None:
            yield "group_memory_bytes", "no control group counts memory"


def _throttles(
    cpu_throttled: bool | None, devices: DeviceWatch | None
) -> tuple[Throttle, ...] | None:
    """Of the CPU and of the GPUs; None where neither tells."""
    gpu = devices.throttles if devices else None
    if cpu_throttled is None:
        return gpu
    return (*(("cpu-heat",) if cpu_throttled else ()), *(gpu or ()))


def group_memory_bytes(groups: ControlGroups) -> int | None:
    """What the innermost control group that counts memory holds now."""
    files = groups.files("memory.current", "memory", "memory.usage_in_bytes")
    return next((held for file in files if (held := read_number(file))), None)
