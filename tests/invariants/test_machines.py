"""Consistency of the real machines, grids and exchange rates."""

from __future__ import annotations

from collections import defaultdict
from decimal import Decimal
from pathlib import Path

import pytest

from epochcost.specs.catalogue import Catalogue
from epochcost.specs.hardware import Accelerator
from epochcost.specs.loader import load_catalogue

FIGURES = (
    "memory_gib",
    "memory_gb_per_second",
    "peak_fp32_tflops",
    "peak_fp16_tflops",
    "power_watts",
)
KILOGRAMS_PER_POUND = Decimal("0.45359237")


@pytest.fixture(scope="module")
def catalogue() -> Catalogue:
    """The project's catalogue."""
    return load_catalogue(Path(__file__).parents[2])


@pytest.fixture(scope="module")
def accelerators(catalogue: Catalogue) -> list[tuple[str, Accelerator]]:
    """All accelerators, each with its machine's id."""
    machines = catalogue.hardware.values()
    return [(machine.id, device) for machine in machines for device in machine.accelerators]


def test_memory_is_plausible(accelerators: list[tuple[str, Accelerator]]) -> None:
    """An accelerator has 4 to 300 GiB; memory in its name equals its memory."""
    for machine, device in accelerators:
        if device.memory_gib is not None:
            assert 4 <= device.memory_gib <= 300, machine
            named = device.name.partition("(")[2].partition(" GB)")[0]
            assert not named.isdigit() or int(named) == device.memory_gib, machine


def test_one_device_has_one_set_of_figures(accelerators: list[tuple[str, Accelerator]]) -> None:
    """Accelerators of one name have equal figures everywhere, or none."""
    stated: dict[tuple[str, str], set[Decimal]] = defaultdict(set)
    for _, device in accelerators:
        for figure in FIGURES:
            value = getattr(device, figure)
            if value is not None:
                stated[device.name, figure].add(value)
    assert len(stated) >= 40
    assert {key: values for key, values in stated.items() if len(values) > 1} == {}


def test_half_precision_is_the_faster(accelerators: list[tuple[str, Accelerator]]) -> None:
    """The peak of 16-bit products is at least that of 32-bit ones."""
    for machine, device in accelerators:
        if device.peak_fp16_tflops and device.peak_fp32_tflops:
            assert device.peak_fp16_tflops >= device.peak_fp32_tflops, machine


def test_grids(catalogue: Catalogue) -> None:
    """A kilowatt-hour emits 0.01 to 1.2 kg; the average of 2018 is the published 0.954 pounds."""
    assert len(catalogue.grids) >= 5
    for grid in catalogue.grids.values():
        assert Decimal("0.01") <= grid.kg_co2e_per_kwh <= Decimal("1.2"), grid.id
        assert len(grid.source) >= 20, grid.id
    american = catalogue.grids["us-average-2018"]
    assert american.kg_co2e_per_kwh == Decimal("0.954") * KILOGRAMS_PER_POUND
    assert american.pue == Decimal("1.58")
