"""Watches the machine while a worker takes its samples, from the parent's process.

Nothing is added to the timed steps: the parent reads a few counters ten times a second where a GPU
works, once a second elsewhere (``phase``). This module finds the devices and the meters, and knows
from the worker's progress when sampling begins and ends.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Self

import pynvml

from epochcost.measure.job import Progress
from epochcost.measure.watching.devices import Device, DeviceWatch, devices_in_use, present_devices
from epochcost.measure.watching.host import own_processes
from epochcost.measure.watching.nvml import Library, opened
from epochcost.measure.watching.phase import NO_DEVICE, Phase
from epochcost.measure.watching.power import POWERCAP, Meter, gpu_meter, rapl_meters, why_no_rapl
from epochcost.measure.watching.visible import VISIBLE_DEVICES, VisibleGpu, visible_gpus
from epochcost.results.pinning import Pinning
from epochcost.results.records import Conditions, Energy, Measurement
from epochcost.specs.study import Provider

# Power is integrated from these readings where a GPU has no energy counter.
_GPU_PERIOD_SECONDS = 0.1
_HOST_PERIOD_SECONDS = 1.0
_PARTIAL = "a part of a GPU (MIG) has no energy meter of its own"


class Watch:
    """Watches the sampling phase of one trial; entered before its job is handed over.

    ``follow`` passes progress on and learns from it when sampling begins and ends; ``completed``
    puts what was seen into the measurement. ``pinning``: where the worker is pinned to;
    ``device``: the GPU that it takes, as CUDA counts.
    """

    def __init__(
        self,
        provider: Provider,
        library: Library = pynvml,
        powercap: Path = POWERCAP,
        *,
        pinning: Pinning | None = None,
        device: int = 0,
    ) -> None:
        self._number = device
        self._cpus = None if pinning is None else pinning.neighbourhood
        self._provider, self._library, self._powercap = provider, library, powercap
        self._opened = contextlib.ExitStack()
        self._devices: tuple[Device, ...] = ()
        self._silent: dict[str, str] = {}
        self._phase: Phase | None = None
        self._seen: tuple[Conditions, Energy] | None = None

    def __enter__(self) -> Self:
        if self._provider == "cuda":
            try:
                boards = self._opened.enter_context(opened(self._library))
                gpus = visible_gpus(self._library, boards, os.environ.get(VISIBLE_DEVICES))
                self._devices = present_devices(self._library, self._chosen(gpus))
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
        """The same listener, while this one listens too."""

        def both(progress: Progress) -> None:
            self._heed(progress)
            on_progress(progress)

        return both

    def completed(self, measurement: Measurement) -> Measurement:
        """The measurement with conditions and energy, where sampling was seen from end to end."""
        if self._seen is None:
            return measurement
        conditions, energy = self._seen
        return measurement.model_copy(update={"conditions": conditions, "energy": energy})

    def _heed(self, progress: Progress) -> None:
        """Prepare during the warm-up, when looking for processes disturbs no sample."""
        if progress.phase in ("warm-up", "sampling") and self._phase is None:
            self._phase = self._prepared()
        if self._phase is None or self._seen is not None:
            return
        if progress.phase == "sampling" and not self._phase.started:
            self._phase.start(_GPU_PERIOD_SECONDS if self._devices else _HOST_PERIOD_SECONDS)
        elif progress.phase == "finishing" and self._phase.started:
            self._seen = self._phase.stop()

    def _prepared(self) -> Phase:
        own = own_processes()
        processes = frozenset(process.pid for process in own)
        devices = self._used(processes)
        meters, silent = self._meters(devices)
        watch = DeviceWatch(self._library, devices, processes) if devices else None
        return Phase(own, watch, meters, silent, cpus=self._cpus)

    def _chosen(self, gpus: tuple[VisibleGpu, ...]) -> tuple[VisibleGpu, ...]:
        return gpus[self._number : self._number + 1]

    def _used(self, processes: frozenset[int]) -> tuple[Device, ...]:
        return devices_in_use(self._library, self._devices, processes) if self._devices else ()

    def _meters(self, devices: tuple[Device, ...]) -> tuple[tuple[Meter, ...], dict[str, str]]:
        cpu, silent = rapl_meters(self._powercap), dict(self._silent)
        if not cpu:
            silent["RAPL"] = why_no_rapl(self._powercap)
        if self._provider == "cuda" and not devices:
            silent.setdefault("NVML", NO_DEVICE)
        if any(one.gpu.partial for one in devices):
            silent["NVML"] = _PARTIAL
        whole = (one.gpu for one in devices if not one.gpu.partial)
        gpu = tuple(gpu_meter(self._library, one.board, one.number) for one in whole)
        return (*cpu, *gpu), silent
