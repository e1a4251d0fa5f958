"""GPUs as the driver describes them: an unreadable field hides nothing else."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from epochcost.measure import gpus
from epochcost.measure.gpus import (
    DeviceWatch,
    list_gpus,
    misnaming_reason,
    shown_gpus,
    visible_gpus,
)
from epochcost.results.environment import Gpu
from fake_nvml import Device, FakeNvml, NVMLError, NVMLError_LibraryNotFound, memory, place, process

Use = Callable[[FakeNvml], FakeNvml]


@pytest.fixture
def driver(monkeypatch: pytest.MonkeyPatch) -> Use:
    """A function that replaces NVML."""

    def use(library: FakeNvml) -> FakeNvml:
        monkeypatch.setattr(gpus, "pynvml", library)
        return library

    return use


@pytest.fixture(autouse=True)
def _no_gpus(driver: Use) -> None:
    """Without other stand-ins, NVML has no GPU."""
    driver(FakeNvml())


def test_every_field_is_read(driver: Use) -> None:
    """All fields of a GPU are read, power in watts and memory in bytes."""
    device = Device(
        {
            "nvmlDeviceGetName": "NVIDIA H100",
            "nvmlDeviceGetMemoryInfo": memory(0),
            "nvmlDeviceGetEnforcedPowerLimit": 700_000,
            "nvmlDeviceGetMigMode": (0, 1),
            "nvmlDeviceGetCudaComputeCapability": (9, 0),
            "nvmlDeviceGetPciInfo": place("00000000:17:00.0"),
        }
    )
    library = driver(FakeNvml(device))
    assert list_gpus() == (
        (
            Gpu(
                name="NVIDIA H100",
                memory_bytes=80 * 2**30,
                driver="580.95",
                power_limit_watts=700.0,
                mig=False,
                pci_address="00000000:17:00.0",
                compute_capability="9.0",
            ),
        ),
        None,
    )
    assert library.opened == 0


def test_what_a_device_does_not_tell_is_none(driver: Use) -> None:
    """Fields that a GPU does not have are None."""
    driver(FakeNvml(Device({"nvmlDeviceGetName": "Tesla K80"})))
    found, reason = list_gpus()
    assert found == (Gpu(name="Tesla K80", memory_bytes=None, driver="580.95"),)
    assert reason is None


def test_a_lost_device_does_not_hide_the_others(driver: Use) -> None:
    """A GPU that cannot be read does not keep the next one from the list."""
    driver(FakeNvml(Device(), Device({"nvmlDeviceGetName": "Tesla T4"})))
    found, _ = list_gpus()
    assert [gpu.name for gpu in found] == ["Tesla T4"]


def test_no_driver_is_no_gpu_and_a_broken_one_is_unknown(driver: Use) -> None:
    """No driver means no GPU. A broken driver gives a reason."""
    driver(FakeNvml(fault=NVMLError_LibraryNotFound("not found")))
    assert list_gpus() == ((), None)
    driver(FakeNvml(fault=NVMLError("Driver/library version mismatch")))
    found, reason = list_gpus()
    assert found == ()
    assert reason == "NVML: Driver/library version mismatch"


def test_cuda_shows_what_its_variable_leaves(monkeypatch: pytest.MonkeyPatch, driver: Use) -> None:
    """CUDA's GPUs are in the variable's order. The machine's list still has all of them."""
    driver(FakeNvml(*(Device({"nvmlDeviceGetName": name}) for name in ("A100", "T4", "K80"))))
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "2,0")
    assert [gpu.name for gpu in shown_gpus()] == ["K80", "A100"]
    assert [gpu.name for gpu in list_gpus()[0]] == ["A100", "T4", "K80"]
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES")
    assert len(shown_gpus()) == 3
    driver(FakeNvml(fault=NVMLError("mismatch")))
    assert shown_gpus() == ()


@pytest.mark.parametrize(
    ("shown", "device", "used"),
    [
        (None, 1, None),
        ("0", 0, None),
        ("1", 0, "NVIDIA L40S"),
        ("1,0", 1, "NVIDIA L4"),
        ("1", 7, None),
    ],
)
def test_a_gpu_with_the_name_of_another_is_refused(
    monkeypatch: pytest.MonkeyPatch, driver: Use, shown: str | None, device: int, used: str | None
) -> None:
    """CUDA's number of the GPU must stand for a GPU of the same name among all GPUs."""
    names = ("NVIDIA L4", "NVIDIA L40S")
    driver(FakeNvml(*(Device({"nvmlDeviceGetName": name}) for name in names)))
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    if shown is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", shown)
    reason = misnaming_reason(device)
    assert (reason is None) == (used is None)
    assert used is None or f"makes the {used} GPU {device}" in str(reason)


MIB = 2**20


def watch_of(device: Device, *processes: int) -> DeviceWatch:
    """A watch of the only GPU, made before these processes of a trial started."""
    watch = DeviceWatch(device, 0)
    watch.processes = frozenset(processes)
    return watch


@pytest.mark.parametrize(("owner", "ours"), [(7, False), (42, True)])
def test_a_device_is_in_use_where_a_process_of_the_trial_runs_on_it(owner: int, ours: bool) -> None:
    """Only memory of the trial's processes counts, not of others."""
    running = [process(owner, 490 * MIB)]
    device = Device({"nvmlDeviceGetComputeRunningProcesses": [running, running]})
    watch = watch_of(device, 42)
    assert watch.in_use == ours
    watch.read()
    assert watch.memory == (("NVML, of the worker", 490 * MIB) if ours else None)


def test_in_a_container_the_growth_of_the_device_tells() -> None:
    """If the driver lists no known process, as in a container, the device's growth counts."""
    assert not watch_of(Device({"nvmlDeviceGetMemoryInfo": memory(3 * MIB)}), 42).in_use
    told = [memory(100 * MIB), memory(400 * MIB), memory(700 * MIB)]
    watch = watch_of(Device({"nvmlDeviceGetMemoryInfo": told}), 42)
    assert watch.in_use
    watch.read()
    assert watch.memory == ("NVML, growth of the whole device", 600 * MIB)


def test_the_most_of_all_readings_counts() -> None:
    """The memory is the largest reading, since memory may be freed before the end."""
    device = Device(
        {
            "nvmlDeviceGetComputeRunningProcesses": [
                [process(42, 100)],
                [process(42, 900)],
                [process(42, 200)],
            ]
        }
    )
    watch = watch_of(device, 42)
    for _ in range(3):
        watch.read()
    assert watch.memory == ("NVML, of the worker", 900)


def test_every_reason_of_any_reading_is_kept_and_idleness_is_none() -> None:
    """Reasons of all readings are merged. Idle and user-set clocks do not count."""
    device = Device(
        {
            "nvmlDeviceGetCurrentClocksThrottleReasons": [0x1, 0x2 | 0x4, 0x20 | 0x40, 0x0],
        }
    )
    watch = watch_of(device)
    assert watch.throttles is None
    for _ in range(4):
        watch.read()
    assert watch.throttles == ("gpu-power-cap", "gpu-heat")


def test_a_silent_driver_leaves_everything_unknown() -> None:
    """If the driver gives no figures, memory and throttling are unknown."""
    device = Device({"nvmlDeviceGetName": "GRID"})
    watch = watch_of(device, 42)
    watch.read()
    assert (watch.memory, watch.throttles) == (None, None)


PART = Device({"nvmlDeviceGetUUID": "MIG-aaaa", "nvmlDeviceIsMigDeviceHandle": 1})


def board(uuid: str, *parts: Device) -> Device:
    """A GPU with a UUID and possibly with MIG parts."""
    return Device({"nvmlDeviceGetUUID": uuid, "parts": parts})


BOARDS = (board("GPU-11ab"), board("GPU-11cd", PART), board("GPU-22ef"))


@pytest.mark.parametrize(
    ("shown", "handles"),
    [
        (None, BOARDS),
        ("", ()),
        ("2,0", (BOARDS[2], BOARDS[0])),
        (" 1 , 2", BOARDS[1:]),
        ("1,7,2", BOARDS[1:2]),
        ("0,-1,2", BOARDS[:1]),
        ("GPU-11cd,0", (BOARDS[1], BOARDS[0])),
        ("MIG-aaaa", (PART,)),
        ("MIG-bbbb", ()),
        ("NoDevFiles", ()),
    ],
)
def test_the_variable_chooses_and_orders(
    monkeypatch: pytest.MonkeyPatch, driver: Use, shown: str | None, handles: tuple[Device, ...]
) -> None:
    """An entry of the variable is a number or UUID. An invalid entry hides all later ones."""
    driver(FakeNvml(*BOARDS))
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    if shown is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", shown)
    assert visible_gpus(BOARDS) == handles
