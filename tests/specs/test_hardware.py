"""Accelerators: peaks, compute capabilities, and doubts about a machine's numbers."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pytest
from pydantic import ValidationError

from epochcost.predict.design import peak_of
from epochcost.specs.findings import Finding
from epochcost.specs.hardware import Device, accelerator_doubts
from epochcost.specs.loader import load_catalogue

ROOT = Path(__file__).parents[2]


def device(**facts: Decimal) -> Device:
    """A device with these peaks."""
    texts = dict.fromkeys(("id", "name", "chip", "generation", "source"), "made-up")
    memory = {"memory_gib": Decimal(16), "memory_gb_per_second": Decimal(800)}
    return Device.model_validate({**texts, **memory, **facts})


def test_a_device_has_a_peak() -> None:
    """A device needs a peak. Without one in fp32, products use the peak in 16 bits."""
    with pytest.raises(ValidationError, match="should have peak_fp32_tflops or peak_fp16_tflops"):
        device()
    assert peak_of(device(peak_fp16_tflops=Decimal(197)), "fp32") == 197


def test_compute_capability_comes_from_the_device() -> None:
    """Machines state the capability of their device. A missing capability is found by name."""
    catalogue = load_catalogue(ROOT)
    known = {name: device for device in catalogue.devices.values() for name in device.names}
    chips = [chip for machine in catalogue.hardware.values() for chip in machine.accelerators]
    devices = [(chip, known[chip.name.casefold()]) for chip in chips if "TPU" not in chip.name]
    assert all(chip.compute_capability == device.compute_capability for chip, device in devices)
    bare = catalogue.machine("g6.xlarge").completed({})
    assert bare.compute_capability == "8.9"
    chip = bare.accelerators[0].model_copy(update={"compute_capability": None})
    unstated = bare.model_copy(update={"accelerators": (chip,)})
    assert unstated.completed({}).compute_capability is None
    assert unstated.completed(known).compute_capability == "8.9"


@pytest.mark.parametrize(
    ("update", "doubt"),
    [
        ({"memory_gib": Decimal(24576)}, "24576 contradicts the 22.5 of L4 in devices/"),
        ({"power_watts": Decimal("0.072")}, "0.072 contradicts the 72 of L4 in devices/"),
        ({"memory_gib": Decimal("22.5")}, ""),
        ({"name": "L4 24GB"}, '"L4 24GB" is the name of no device in devices/; did you mean "L4"?'),
        (
            {"name": "Our own chip"},
            '"Our own chip" is the name of no device in devices/, so no time of this machine is'
            " predicted",
        ),
    ],
)
def test_an_accelerator_is_compared_with_its_device(update: dict[str, object], doubt: str) -> None:
    """A number in another unit and a name that no device has are doubted."""
    catalogue = load_catalogue(ROOT)
    known = {name: each for each in catalogue.devices.values() for name in each.names}
    machine = catalogue.machine("g6.xlarge")
    chip = machine.accelerators[0].model_copy(update=update)
    changed = machine.model_copy(update={"accelerators": (chip,)})
    (key,) = update
    expected = [Finding(("accelerators", 0, key), doubt)] if doubt else []
    assert list(accelerator_doubts(changed, known, timed=False)) == expected


def test_an_unknown_device_with_a_published_time_is_not_doubted() -> None:
    """A machine with a published time needs no prediction, and a project may have no devices."""
    catalogue = load_catalogue(ROOT)
    known = {name: each for each in catalogue.devices.values() for name in each.names}
    machine = catalogue.machine("gcp-tpu-v2-8")
    assert list(accelerator_doubts(machine, known, timed=False))
    assert not list(accelerator_doubts(machine, known, timed=True))
    assert not list(accelerator_doubts(machine, {}, timed=False))
