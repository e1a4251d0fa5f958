"""Watch the machine from the parent's process while a worker takes its samples.

The host's counters are read before and after the sampling, the GPU's state ten times a second.
"""

from __future__ import annotations

import contextlib
import threading
from typing import Any, Self

import psutil
import pynvml

from epochcost.measure.gpus import DeviceWatch, open_nvml, visible_gpus
from epochcost.measure.host import HostCounters, host_change, own_processes, read_host
from epochcost.measure.job import Progress
from epochcost.results.environment import Conditions, Energy
from epochcost.results.records import Measurement, Pinning
from epochcost.specs.study import Provider

NO_DEVICE = "NVML shows no device in use by the worker"


# Short enough to notice clocks that are lowered, and memory that is used, for a short time.
_GPU_PERIOD_SECONDS = 0.1


class Watch:
    """Watches the machine while a trial is sampled; enter it before the worker gets its job.

    ``device`` is CUDA's number of the worker's GPU.
    """

    def __init__(
        self, provider: Provider, *, pinning: Pinning | None = None, device: int = 0
    ) -> None:
        self._provider, self._number = provider, device
        # The CPUs on which other programs would disturb the trial; None for all CPUs.
        self._cpus = None if pinning is None else pinning.affected_cpus
        self._opened = contextlib.ExitStack()
        self._device: DeviceWatch | None = None
        self._no_device: str | None = NO_DEVICE if provider == "cuda" else None
        self._own: tuple[psutil.Process, ...] | None = None
        self._before: HostCounters | None = None
        self._begun_seconds = 0.0
        self._seen: tuple[Conditions, Energy | None] | None = None
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._read_device, daemon=True)

    def __enter__(self) -> Self:
        if self._provider == "cuda":
            try:
                boards = self._opened.enter_context(open_nvml())
                for handle in visible_gpus(boards)[self._number : self._number + 1]:
                    self._device = DeviceWatch(handle, self._number)
            except pynvml.NVMLError as error:
                self._no_device = str(error)
        return self

    def __exit__(self, *_: object) -> None:
        self._end_thread()
        self._opened.close()

    def follow(self, progress: Progress) -> None:
        """Watch the phase that the worker's ``progress`` states."""
        if progress.phase in ("warm-up", "sampling") and self._own is None:
            # Looked up during the warm-up, to disturb no sample.
            self._own = own_processes()
            self._keep_used_device(self._own)
        if progress.phase == "sampling" and self._before is None:
            self._before, self._begun_seconds = self._counters(), progress.elapsed_seconds
            if self._device is not None:
                self._device.read_energy()
                self._thread.start()
        elif progress.phase == "finishing" and self._before is not None and self._seen is None:
            self._end_thread()
            # The worker's clock: on a busy machine, its messages arrive late.
            sampled_seconds = progress.elapsed_seconds - self._begun_seconds
            self._seen = self._conditions_and_energy(
                host_change(self._before, self._counters()), sampled_seconds
            )

    def completed(self, measurement: Measurement) -> Measurement:
        """``measurement``, with conditions and energy added if sampling was watched to its end."""
        if self._seen is None:
            return measurement
        conditions, energy = self._seen
        return measurement.model_copy(update={"conditions": conditions, "energy": energy})

    def _keep_used_device(self, own: tuple[psutil.Process, ...]) -> None:
        if self._device is not None:
            self._device.processes = frozenset(process.pid for process in own)
            if not self._device.in_use:
                self._device = None

    def _counters(self) -> HostCounters:
        return read_host(self._own or (), cpus=self._cpus)

    def _read_device(self) -> None:
        assert self._device is not None, "the thread is started only with a device"
        self._device.read()
        while not self._ended.wait(_GPU_PERIOD_SECONDS):
            self._device.read()

    def _end_thread(self) -> None:
        self._ended.set()
        if self._thread.is_alive():
            self._thread.join()

    def _conditions_and_energy(
        self, host: Conditions, sampled_seconds: float
    ) -> tuple[Conditions, Energy | None]:
        device, unknown, energy = self._device, dict(host.unknown), None
        update: dict[str, Any] = {"seconds": sampled_seconds}
        if device is not None:
            device.read()
            device.read_energy()
            energy = device.energy(host.seconds)
            meter, memory = device.memory or (None, None)
            update |= {
                "devices": None if device.address is None else (device.address,),
                "device_memory_bytes": memory,
                "device_memory_meter": meter,
            }
            if device.throttles is not None:
                update["throttles"] = (*(host.throttles or ()), *device.throttles)
        elif self._no_device is not None:
            energy = Energy(unknown={"NVML": self._no_device})
        if update.get("throttles", host.throttles) is None:
            unknown["throttles"] = "neither the kernel nor a driver reports them"
        if self._no_device is not None and update.get("device_memory_bytes") is None:
            unknown["device_memory_bytes"] = self._no_device
        return host.model_copy(update=update | {"unknown": unknown}), energy
