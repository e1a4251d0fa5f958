"""Numbers in another unit than the key's are faults, or doubts if they are possible."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from epochcost.specs.hardware import device_doubts
from epochcost.specs.loader import load_catalogue

if TYPE_CHECKING:
    from conftest import Project

ROOT = Path(__file__).parents[2]
GRID = """\
id = "there-2024"
name = "There"
kg_co2e_per_kwh = 0.146
pue = 1.5
year = 2024
source = "a journal"
"""
DEVICE = """\
id = "{name}"
name = "{name}"
chip = "H400"
generation = "Hopper"
spellings = ["NVIDIA H400"]
memory_gib = 96
memory_gb_per_second = 3350
peak_fp32_tflops = 66.9
source = "the data sheet"
"""


@pytest.mark.parametrize(
    ("old", "new", "fault"),
    [
        ("0.146", "146", "3:1: kg_co2e_per_kwh: should be at most 5, got 146"),
        ("1.5", "150", "4:1: pue: should be at most 10, got 150"),
        ("= 2024", "= 2099", "5:1: year: should not be later than today, "),
    ],
)
def test_a_grid(project: Project, old: str, new: str, fault: str) -> None:
    """Grams, percent and a year in the future are faults of a grid."""
    grid = "specs/grids/there.toml"
    project.write(grid, GRID)
    assert project.faults() == []
    project.edit(grid, old, new)
    (found,) = project.faults()
    assert found.startswith(f"{grid}:{fault}")


def test_a_share_is_no_percentage(project: Project) -> None:
    """An accuracy of 0.916 is a fault, since it means 91.6 %."""
    model = "specs/models/mlp.toml"
    project.edit(model, "[[inputs]]", "accuracy_percent = 0.916\n[[inputs]]")
    demand = "should be in percent, 0 or at least 1, got 0.916"
    assert project.faults() == [f"{model}:7:1: accuracy_percent: {demand}"]


def test_a_name_of_two_devices(project: Project) -> None:
    """A spelling that is another device's, too, is a fault at both places."""
    project.write("specs/devices/one.toml", DEVICE.format(name="one"))
    project.write("specs/devices/two.toml", DEVICE.format(name="two"))
    demand = 'spellings[0]: should be the name of one device only, got "nvidia h400", as in'
    assert project.faults() == [
        f"specs/devices/one.toml:5:14: {demand} specs/devices/two.toml:5:14",
        f"specs/devices/two.toml:5:14: {demand} specs/devices/one.toml:5:14",
    ]


@pytest.mark.parametrize(
    ("key", "slip", "span"),
    [
        ("memory_gb_per_second", "3.35", "68 to 8000"),
        ("memory_gib", "98304", "4 to 512"),
        ("peak_fp32_tflops", "66900", "2.289 to 229"),
        ("power_watts", "0.7", "60 to 1400"),
    ],
)
def test_a_number_far_from_other_devices(key: str, slip: str, span: str) -> None:
    """TB/s, MB, GFLOP/s and kW are doubted, in two new devices together as well."""
    devices = load_catalogue(ROOT).devices
    assert not list(device_doubts(devices.values()))
    wrong = {
        name: devices[name].model_copy(update={key: Decimal(slip)})
        for name in ("h100-pcie", "h100-sxm5")
    }
    found = list(device_doubts({**devices, **wrong}.values()))
    message = f"{slip}, but other devices have {span}: compare the units"
    assert [(device.id, str(doubt)) for device, doubt in found] == [
        (name, f"{key}: {message}") for name in wrong
    ]


def test_few_devices_are_not_compared() -> None:
    """A project with a small and a large device of its own has no doubt."""
    small, large = list(load_catalogue(ROOT).devices.values())[:2]
    large = large.model_copy(update={"memory_gib": small.memory_gib * 100})
    assert not list(device_doubts([small, large]))
