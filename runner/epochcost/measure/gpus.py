"""Describe NVIDIA's GPUs, find CUDA's numbers for them, and read their state and energy.

CUDA numbers only the GPUs in CUDA_VISIBLE_DEVICES (CUDA programming guide, "CUDA environment
variables"), but NVML numbers all GPUs. Both number GPUs in the order of the PCI bus. Energy comes
from the GPU's counter (Volta and later).
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

import pynvml

from epochcost.results.environment import Energy, Gpu, MeteredEnergy, Throttle

AnswerT = TypeVar("AnswerT")
# The Python package of NVML has no type annotations.
Handle = Any


@contextlib.contextmanager
def open_nvml() -> Iterator[tuple[Handle, ...]]:
    """Open NVML and yield NVML's handles of all GPUs, in the order of the PCI bus.

    Raises ``pynvml.NVMLError`` without a working driver. GPUs without a handle are omitted.
    """
    pynvml.nvmlInit()
    try:
        numbers = range(pynvml.nvmlDeviceGetCount())
        handles = [_ask(pynvml.nvmlDeviceGetHandleByIndex, number) for number in numbers]
        yield tuple(handle for handle in handles if handle is not None)
    finally:
        with contextlib.suppress(pynvml.NVMLError):
            pynvml.nvmlShutdown()


def _ask(function: Callable[..., AnswerT], *arguments: Any) -> AnswerT | None:
    """Call a function of NVML with ``arguments``; None if it raises NVMLError."""
    try:
        return function(*arguments)
    except pynvml.NVMLError:
        return None


# From nvmlClocksEventReasons in nvml.h, without idle clocks and clocks that a person has set.
_THROTTLES: Mapping[int, Throttle] = {
    0x04: "gpu-power-cap",
    0x08: "gpu-slowdown",
    0x20: "gpu-heat",
    0x40: "gpu-heat",
    0x80: "gpu-power-brake",
}
_WATTS_PER_MILLIWATT = 1e-3
_JOULES_PER_MILLIJOULE = 1e-3
# A GPU whose used memory grows by less is not in use, since a CUDA context alone takes more.
_CONTEXT_BYTES = 64 * 2**20
_BY_PROCESS = "NVML, of the worker"
_BY_GROWTH = "NVML, growth of the whole device"


class DeviceWatch:
    """Reads the state of a trial's GPU; must be created before the worker gets its job.

    ``number`` is CUDA's number of the GPU. The owner of this object sets ``processes``, the process
    ids of the trial, after the worker has started.
    """

    def __init__(self, handle: Handle, number: int) -> None:
        self._handle, self._number = handle, number
        self.processes: frozenset[int] = frozenset()
        self._used_before = self._used()
        self._reasons: int | None = None
        self._memory = {_BY_PROCESS: 0, _BY_GROWTH: 0}
        self._energies: list[int | None] = []

    @property
    def in_use(self) -> bool:
        """Whether a process of the trial uses the GPU, or the GPU's used memory has grown.

        In a container, the driver's process ids may differ, so that only the growth is seen.
        """
        return self._trial_process_bytes() > 0 or self._used_memory_growth() >= _CONTEXT_BYTES

    def read(self) -> None:
        """Read the GPU's state: update peak memory, and add reasons why clocks are lowered now."""
        for meter, present in (
            (_BY_PROCESS, self._trial_process_bytes()),
            (_BY_GROWTH, self._used_memory_growth()),
        ):
            self._memory[meter] = max(present, self._memory[meter])
        reasons = _ask(pynvml.nvmlDeviceGetCurrentClocksThrottleReasons, self._handle)
        if reasons is not None:
            self._reasons = (self._reasons or 0) | reasons

    def read_energy(self) -> None:
        """Store a reading of the energy counter; call this when the sampling starts and ends."""
        self._energies.append(_ask(pynvml.nvmlDeviceGetTotalEnergyConsumption, self._handle))

    def energy(self, seconds: float) -> Energy:
        """The energy between first and last reading, ``seconds`` apart, or why it is unknown."""
        first, last = self._energies[0], self._energies[-1]
        if _is_part(self._handle):
            reason = "a part of a GPU (MIG) has no energy meter"
        elif first is None or last is None:
            reason = "the driver counts no energy of this device"
        elif last <= first:
            reason = f"the energy counter stood still for {seconds:.3g} s"
        else:
            name = f"NVML energy counter of GPU {self._number}"
            joules = (last - first) * _JOULES_PER_MILLIJOULE
            metered = MeteredEnergy(meter=name, of="gpu", joules=joules, seconds=seconds)
            return Energy(readings=(metered,))
        return Energy(unknown={"NVML": reason})

    @property
    def memory(self) -> tuple[str, int] | None:
        """The trial's peak GPU memory: name of the meter, and bytes; None if unknown."""
        return next((reading for reading in self._memory.items() if reading[1] > 0), None)

    @property
    def address(self) -> str | None:
        """The GPU's PCI address; None if the driver does not state it."""
        return _pci_address(self._handle)

    @property
    def throttles(self) -> tuple[Throttle, ...] | None:
        """Every reason for lowered clocks in any reading; None if the driver states no reasons."""
        if self._reasons is None:
            return None
        reasons = [name for bit, name in _THROTTLES.items() if self._reasons & bit]
        return tuple(dict.fromkeys(reasons))

    def _used_memory_growth(self) -> int:
        """By how many bytes the GPU's used memory grew since the trial began; 0 if unknown."""
        used, before = self._used(), self._used_before
        return 0 if used is None or before is None else max(0, used - before)

    def _trial_process_bytes(self) -> int:
        running = _ask(pynvml.nvmlDeviceGetComputeRunningProcesses, self._handle) or ()
        return sum(
            process.usedGpuMemory or 0 for process in running if process.pid in self.processes
        )

    def _used(self) -> int | None:
        memory = _ask(pynvml.nvmlDeviceGetMemoryInfo, self._handle)
        return None if memory is None else int(memory.used)


def _pci_address(handle: Handle) -> str | None:
    """The GPU's PCI address, such as ``00000000:17:00.0``; None if the driver does not state it."""
    place = _ask(pynvml.nvmlDeviceGetPciInfo, handle)
    return None if place is None else str(place.busId)


def _is_part(handle: Handle) -> bool:
    """Whether ``handle`` stands for a part of a GPU (MIG); other programs may use other parts."""
    return bool(_ask(pynvml.nvmlDeviceIsMigDeviceHandle, handle))


_VISIBLE_DEVICES = "CUDA_VISIBLE_DEVICES"


def visible_gpus(boards: Sequence[Handle]) -> tuple[Handle, ...]:
    """The handles of the GPUs that CUDA shows to programs, in CUDA's order.

    CUDA_VISIBLE_DEVICES, if set, lists numbers or complete UUIDs of GPUs or of their parts (MIG).
    CUDA ignores an entry that names no GPU, and all later entries.
    """
    visible_devices = os.environ.get(_VISIBLE_DEVICES)
    if visible_devices is None:
        return tuple(boards)
    handles: list[Handle] = []
    for entry in map(str.strip, visible_devices.split(",")):
        if entry.isdecimal():
            handle = boards[int(entry)] if int(entry) < len(boards) else None
        else:
            handle = _ask(pynvml.nvmlDeviceGetHandleByUUID, entry)
        if handle is None:
            break
        handles.append(handle)
    return tuple(handles)


def list_gpus() -> tuple[tuple[Gpu, ...], str | None]:
    """All GPUs, and the error of an installed driver that does not answer, else None."""
    try:
        with open_nvml() as boards:
            return _described(boards), None
    except pynvml.NVMLError_LibraryNotFound:
        return (), None
    except pynvml.NVMLError as error:
        return (), f"NVML: {error}"


def shown_gpus() -> tuple[Gpu, ...]:
    """Describe the GPUs that CUDA shows to child processes; empty without a driver."""
    try:
        with open_nvml() as boards:
            return _described(visible_gpus(boards))
    except pynvml.NVMLError:
        return ()


def misnaming_reason(device: int) -> str | None:
    """Why results of CUDA's GPU ``device`` would have another GPU's name; None if they would not.

    Stored results name the GPU by its number among all GPUs of the machine.
    """
    shown, gpus = shown_gpus(), list_gpus()[0]
    if device >= min(len(shown), len(gpus)):
        return None
    used, named = str(shown[device].name), str(gpus[device].name)
    # The name of a part of a GPU (MIG) begins with the name of its GPU.
    if used.partition(" MIG ")[0] == named:
        return None
    return (
        f"{_VISIBLE_DEVICES} makes the {used} GPU {device}, but results would name the {named}: "
        "unset the variable; `run` and `ceilings` choose a GPU with --device"
    )


def _described(handles: Sequence[Handle]) -> tuple[Gpu, ...]:
    driver = _ask(pynvml.nvmlSystemGetDriverVersion)
    return tuple(_gpu(handle, driver) for handle in handles)


def _gpu(handle: Handle, driver: str | None) -> Gpu:
    memory = _ask(pynvml.nvmlDeviceGetMemoryInfo, handle)
    limit = _ask(pynvml.nvmlDeviceGetEnforcedPowerLimit, handle)
    mig = _ask(pynvml.nvmlDeviceGetMigMode, handle)
    capability = _ask(pynvml.nvmlDeviceGetCudaComputeCapability, handle)
    return Gpu(
        name=_ask(pynvml.nvmlDeviceGetName, handle),
        memory_bytes=int(memory.total) or None if memory is not None else None,
        driver=driver,
        power_limit_watts=limit * _WATTS_PER_MILLIWATT if limit else None,
        # NVML returns a pair: the current mode, and the mode after the next reset.
        mig=bool(mig[0]) if mig is not None else _is_part(handle) or None,
        pci_address=_pci_address(handle),
        compute_capability=None if capability is None else ".".join(map(str, capability)),
    )
