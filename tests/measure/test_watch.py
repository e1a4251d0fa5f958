"""The sampling phase is watched from its begin to its end, by the worker's messages."""

from __future__ import annotations

import datetime as dt
import os
from unittest.mock import patch

import pytest

from epochcost.measure.job import Phase, Progress
from epochcost.measure.watch import Watch
from epochcost.results.records import Measurement, Placement
from fake_nvml import Device, FakeNvml, NVMLError, place, process

MEASUREMENT = Measurement(
    started_at=dt.datetime(2026, 11, 21, tzinfo=dt.UTC),
    wall_seconds=1.0,
    warmup_seconds=(0.1,),
    samples_seconds=(0.1, 0.1),
    stop_reason="precise",
    placement=Placement(provider="CPUExecutionProvider", nodes_by_provider={}),
    steps_taken=3,
)


def at(phase: Phase, elapsed_seconds: float = 0.0) -> Progress:
    """A worker's message about its phase."""
    return Progress(phase=phase, elapsed_seconds=elapsed_seconds, budget_seconds=1.0)


def test_the_sampling_phase_alone_is_watched() -> None:
    """Conditions are added for the sampling phase. A trial on the CPU has no energy."""
    with Watch("cpu") as watch:
        for phase in ("starting", "warm-up", "sampling", "finishing"):
            watch.follow(at(phase))
    done = watch.completed(MEASUREMENT)
    assert done.conditions is not None
    assert done.energy is None


def test_the_worker_times_the_sampling() -> None:
    """The duration is from the times in the messages, which may arrive late."""
    with Watch("cpu") as watch:
        watch.follow(at("sampling", 0.5))
        watch.follow(at("finishing", 9.5))
    done = watch.completed(MEASUREMENT)
    assert done.conditions is not None
    assert done.conditions.seconds == 9.0


def watched(library: FakeNvml, device: int = 0) -> Measurement:
    """Watch one GPU through a sampling phase."""
    with (
        patch("epochcost.measure.gpus.pynvml", library),
        patch("epochcost.measure.watch.pynvml", library),
        Watch("cuda", device=device) as watch,
    ):
        watch.follow(at("sampling"))
        watch.follow(at("finishing"))
    return watch.completed(MEASUREMENT)


def test_a_gpu_is_watched_through_the_phase() -> None:
    """A GPU's memory, throttling and energy are stored with their meters."""
    device = Device(
        {
            "nvmlDeviceGetComputeRunningProcesses": [[process(os.getpid(), 700 * 2**20)]],
            "nvmlDeviceGetCurrentClocksThrottleReasons": 0x4,
            "nvmlDeviceGetClockInfo": 1410,
            "nvmlDeviceGetTotalEnergyConsumption": [10_000, 60_000],
        }
    )
    library = FakeNvml(device)
    done = watched(library)
    assert done.conditions is not None
    assert done.energy is not None
    assert done.conditions.device_memory_bytes == 700 * 2**20
    assert done.conditions.device_memory_meter == "NVML, of the worker"
    assert done.conditions.throttles is not None
    assert "gpu-power-cap" in done.conditions.throttles
    assert [(one.of, one.joules) for one in done.energy.readings] == [("gpu", 50.0)]
    assert library.opened == 0


@pytest.mark.parametrize(
    ("library", "reason"),
    [
        (FakeNvml(fault=NVMLError("Driver/library version mismatch")), "version mismatch"),
        (FakeNvml(Device({"nvmlDeviceGetName": "T4"})), "no device in use"),
    ],
)
def test_a_gpu_that_cannot_be_watched_is_unknown(library: FakeNvml, reason: str) -> None:
    """Memory and energy of a GPU that cannot be read are unknown, with a reason."""
    done = watched(library)
    assert done.conditions is not None
    assert done.energy is not None
    assert done.conditions.device_memory_bytes is None
    assert reason in done.conditions.unknown["device_memory_bytes"]
    assert reason in done.energy.unknown["NVML"]


def working(address: str, millijoules: list[int]) -> Device:
    """A GPU on which this process computes."""
    return Device(
        {
            "nvmlDeviceGetUUID": f"GPU-{address}",
            "nvmlDeviceGetPciInfo": place(address),
            "nvmlDeviceGetComputeRunningProcesses": [[process(os.getpid(), 700 * 2**20)]],
            "nvmlDeviceGetTotalEnergyConsumption": millijoules,
        }
    )


@pytest.mark.parametrize(
    ("shown", "device", "address", "joules"),
    [(None, 1, "b", 20.0), ("1,0", 1, "a", 10.0), ("1", 0, "b", 20.0)],
)
def test_the_chosen_gpu_is_watched_and_no_other(
    monkeypatch: pytest.MonkeyPatch,
    shown: str | None,
    device: int,
    address: str,
    joules: float,
) -> None:
    """The energy and address stored are those of the GPU that CUDA's number means."""
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    if shown is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", shown)
    library = FakeNvml(working("a", [0, 10_000]), working("b", [0, 20_000]))
    done = watched(library, device)
    assert done.conditions is not None
    assert done.energy is not None
    assert done.conditions.devices == (address,)
    assert [one.joules for one in done.energy.readings] == [joules]


def test_a_part_of_a_gpu_has_no_energy_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """A MIG part has no energy, since the board's counter includes other parts' work."""
    board = working("a", [0, 10_000])
    part = Device(
        board.answers
        | {
            "nvmlDeviceGetUUID": "MIG-1",
            "nvmlDeviceIsMigDeviceHandle": 1,
        }
    )
    board.answers["parts"] = (part,)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "MIG-1")
    done = watched(FakeNvml(board))
    assert done.conditions is not None
    assert done.energy is not None
    assert done.conditions.device_memory_bytes == 700 * 2**20
    assert done.energy.readings == ()
    assert "MIG" in done.energy.unknown["NVML"]


@pytest.mark.parametrize(
    ("counts", "reason"),
    [([7, 7], "stood still"), ([7_000, 2_000], "stood still"), ([], "counts no energy")],
)
def test_an_energy_that_was_not_counted_is_unknown(counts: list[int], reason: str) -> None:
    """The energy is unknown if the counter stands still, falls or is missing."""
    device = working("a", counts)
    if not counts:
        del device.answers["nvmlDeviceGetTotalEnergyConsumption"]
    done = watched(FakeNvml(device))
    assert done.energy is not None
    assert done.energy.readings == ()
    assert reason in done.energy.unknown["NVML"]
