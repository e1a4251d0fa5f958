"""A stand-in for NVIDIA's management library, whose answers a test sets.

It raises an error as the real library does: without an answer for a device, "not supported".
"""

from __future__ import annotations

from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any


class NVMLError(Exception):
    """The error that the library raises."""


class NVMLError_LibraryNotFound(NVMLError):  # noqa: N801, N818 - the library's name
    """The error if there is no driver."""


@dataclass
class Device:
    """A GPU; ``answers`` maps a function's name to a value, or to a list of successive values.

    The last value of a list is repeated.
    """

    answers: dict[str, Any] = field(default_factory=dict)

    def answer(self, name: str) -> Any:
        """The next answer; raises NVMLError if the device has none."""
        if name not in self.answers:
            raise NVMLError(f"{name}: Not Supported")
        value = self.answers[name]
        if isinstance(value, list):
            return value.pop(0) if len(value) > 1 else value[0]
        return value


class FakeNvml:
    """The library's functions for some devices; ``opened`` counts unmatched calls of nvmlInit."""

    NVMLError = NVMLError
    NVMLError_LibraryNotFound = NVMLError_LibraryNotFound

    def __init__(self, *devices: Device, fault: NVMLError | None = None) -> None:
        self.devices, self.fault, self.opened = devices, fault, 0

    def nvmlInit(self) -> None:  # noqa: N802
        """Open the library, or raise the fault."""
        if self.fault is not None:
            raise self.fault
        self.opened += 1

    def nvmlShutdown(self) -> None:  # noqa: N802
        """Close the library."""
        self.opened -= 1

    def nvmlSystemGetDriverVersion(self) -> str:  # noqa: N802
        """The driver's version."""
        return "580.95"

    def nvmlDeviceGetCount(self) -> int:  # noqa: N802
        """The number of all devices, lost ones included."""
        return len(self.devices)

    def nvmlDeviceGetHandleByIndex(self, index: int) -> Device:  # noqa: N802
        """The device itself; a device without any answers is lost."""
        if not self.devices[index].answers:
            raise NVMLError("GPU is lost")
        return self.devices[index]

    def nvmlDeviceGetHandleByUUID(self, uuid: str) -> Device:  # noqa: N802
        """A board, or a part that is listed in some board's ``parts``."""
        parts = [part for one in self.devices for part in one.answers.get("parts", ())]
        for device in (*self.devices, *parts):
            if device.answers.get("nvmlDeviceGetUUID") == uuid:
                return device
        raise NVMLError("Not Found")

    def __getattr__(self, name: str) -> Any:
        """Any other function of a device, whose further arguments do not count."""
        return lambda device, *_: device.answer(name)


def memory(used: int, total: int = 80 * 2**30) -> SimpleNamespace:
    """An answer of nvmlDeviceGetMemoryInfo."""
    return SimpleNamespace(used=used, total=total, free=total - used)


def place(address: str) -> SimpleNamespace:
    """An answer of nvmlDeviceGetPciInfo."""
    return SimpleNamespace(busId=address)


def process(pid: int, used: int | None) -> SimpleNamespace:
    """One entry of an answer of nvmlDeviceGetComputeRunningProcesses."""
    return SimpleNamespace(pid=pid, usedGpuMemory=used)
