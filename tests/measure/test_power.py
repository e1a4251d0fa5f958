"""Energy meters: joules between two moments, whatever the counter does in between."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from epochcost.measure.power import (
    Meter,
    counter_difference,
    gpu_meter,
    rapl_meters,
    total_energy,
    why_no_rapl,
)
from epochcost.results.conditions import MeteredEnergy
from fake_nvml import Device, FakeNvml

RANGE = 262_143_328_850


def zone(root: Path, path: str, name: str, count: int | None) -> Path:
    """A zone of powercap; without a count its energy cannot be read."""
    folder = root / path
    folder.mkdir(parents=True)
    (folder / "name").write_text(name + "\n")
    (folder / "max_energy_range_uj").write_text(f"{RANGE}\n")
    if count is not None:
        (folder / "energy_uj").write_text(f"{count}\n")
    return folder


def read_twice(meters: tuple[Meter, ...], zones: dict[Path, int], seconds: float = 2.0) -> None:
    """Read, set the zones' counts, and read again so much later."""
    for meter in meters:
        meter.read(100.0)
    for folder, count in zones.items():
        (folder / "energy_uj").write_text(f"{count}\n")
    for meter in meters:
        meter.read(100.0 + seconds)


def test_packages_and_memories_are_counted_once(tmp_path: Path) -> None:
    """Cores are part of their package, the platform holds packages, mmio shows them again."""
    package = zone(tmp_path, "intel-rapl:0", "package-0", 1_000_000)
    zone(tmp_path, "intel-rapl:0:0", "core", 500_000)
    memory = zone(tmp_path, "intel-rapl:0:1", "dram", 0)
    other = zone(tmp_path, "intel-rapl:1", "package-1", 7)
    zone(tmp_path, "intel-rapl:2", "psys", 9)
    zone(tmp_path, "intel-rapl-mmio:0", "package-0", 1_000_000)
    meters = rapl_meters(tmp_path)
    read_twice(meters, {package: 31_000_000, memory: 5_000_000, other: 8_000_007})
    energy = total_energy(meters, {})
    assert energy.readings == (
        MeteredEnergy(meter="RAPL package-0", of="cpu", joules=30.0, seconds=2.0),
        MeteredEnergy(meter="RAPL dram of package-0", of="memory", joules=5.0, seconds=2.0),
        MeteredEnergy(meter="RAPL package-1", of="cpu", joules=8.0, seconds=2.0),
    )
    assert energy.watts == pytest.approx(21.5)
    assert energy.unknown == {}


def test_a_counter_that_wraps_around_loses_nothing(tmp_path: Path) -> None:
    """From one joule below its range to two joules above zero."""
    package = zone(tmp_path, "intel-rapl:0", "package-0", RANGE + 1 - 1_000_000)
    meters = rapl_meters(tmp_path)
    read_twice(meters, {package: 2_000_000})
    assert total_energy(meters, {}).readings[0].joules == pytest.approx(3.0, abs=1e-9)


@given(st.lists(st.integers(0, 999), min_size=1, max_size=30), st.integers(0, 999))
def test_any_number_of_wraps_is_followed(steps: list[int], start: int) -> None:
    """A counter read more often than it wraps counts what was added, wherever it began."""
    counts = [start]
    for step in steps:
        counts.append(counts[-1] + step)
    shown = iter([count % 1000 for count in counts])
    counter = Meter("test", "cpu", lambda: next(shown), partial(counter_difference, wraps_at=1000))
    for moment, _ in enumerate(counts):
        counter.read(float(moment))
    told = counter.energy()
    assert (told.joules if isinstance(told, MeteredEnergy) else 0) == sum(steps)


def test_a_file_that_may_not_be_read_is_said(tmp_path: Path) -> None:
    """Absent here, since a test may run as root, whom no permission stops."""
    zone(tmp_path, "intel-rapl:0", "package-0", None)
    meters = rapl_meters(tmp_path)
    read_twice(meters, {})
    energy = total_energy(meters, {})
    assert energy.readings == ()
    assert energy.watts is None
    assert energy.unknown["RAPL package-0"].endswith("energy_uj: absent")


def test_a_refused_file_is_said_as_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Kernels since 5.10 let only root read it."""
    zone(tmp_path, "intel-rapl:0", "package-0", 5)
    (meter,) = rapl_meters(tmp_path)

    def refuse(*_: object, **__: object) -> str:
        raise PermissionError

    with monkeypatch.context() as refusing:
        refusing.setattr(Path, "read_text", refuse)
        refusing.setattr(Path, "read_bytes", refuse)
        meter.read(0.0)
        told = meter.energy()
    assert str(told).endswith("energy_uj: permission denied")


def test_a_counter_that_stands_still_is_unknown(tmp_path: Path) -> None:
    """A machine that computes draws power: zero would be a lie of the hypervisor."""
    zone(tmp_path, "intel-rapl:0", "package-0", 5)
    meters = rapl_meters(tmp_path)
    read_twice(meters, {})
    assert total_energy(meters, {}).unknown == {"RAPL package-0": "stood still for 2 s"}


def test_one_reading_is_no_energy(tmp_path: Path) -> None:
    """An interval has two ends."""
    zone(tmp_path, "intel-rapl:0", "package-0", 5)
    (meter,) = rapl_meters(tmp_path)
    meter.read(1.0)
    assert meter.energy() == "read less than twice"


def test_no_meter_has_its_reason(tmp_path: Path) -> None:
    """A machine without powercap, and one without RAPL in it."""
    assert rapl_meters(tmp_path / "absent") == ()
    assert "absent" in why_no_rapl(tmp_path / "absent")
    assert "no package" in why_no_rapl(tmp_path)


def test_a_gpu_with_a_counter_is_read_by_it() -> None:
    """NVML counts millijoules."""
    device = Device({"nvmlDeviceGetTotalEnergyConsumption": [0, 50_000, 350_000]})
    meter = gpu_meter(FakeNvml(device), device, 1)
    meter.read(0.0)
    meter.read(1.5)
    assert meter.energy() == MeteredEnergy(
        meter="NVML energy counter of GPU 1", of="gpu", joules=300.0, seconds=1.5
    )


def test_a_gpu_without_one_has_its_power_integrated() -> None:
    """Trapezoids: 100 W to 200 W over a second, then 200 W for two."""
    device = Device({"nvmlDeviceGetPowerUsage": [100_000, 200_000, 200_000]})
    meter = gpu_meter(FakeNvml(device), device, 0)
    for moment in (10.0, 11.0, 13.0):
        meter.read(moment)
    told = meter.energy()
    assert isinstance(told, MeteredEnergy)
    assert told.joules == pytest.approx(550.0)
    assert (told.meter, told.seconds) == ("NVML power of GPU 0, integrated", 3.0)


def test_a_gpu_without_either_is_unknown() -> None:
    """Not zero watts."""
    device = Device({"nvmlDeviceGetName": "GRID"})
    meter = gpu_meter(FakeNvml(device), device, 0)
    meter.read(0.0)
    meter.read(1.0)
    assert meter.energy() == "NVML tells neither energy nor power of this device"
