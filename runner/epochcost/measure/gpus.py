"""NVIDIA's GPUs: what they are, which ones CUDA shows, what they did while a trial was timed.

Owns the opening of NVIDIA's management library, of which a device that answers one question and not
another is no error; memory, clocks and reasons to slow down; and the numbering: CUDA counts what
CUDA_VISIBLE_DEVICES leaves, from 0, NVML counts every board, and both go by the PCI bus
(``session.load_cuda_libraries`` sees to that). The rules of the variable are those of the CUDA
programming guide, "CUDA environment variables".
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, TypeVar

import pynvml

from epochcost.results.conditions import Throttle
from epochcost.results.environment import Gpu

AnswerT = TypeVar("AnswerT")
# The bindings have no types; a handle means nothing outside them.
Library = Any
Handle = Any


@contextlib.contextmanager
def open_nvml(library: Library = pynvml) -> Iterator[tuple[Handle, ...]]:
    """Yield the handles of all devices, in the order of the PCI bus.

    Raises ``library.NVMLError`` where there is no driver or it does not answer; one device that is
    lost does not hide the others.
    """
    library.nvmlInit()
    try:
        numbers = range(library.nvmlDeviceGetCount())
        handles = [ask(library, library.nvmlDeviceGetHandleByIndex, one) for one in numbers]
        yield tuple(handle for handle in handles if handle is not None)
    finally:
        with contextlib.suppress(library.NVMLError):
            library.nvmlShutdown()


def ask(library: Library, ask: Callable[..., AnswerT], *arguments: Any) -> AnswerT | None:
    """Ask NVIDIA's library one question; None where it has no answer."""
    try:
        return ask(*arguments)
    except library.NVMLError:
        return None


def decode(value: str | bytes | None) -> str | None:
    """The text of an answer, which older versions of the bindings give as bytes."""
    return value.decode(errors="replace") if isinstance(value, bytes) else value


# nvml.h, nvmlClocksEventReasons. Idle clocks and clocks that a person has set are no throttling.
_THROTTLES: Mapping[int, Throttle] = MappingProxyType(
    {
        0x04: "gpu-power-cap",
        0x08: "gpu-slowdown",
        0x20: "gpu-heat",
        0x40: "gpu-heat",
        0x80: "gpu-power-brake",
    }
)
# A context of CUDA alone takes more: a device that holds less than this more is not in use.
_CONTEXT_BYTES = 64 * 2**20
_BY_PROCESS = "NVML, of the worker"
_BY_GROWTH = "NVML, growth of the whole device"


class DeviceWatch:
    """Follows the GPU of a trial from reading to reading; made before the worker starts.

    ``processes`` are those of the trial, known once the worker has started.
    """

    def __init__(self, library: Library, gpu: VisibleGpu) -> None:
        self.gpu, self._library = gpu, library
        self.processes: frozenset[int] = frozenset()
        self._used_before = _used(library, gpu)
        self._reasons: int | None = None
        self._memory = {_BY_PROCESS: 0, _BY_GROWTH: 0}

    @property
    def in_use(self) -> bool:
        """Whether one of the processes runs on it.

        In a container the driver shows other process ids than the system; there, whether its
        memory has grown since.
        """
        return self._held() > 0 or self._growth() >= _CONTEXT_BYTES

    def read(self) -> None:
        """Read memory and the reasons to lower clocks."""
        library, board = self._library, self.gpu.board
        for meter, present in ((_BY_PROCESS, self._held()), (_BY_GROWTH, self._growth())):
            self._memory[meter] = max(present, self._memory[meter])
        reasons = ask(library, library.nvmlDeviceGetCurrentClocksThrottleReasons, board)
        if reasons is not None:
            self._reasons = (self._reasons or 0) | reasons

    @property
    def memory(self) -> tuple[str, int] | None:
        """The meter and the most that was held; None where no meter could tell."""
        return next((told for told in self._memory.items() if told[1] > 0), None)

    @property
    def addresses(self) -> tuple[str, ...] | None:
        """Its address on the PCI bus, alone; None where the driver does not tell."""
        address = pci_address(self._library, self.gpu)
        return None if address is None else (address,)

    @property
    def throttles(self) -> tuple[Throttle, ...] | None:
        """Why clocks were lowered at any reading; None where the driver does not tell."""
        if self._reasons is None:
            return None
        seen = [name for bit, name in _THROTTLES.items() if self._reasons & bit]
        return tuple(dict.fromkeys(seen))

    def _growth(self) -> int:
        """Bytes in use beyond those before the trial; 0 where the driver does not tell."""
        used, before = _used(self._library, self.gpu), self._used_before
        return 0 if used is None or before is None else max(0, used - before)

    def _held(self) -> int:
        """Bytes that the processes hold; 0 where none of them is listed."""
        library = self._library
        running = ask(library, library.nvmlDeviceGetComputeRunningProcesses, self.gpu.handle) or ()
        return sum(one.usedGpuMemory or 0 for one in running if one.pid in self.processes)


def pci_address(library: Library, gpu: VisibleGpu) -> str | None:
    """Where the board sits, such as ``00000000:17:00.0``; None where the driver does not tell."""
    place = ask(library, library.nvmlDeviceGetPciInfo, gpu.board)
    return None if place is None else decode(place.busId)


def _used(library: Library, gpu: VisibleGpu) -> int | None:
    memory = ask(library, library.nvmlDeviceGetMemoryInfo, gpu.handle)
    return None if memory is None else int(memory.used)


VISIBLE_DEVICES = "CUDA_VISIBLE_DEVICES"


@dataclass(frozen=True)
class VisibleGpu:
    """A GPU that CUDA shows; ``number`` is its board's on the bus.

    ``handle`` is of what a process gets: a board, or a part of one (MIG). ``board`` is what draws
    power and has clocks.
    """

    number: int
    handle: Handle
    board: Handle

    @property
    def partial(self) -> bool:
        """Whether other processes may be on the same board."""
        return self.handle is not self.board


def visible_gpus(
    library: Library, boards: Sequence[Handle], shown: str | None
) -> tuple[VisibleGpu, ...]:
    """The GPUs in the order in which CUDA numbers them; ``shown`` is the variable, None: not set.

    The first entry that names nothing hides itself and all after it; an entry that is there twice
    hides everything.
    """
    if shown is None:
        return tuple(VisibleGpu(number, board, board) for number, board in enumerate(boards))
    found: list[VisibleGpu] = []
    for entry in shown.split(","):
        gpu = _named(library, boards, entry.strip())
        if gpu is None:
            break
        if any(gpu.handle is other.handle for other in found):
            return ()
        found.append(gpu)
    return tuple(found)


def _named(library: Library, boards: Sequence[Handle], entry: str) -> VisibleGpu | None:
    """What an entry names: a number, the begin of a UUID, or a part's UUID."""
    if entry.isdecimal():
        number = int(entry)
        return _board(boards, number) if number < len(boards) else None
    if entry.startswith("MIG-"):
        return _part(library, boards, entry)
    known = [_uuid(library, board) for board in boards]
    matches = [number for number, uuid in enumerate(known) if entry and uuid.startswith(entry)]
    return _board(boards, matches[0]) if len(matches) == 1 else None


def _board(boards: Sequence[Handle], number: int) -> VisibleGpu:
    return VisibleGpu(number, boards[number], boards[number])


def _part(library: Library, boards: Sequence[Handle], entry: str) -> VisibleGpu | None:
    part = ask(library, library.nvmlDeviceGetHandleByUUID, entry)
    if part is None:
        return None
    parent = ask(library, library.nvmlDeviceGetDeviceHandleFromMigDeviceHandle, part)
    known = [_uuid(library, board) for board in boards]
    uuid = "" if parent is None else _uuid(library, parent)
    if not uuid or uuid not in known:
        return None
    number = known.index(uuid)
    return VisibleGpu(number, part, boards[number])


def _uuid(library: Library, handle: Handle) -> str:
    """Empty where the driver does not tell."""
    return decode(ask(library, library.nvmlDeviceGetUUID, handle)) or ""


_WATTS_PER_MILLIWATT = 1e-3


def list_gpus(library: Library = pynvml) -> tuple[tuple[Gpu, ...], str | None]:
    """Every GPU, and why there are none where a driver is there and does not answer."""
    try:
        with open_nvml(library) as boards:
            return _described(library, visible_gpus(library, boards, None)), None
    except library.NVMLError_LibraryNotFound:
        return (), None
    except library.NVMLError as error:
        return (), f"NVML: {error}"


def shown_gpus(library: Library = pynvml) -> tuple[Gpu, ...]:
    """The GPUs that CUDA shows to a process started here, as it numbers them; none: no driver."""
    try:
        with open_nvml(library) as boards:
            shown = os.environ.get(VISIBLE_DEVICES)
            return _described(library, visible_gpus(library, boards, shown))
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
        # A pair: the present mode, and that after the next reset.
        mig=bool(mig[0]) if mig is not None else None,
        pci_address=pci_address(library, gpu),
        compute_capability=None if capability is None else ".".join(map(str, capability)),
    )
