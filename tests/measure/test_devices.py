"""The GPUs of a trial, as NVML shows them."""

from __future__ import annotations

from epochcost.measure.gpus import (
    DeviceWatch,
    VisibleGpu,
    devices_in_use,
    present_devices,
    visible_gpus,
)
from fake_nvml import Device, FakeNvml, memory, place, process

MIB = 2**20


def boards(*devices: Device) -> tuple[VisibleGpu, ...]:
    """All of these, as CUDA shows them without a variable."""
    return visible_gpus(FakeNvml(*devices), devices, None)


def test_the_device_of_the_worker_is_found_by_its_process() -> None:
    """Another program's device is not ours, however much it grows."""
    theirs = Device(
        {
            "nvmlDeviceGetMemoryInfo": [memory(0), memory(900 * MIB)],
            "nvmlDeviceGetComputeRunningProcesses": [[process(7, 900 * MIB)]],
        }
    )
    ours = Device(
        {
            "nvmlDeviceGetMemoryInfo": [memory(0), memory(500 * MIB)],
            "nvmlDeviceGetComputeRunningProcesses": [[process(42, 490 * MIB)]],
        }
    )
    library = FakeNvml(theirs, ours)
    devices = present_devices(library, boards(theirs, ours))
    used = devices_in_use(library, devices, frozenset({42}))
    assert [one.gpu.number for one in used] == [1]
    watch = DeviceWatch(library, used, frozenset({42}))
    watch.read()
    assert watch.memory == ("NVML, of the worker", 490 * MIB)


def test_in_a_container_the_growth_of_the_device_tells() -> None:
    """There the driver lists ids that nobody here knows, or none."""
    idle = Device({"nvmlDeviceGetMemoryInfo": memory(3 * MIB)})
    grown = Device(
        {"nvmlDeviceGetMemoryInfo": [memory(100 * MIB), memory(400 * MIB), memory(700 * MIB)]}
    )
    library = FakeNvml(idle, grown)
    used = devices_in_use(library, present_devices(library, boards(idle, grown)), frozenset({42}))
    assert [one.gpu.number for one in used] == [1]
    watch = DeviceWatch(library, used, frozenset({42}))
    watch.read()
    assert watch.memory == ("NVML, growth of the whole device", 600 * MIB)


def test_the_most_of_all_readings_counts() -> None:
    """Memory may be given back before the end."""
    device = Device(
        {
            "nvmlDeviceGetComputeRunningProcesses": [
                [process(42, 100)],
                [process(42, 900)],
                [process(42, 200)],
            ]
        }
    )
    library = FakeNvml(device)
    watch = DeviceWatch(library, present_devices(library, boards(device)), frozenset({42}))
    for _ in range(3):
        watch.read()
    assert watch.memory == ("NVML, of the worker", 900)


def test_every_reason_of_any_reading_is_kept_and_idleness_is_none() -> None:
    """Two reasons of heat are one; idle and user-set clocks are no throttling."""
    device = Device(
        {
            "nvmlDeviceGetCurrentClocksThrottleReasons": [0x1, 0x2 | 0x4, 0x20 | 0x40, 0x0],
            "nvmlDeviceGetClockInfo": [1000, 1500, 2000, 1500],
        }
    )
    library = FakeNvml(device)
    watch = DeviceWatch(library, present_devices(library, boards(device)), frozenset())
    assert watch.throttles is None
    for _ in range(4):
        watch.read()
    assert watch.throttles == ("gpu-power-cap", "gpu-heat")
    assert watch.clock_hertz == 1_500_000_000


def test_a_silent_driver_leaves_everything_unknown() -> None:
    """No zero bytes, no zero hertz, no "was not throttled"."""
    device = Device({"nvmlDeviceGetName": "GRID"})
    library = FakeNvml(device)
    watch = DeviceWatch(library, present_devices(library, boards(device)), frozenset({42}))
    watch.read()
    assert (watch.memory, watch.clock_hertz, watch.throttles) == (None, None, None)


def test_devices_are_named_by_their_addresses() -> None:
    """All or none: half a list would name too few."""
    told, silent = Device({"nvmlDeviceGetPciInfo": place("00000000:17:00.0")}), Device()
    library = FakeNvml(told, silent)
    one = present_devices(library, boards(told))
    both = present_devices(library, boards(told, silent))
    assert DeviceWatch(library, one, frozenset()).addresses == ("00000000:17:00.0",)
    assert DeviceWatch(library, both, frozenset()).addresses is None


def test_a_part_of_a_board_has_its_own_memory_and_the_boards_clocks() -> None:
    """MIG: NVML answers each question at one of the two only."""
    part = Device({"nvmlDeviceGetComputeRunningProcesses": [[process(42, 10 * MIB)]]})
    board = Device({"nvmlDeviceGetClockInfo": 1410})
    library = FakeNvml(board)
    devices = present_devices(library, (VisibleGpu(0, part, board),))
    watch = DeviceWatch(library, devices, frozenset({42}))
    watch.read()
    assert watch.memory == ("NVML, of the worker", 10 * MIB)
    assert watch.clock_hertz == 1_410_000_000
