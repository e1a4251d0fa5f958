"""The energy meter of a GPU: joules between two moments, or why they are unknown."""

from __future__ import annotations

import pytest

from epochcost.measure.gpus import GpuMeter
from epochcost.results.conditions import MeteredEnergy
from fake_nvml import Device, FakeNvml


def test_a_gpu_with_a_counter_is_read_by_it() -> None:
    """NVML counts millijoules."""
    device = Device({"nvmlDeviceGetTotalEnergyConsumption": [0, 50_000, 350_000]})
    meter = GpuMeter(FakeNvml(device), device, 1)
    meter.read(0.0)
    meter.read(1.5)
    assert meter.energy() == MeteredEnergy(
        meter="NVML energy counter of GPU 1", of="gpu", joules=300.0, seconds=1.5
    )


def test_a_gpu_without_one_has_its_power_integrated() -> None:
    """Trapezoids: 100 W to 200 W over a second, then 200 W for two."""
    device = Device({"nvmlDeviceGetPowerUsage": [100_000, 200_000, 200_000]})
    meter = GpuMeter(FakeNvml(device), device, 0)
    for moment in (10.0, 11.0, 13.0):
        meter.read(moment)
    told = meter.energy()
    assert isinstance(told, MeteredEnergy)
    assert told.joules == pytest.approx(550.0)
    assert (told.meter, told.seconds) == ("NVML power of GPU 0, integrated", 3.0)


def test_a_counter_that_stands_still_is_unknown() -> None:
    """A device that computes draws power: zero would be untrue."""
    device = Device({"nvmlDeviceGetTotalEnergyConsumption": [0, 50_000, 50_000]})
    meter = GpuMeter(FakeNvml(device), device, 0)
    meter.read(0.0)
    assert meter.energy() == "read less than twice"
    meter.read(2.0)
    assert meter.energy() == "stood still for 2 s"
