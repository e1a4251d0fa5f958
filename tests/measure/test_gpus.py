"""GPUs as the driver describes them: one unreadable field hides neither the others nor the GPU."""

from __future__ import annotations

import pytest

from epochcost.measure.gpus import list_gpus, shown_gpus
from epochcost.results.environment import Gpu
from fake_nvml import Device, FakeNvml, NVMLError, NVMLError_LibraryNotFound, memory, place


def test_every_field_is_read() -> None:
    """Units are the record's: watts, hertz, bytes."""
    device = Device(
        {
            "nvmlDeviceGetName": "NVIDIA H100",
            "nvmlDeviceGetMemoryInfo": memory(0),
            "nvmlDeviceGetEnforcedPowerLimit": 700_000,
            "nvmlDeviceGetMaxClockInfo": 1980,
            "nvmlDeviceGetEccMode": (1, 1),
            "nvmlDeviceGetMigMode": (0, 1),
            "nvmlDeviceGetCudaComputeCapability": (9, 0),
            "nvmlDeviceGetPciInfo": place("00000000:17:00.0"),
        }
    )
    library = FakeNvml(device)
    assert list_gpus(library) == (
        (
            Gpu(
                name="NVIDIA H100",
                memory_bytes=80 * 2**30,
                driver="580.95",
                power_limit_watts=700.0,
                graphics_clock_hertz=1_980_000_000,
                memory_clock_hertz=1_980_000_000,
                ecc=True,
                mig=False,
                pci_address="00000000:17:00.0",
                compute_capability="9.0",
            ),
        ),
        None,
    )
    assert library.opened == 0


def test_what_a_device_does_not_tell_is_none() -> None:
    """A GPU that only knows its name is still a GPU."""
    found, reason = list_gpus(FakeNvml(Device({"nvmlDeviceGetName": b"Tesla K80"})))
    assert found == (Gpu(name="Tesla K80", memory_bytes=None, driver="580.95"),)
    assert reason is None


def test_a_lost_device_does_not_hide_the_others() -> None:
    """One of two has fallen off the bus."""
    found, _ = list_gpus(FakeNvml(Device(), Device({"nvmlDeviceGetName": "Tesla T4"})))
    assert [gpu.name for gpu in found] == ["Tesla T4"]


def test_no_driver_is_no_gpu_and_a_broken_one_is_unknown() -> None:
    """Only the second needs a reason."""
    assert list_gpus(FakeNvml(fault=NVMLError_LibraryNotFound("not found"))) == ((), None)
    found, reason = list_gpus(FakeNvml(fault=NVMLError("Driver/library version mismatch")))
    assert found == ()
    assert reason == "NVML: Driver/library version mismatch"


def test_cuda_shows_what_its_variable_leaves(monkeypatch: pytest.MonkeyPatch) -> None:
    """In the variable's order; the machine has all of them still."""
    library = FakeNvml(*(Device({"nvmlDeviceGetName": name}) for name in ("A100", "T4", "K80")))
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "2,0")
    assert [gpu.name for gpu in shown_gpus(library)] == ["K80", "A100"]
    assert [gpu.name for gpu in list_gpus(library)[0]] == ["A100", "T4", "K80"]
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES")
    assert len(shown_gpus(library)) == 3
    assert shown_gpus(FakeNvml(fault=NVMLError("mismatch"))) == ()
