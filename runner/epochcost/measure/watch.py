"""Watch the machine from the parent's process while a worker takes its samples.

The worker does nothing more during its timed steps: the parent reads a few counters, ten times a
second if a GPU computes, else once a second. This module finds the devices and meters, and learns
from the worker's progress when sampling begins and ends. ``host`` and ``gpus`` interpret the
counters.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Callable, Iterator
from types import TracebackType
from typing import Self

import psutil
import pynvml

from epochcost.measure.gpus import (
    VISIBLE_DEVICES,
    DeviceWatch,
    GpuMeter,
    Library,
    open_nvml,
    visible_gpus,
)
from epochcost.measure.host import (
    HostChange,
    HostCounters,
    host_change,
    own_processes,
    read_host,
    unknown_reasons,
)
from epochcost.measure.job import Progress
from epochcost.measure.kernel_files import ControlGroups
from epochcost.results.conditions import Conditions, Energy, MeteredEnergy, Throttle
from epochcost.results.records import Measurement, Pinning
from epochcost.specs.study import Provider

NO_DEVICE = "NVML shows no device in use by the worker"


class PhaseWatch:
    """Reads counters of the machine from ``start`` to ``stop``.

    ``processes`` are the processes of the trial. ``device`` is None if no GPU is in use. ``silent``
    is the reason for each meter without a reading, by its name. ``cpus`` are those on which other
    programs would disturb the trial, None for all.
    """

    def __init__(
        self,
        processes: tuple[psutil.Process, ...],
        device: DeviceWatch | None,
        meter: GpuMeter | None,
        silent: dict[str, str],
        groups: ControlGroups | None = None,
        cpus: frozenset[int] | None = None,
    ) -> None:
        self._own, self._device, self._cpus = processes, device, cpus
        self._meter, self._silent = meter, silent
        self._groups = groups or ControlGroups()
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None
        self._before = self._counters()

    @property
    def started(self) -> bool:
        """Whether the first reading was taken."""
        return self._thread is not None

    def start(self, period_seconds: float) -> None:
        """Take the first reading, and start a thread that takes further readings."""
        self._before = self._counters()
        self._read()
        self._thread = threading.Thread(target=self._repeat, args=(period_seconds,), daemon=True)
        self._thread.start()

    def stop(self) -> tuple[Conditions, Energy | None]:
        """Take the last reading; returns the conditions and the energy since ``start``."""
        self._ended.set()
        if self._thread is not None:
            self._thread.join()
        self._read()
        changed = host_change(self._before, self._counters())
        return self._conditions(changed), self._energy()

    def _energy(self) -> Energy | None:
        if self._meter is None:
            return Energy(unknown=self._silent) if self._silent else None
        energy = self._meter.energy()
        if isinstance(energy, MeteredEnergy):
            return Energy(readings=(energy,))
        return Energy(unknown={self._meter.name: energy})

    def _counters(self) -> HostCounters:
        return read_host(self._own, self._groups, cpus=self._cpus)

    def _repeat(self, period_seconds: float) -> None:
        while not self._ended.wait(period_seconds):
            self._read()

    def _read(self) -> None:
        if self._meter is not None:
            self._meter.read(time.monotonic())
        if self._device is not None:
            self._device.read()

    def _conditions(self, changed: HostChange) -> Conditions:
        watch = self._device
        meter, memory = (watch.memory if watch else None) or (None, None)
        throttles = _throttles(changed.throttled, watch)
        return Conditions(
            seconds=changed.seconds,
            others_cpus=changed.others_cpus,
            steal_share=changed.steal_share,
            frozen_seconds=changed.frozen_seconds,
            throttles=throttles,
            devices=watch.addresses if watch else None,
            device_memory_bytes=memory,
            device_memory_meter=meter,
            unknown=dict(unknown_reasons(changed)) | dict(self._unknown(throttles, memory)),
        )

    def _unknown(
        self, throttles: tuple[Throttle, ...] | None, memory: int | None
    ) -> Iterator[tuple[str, str]]:
        if throttles is None:
            yield "throttles", "neither the kernel nor a driver reports them"
        if memory is None and (self._device is not None or "NVML" in self._silent):
            yield "device_memory_bytes", self._silent.get("NVML", NO_DEVICE)


def _throttles(
    cpu_throttled: bool | None, device: DeviceWatch | None
) -> tuple[Throttle, ...] | None:
    """Reasons why the clocks of the CPU and the GPU were lowered; None if both are unknown."""
    gpu = device.throttles if device else None
    if cpu_throttled is None:
        return gpu
    return (*(("cpu-heat",) if cpu_throttled else ()), *(gpu or ()))


# Power is integrated from these readings if a GPU has no energy counter.
_GPU_PERIOD_SECONDS = 0.1
_HOST_PERIOD_SECONDS = 1.0
_PARTIAL = "a part of a GPU (MIG) has no energy meter"


class Watch:
    """Watches the machine while a trial is sampled; entered before the worker gets its job.

    ``follow`` learns from the worker's progress when sampling begins and ends; ``completed`` adds
    conditions and energy to the measurement. ``pinning`` has the CPUs of the worker; ``device`` is
    CUDA's number of its GPU.
    """

    def __init__(
        self,
        provider: Provider,
        library: Library = pynvml,
        *,
        pinning: Pinning | None = None,
        device: int = 0,
    ) -> None:
        self._number = device
        self._cpus = None if pinning is None else pinning.affected_cpus
        self._provider, self._library = provider, library
        self._opened = contextlib.ExitStack()
        self._device: DeviceWatch | None = None
        self._silent: dict[str, str] = {}
        self._phase: PhaseWatch | None = None
        self._seen: tuple[Conditions, Energy | None] | None = None

    def __enter__(self) -> Self:
        if self._provider == "cuda":
            try:
                boards = self._opened.enter_context(open_nvml(self._library))
                gpus = visible_gpus(self._library, boards, os.environ.get(VISIBLE_DEVICES))
                for gpu in gpus[self._number : self._number + 1]:
                    self._device = DeviceWatch(self._library, gpu)
            except self._library.NVMLError as error:
                self._silent["NVML"] = str(error)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._phase is not None and self._phase.started and self._seen is None:
            self._phase.stop()
        self._opened.close()

    def follow(self, on_progress: Callable[[Progress], None]) -> Callable[[Progress], None]:
        """A function that passes progress on to ``on_progress`` and to this watch."""

        def on_both(progress: Progress) -> None:
            self._heed(progress)
            on_progress(progress)

        return on_both

    def completed(self, measurement: Measurement) -> Measurement:
        """The measurement with conditions and energy added, if the whole sampling was watched."""
        if self._seen is None:
            return measurement
        conditions, energy = self._seen
        return measurement.model_copy(update={"conditions": conditions, "energy": energy})

    def _heed(self, progress: Progress) -> None:
        """Start or stop reading when the worker's progress says that sampling begins or ends.

        Meters are opened during the warm-up, so that this disturbs no sample.
        """
        if progress.phase in ("warm-up", "sampling") and self._phase is None:
            self._phase = self._prepared()
        if self._phase is None or self._seen is not None:
            return
        if progress.phase == "sampling" and not self._phase.started:
            self._phase.start(_GPU_PERIOD_SECONDS if self._device else _HOST_PERIOD_SECONDS)
        elif progress.phase == "finishing" and self._phase.started:
            self._seen = self._phase.stop()

    def _prepared(self) -> PhaseWatch:
        processes, device = own_processes(), self._device
        if device is not None:
            device.processes = frozenset(process.pid for process in processes)
            device = device if device.in_use else None
        silent, meter = dict(self._silent), None
        if device is None:
            if self._provider == "cuda":
                silent.setdefault("NVML", NO_DEVICE)
        elif device.gpu.partial:
            silent["NVML"] = _PARTIAL
        else:
            meter = GpuMeter(self._library, device.gpu.board, device.gpu.number)
        return PhaseWatch(processes, device, meter, silent, cpus=self._cpus)
