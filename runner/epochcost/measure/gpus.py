"""Describe NVIDIA's GPUs, find CUDA's numbers for them, and read their state and energy.

Only this module uses NVIDIA's management library NVML, which may fail to answer any question. CUDA
counts the GPUs in CUDA_VISIBLE_DEVICES from 0, NVML counts all boards; both count in the order of
the PCI bus (``session.load_cuda_libraries`` sets this). The rules of the variable are in the CUDA
programming guide, "CUDA environment variables".

Energy comes from the device's counter (Volta and later), else from its power integrated over time.
If a meter cannot be read, or does not count while the device computes, the energy is unknown and
the reason is stored. ``watch`` decides when to read.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, TypeVar

import pynvml

from epochcost.results.conditions import MeteredEnergy, Throttle
from epochcost.results.environment import Gpu

AnswerT = TypeVar("AnswerT")
# The bindings have no types.
Library = Any
Handle = Any


@contextlib.contextmanager
def open_nvml(library: Library = pynvml) -> Iterator[tuple[Handle, ...]]:
    """Open NVML and yield its handles of all GPUs, in the order of the PCI bus.

    Raises ``library.NVMLError`` if there is no driver or it does not answer; lost devices are left
    out.
    """
    library.nvmlInit()
    try:
        numbers = range(library.nvmlDeviceGetCount())
        handles = [ask(library, library.nvmlDeviceGetHandleByIndex, number) for number in numbers]
        yield tuple(handle for handle in handles if handle is not None)
    finally:
        with contextlib.suppress(library.NVMLError):
            library.nvmlShutdown()


def ask(library: Library, ask: Callable[..., AnswerT], *arguments: Any) -> AnswerT | None:
    """Call a function of NVML; None if it raises an error of NVML."""
    try:
        return ask(*arguments)
    except library.NVMLError:
        return None


def decode(value: str | bytes | None) -> str | None:
    """The text of an answer of NVML, which older versions of its bindings return as bytes."""
    return value.decode(errors="replace") if isinstance(value, bytes) else value


# nvml.h, nvmlClocksEventReasons. Idle clocks and clocks set by a person are no throttling.
_THROTTLES: Mapping[int, Throttle] = MappingProxyType(
    {
        0x04: "gpu-power-cap",
        0x08: "gpu-slowdown",
        0x20: "gpu-heat",
        0x40: "gpu-heat",
        0x80: "gpu-power-brake",
    }
)
# A CUDA context alone takes more: with less growth of its memory a device is not in use.
_CONTEXT_BYTES = 64 * 2**20
_BY_PROCESS = "NVML, of the worker"
_BY_GROWTH = "NVML, growth of the whole device"


class DeviceWatch:
    """Reads the state of a trial's GPU repeatedly; it must be created before the worker starts.

    ``processes`` are the process ids of the trial, set when the worker has started.
    """

    def __init__(self, library: Library, gpu: VisibleGpu) -> None:
        self.gpu, self._library = gpu, library
        self.processes: frozenset[int] = frozenset()
        self._used_before = _used(library, gpu)
        self._reasons: int | None = None
        self._memory = {_BY_PROCESS: 0, _BY_GROWTH: 0}

    @property
    def in_use(self) -> bool:
        """Whether the trial uses the GPU: a process of it does, or the GPU's used memory has grown.

        Memory decides if the driver lists no process of the trial: in a container, the driver shows
        other process ids than the system.
        """
        return self._process_bytes() > 0 or self._growth() >= _CONTEXT_BYTES

    def read(self) -> None:
        """Read the used memory, and the reasons why clocks are lowered now."""
        library, board = self._library, self.gpu.board
        for meter, present in ((_BY_PROCESS, self._process_bytes()), (_BY_GROWTH, self._growth())):
            self._memory[meter] = max(present, self._memory[meter])
        reasons = ask(library, library.nvmlDeviceGetCurrentClocksThrottleReasons, board)
        if reasons is not None:
            self._reasons = (self._reasons or 0) | reasons

    @property
    def memory(self) -> tuple[str, int] | None:
        """The trial's peak memory on the GPU in bytes, and how it was measured; None if unknown."""
        return next((reading for reading in self._memory.items() if reading[1] > 0), None)

    @property
    def addresses(self) -> tuple[str, ...] | None:
        """The GPU's address on the PCI bus; None if the driver does not state it."""
        address = pci_address(self._library, self.gpu)
        return None if address is None else (address,)

    @property
    def throttles(self) -> tuple[Throttle, ...] | None:
        """Reasons why clocks were lowered at any reading; None if the driver states none."""
        if self._reasons is None:
            return None
        reasons = [name for bit, name in _THROTTLES.items() if self._reasons & bit]
        return tuple(dict.fromkeys(reasons))

    def _growth(self) -> int:
        """Bytes by which the GPU's used memory has grown since the trial began; 0 if unknown."""
        used, before = _used(self._library, self.gpu), self._used_before
        return 0 if used is None or before is None else max(0, used - before)

    def _process_bytes(self) -> int:
        """Bytes of GPU memory that the trial's processes hold.

        0 if the driver lists none of them.
        """
        library = self._library
        running = ask(library, library.nvmlDeviceGetComputeRunningProcesses, self.gpu.handle) or ()
        return sum(
            process.usedGpuMemory or 0 for process in running if process.pid in self.processes
        )


def pci_address(library: Library, gpu: VisibleGpu) -> str | None:
    """The GPU's PCI address, such as ``00000000:17:00.0``; None if the driver does not state it."""
    place = ask(library, library.nvmlDeviceGetPciInfo, gpu.board)
    return None if place is None else decode(place.busId)


def _used(library: Library, gpu: VisibleGpu) -> int | None:
    memory = ask(library, library.nvmlDeviceGetMemoryInfo, gpu.handle)
    return None if memory is None else int(memory.used)


VISIBLE_DEVICES = "CUDA_VISIBLE_DEVICES"


@dataclass(frozen=True)
class VisibleGpu:
    """A GPU that CUDA shows; ``number`` is its board's position on the PCI bus.

    ``handle`` is the board, or the part of it (MIG) that a process uses. Power and clocks are those
    of ``board``.
    """

    number: int
    handle: Handle
    board: Handle

    @property
    def partial(self) -> bool:
        """Whether the GPU is a part of a board, so that other processes may use the same board."""
        return self.handle is not self.board


def visible_gpus(
    library: Library, boards: Sequence[Handle], visible_devices: str | None
) -> tuple[VisibleGpu, ...]:
    """The GPUs that CUDA shows, in its order; ``visible_devices`` is CUDA_VISIBLE_DEVICES or None.

    If an entry names no GPU, CUDA ignores it and all later entries; if an entry is repeated, CUDA
    shows no GPU.
    """
    if visible_devices is None:
        return tuple(VisibleGpu(number, board, board) for number, board in enumerate(boards))
    gpus: list[VisibleGpu] = []
    for entry in visible_devices.split(","):
        gpu = _named(library, boards, entry.strip())
        if gpu is None:
            break
        if any(gpu.handle is earlier.handle for earlier in gpus):
            return ()
        gpus.append(gpu)
    return tuple(gpus)


def _named(library: Library, boards: Sequence[Handle], entry: str) -> VisibleGpu | None:
    """The GPU that an entry of CUDA_VISIBLE_DEVICES names.

    An entry is a number, the start of a GPU's UUID, or the UUID of a part (MIG) of a GPU.
    """
    if entry.isdecimal():
        number = int(entry)
        return _board(boards, number) if number < len(boards) else None
    if entry.startswith("MIG-"):
        return _part(library, boards, entry)
    uuids = [_uuid(library, board) for board in boards]
    matches = [number for number, uuid in enumerate(uuids) if entry and uuid.startswith(entry)]
    return _board(boards, matches[0]) if len(matches) == 1 else None


def _board(boards: Sequence[Handle], number: int) -> VisibleGpu:
    return VisibleGpu(number, boards[number], boards[number])


def _part(library: Library, boards: Sequence[Handle], entry: str) -> VisibleGpu | None:
    part = ask(library, library.nvmlDeviceGetHandleByUUID, entry)
    if part is None:
        return None
    parent = ask(library, library.nvmlDeviceGetDeviceHandleFromMigDeviceHandle, part)
    uuids = [_uuid(library, board) for board in boards]
    uuid = "" if parent is None else _uuid(library, parent)
    if not uuid or uuid not in uuids:
        return None
    number = uuids.index(uuid)
    return VisibleGpu(number, part, boards[number])


def _uuid(library: Library, handle: Handle) -> str:
    """The UUID of a device; empty if the driver does not state it."""
    return decode(ask(library, library.nvmlDeviceGetUUID, handle)) or ""


_WATTS_PER_MILLIWATT = 1e-3


def list_gpus(library: Library = pynvml) -> tuple[tuple[Gpu, ...], str | None]:
    """Describe all GPUs of the machine.

    Also returns the reason if a driver is installed but does not answer, else None.
    """
    try:
        with open_nvml(library) as boards:
            return _described(library, visible_gpus(library, boards, None)), None
    except library.NVMLError_LibraryNotFound:
        return (), None
    except library.NVMLError as error:
        return (), f"NVML: {error}"


def shown_gpus(library: Library = pynvml) -> tuple[Gpu, ...]:
    """Describe the GPUs that CUDA shows to child processes; empty without a driver."""
    try:
        with open_nvml(library) as boards:
            visible_devices = os.environ.get(VISIBLE_DEVICES)
            return _described(library, visible_gpus(library, boards, visible_devices))
    except library.NVMLError:
        return ()


def _described(library: Library, list_gpus: tuple[VisibleGpu, ...]) -> tuple[Gpu, ...]:
    driver = decode(ask(library, library.nvmlSystemGetDriverVersion))
    return tuple(_gpu(library, gpu, driver) for gpu in list_gpus)


def _gpu(library: Library, gpu: VisibleGpu, driver: str | None) -> Gpu:
    handle, board = gpu.handle, gpu.board
    memory = ask(library, library.nvmlDeviceGetMemoryInfo, handle)
    limit = ask(library, library.nvmlDeviceGetEnforcedPowerLimit, board)
    mig = ask(library, library.nvmlDeviceGetMigMode, board)
    capability = ask(library, library.nvmlDeviceGetCudaComputeCapability, board)
    return Gpu(
        name=decode(ask(library, library.nvmlDeviceGetName, handle)),
        memory_bytes=int(memory.total) or None if memory is not None else None,
        driver=driver,
        power_limit_watts=limit * _WATTS_PER_MILLIWATT if limit else None,
        # A pair: the present mode, and the mode after the next reset.
        mig=bool(mig[0]) if mig is not None else None,
        pci_address=pci_address(library, gpu),
        compute_capability=None if capability is None else ".".join(map(str, capability)),
    )


_JOULES_PER_MILLIJOULE = 1e-3


class GpuMeter:
    """Measures the energy that a GPU uses from the first reading on."""

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
        """Take a reading at ``now_seconds``, on a clock that is the same for all readings."""
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
                # A lower count follows a reset, which loses the energy before it.
                self._joules += max(present - value, 0.0) * _JOULES_PER_MILLIJOULE
            else:
                self._joules += (value + present) / 2 * passed * _WATTS_PER_MILLIWATT
        self._before = now_seconds, present

    def energy(self) -> MeteredEnergy | str:
        """The energy from the first to the last reading, or the reason why it is unknown."""
        if self._failed:
            return "NVML gives neither energy nor power of this device"
        if self._seconds <= 0:
            return "read less than twice"
        if self._joules <= 0:
            return f"stood still for {self._seconds:.3g} s"
        return MeteredEnergy(meter=self.name, of="gpu", joules=self._joules, seconds=self._seconds)
