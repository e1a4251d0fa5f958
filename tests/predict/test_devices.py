"""Devices are found by every name that machines and published tables use."""

from __future__ import annotations

from collections import defaultdict

import pytest

from epochcost.predict.decoders.rows import catalogue_lines
from epochcost.predict.design import precision_of
from epochcost.predict.rates import read_rates
from epochcost.specs.catalogue import Catalogue
from epochcost.specs.hardware import Accelerator, Device

FIGURES = ("memory_gb_per_second", "peak_fp32_tflops", "peak_fp16_tflops", "power_watts")
# No device: other hardware, and names of several forms or sizes.
WITHOUT_DEVICE = {"CPU", "i9_10940x", "Inferentia", "TPU", "TPU v3", "TPU v5e", "TPU v6"} | {
    "A100", "HGX A100 SXM", "V100", "Tesla V100",
}  # fmt: skip


@pytest.fixture(scope="module")
def named(catalogue: Catalogue) -> dict[str, list[Device]]:
    """The devices by each name that can mean them."""
    devices: dict[str, list[Device]] = defaultdict(list)
    for device in catalogue.devices.values():
        for name in device.names:
            devices[name].append(device)
    return dict(devices)


@pytest.fixture(scope="module")
def gpus(catalogue: Catalogue) -> list[tuple[str, Accelerator]]:
    """The GPUs of all machines, each with its machine's id."""
    return [
        (machine.id, device)
        for machine in catalogue.hardware.values()
        for device in machine.accelerators
        if not device.name.startswith("TPU")
    ]


def test_the_facts_of_a_device_fit_each_other(catalogue: Catalogue) -> None:
    """Peak operations per byte of bandwidth, and gains of tensor cores, are plausible."""
    for device in catalogue.devices.values():
        single, memory = device.peak_fp32_tflops, device.memory_gb_per_second
        fastest = device.peak_fp16_tflops or single
        assert fastest is not None
        assert 4 <= 1000 * fastest / memory <= 650, device.id
        if single is None:
            continue
        assert 4 <= 1000 * single / memory <= 140, device.id
        for fast in (device.peak_tf32_tflops, device.peak_fp16_tflops):
            assert fast is None or single <= fast <= 32 * single, device.id
        if device.peak_tf32_tflops and device.peak_fp16_tflops:
            assert 1 <= device.peak_fp16_tflops / device.peak_tf32_tflops <= 4, device.id


def test_every_gpu_of_a_machine_is_a_device(
    gpus: list[tuple[str, Accelerator]], named: dict[str, list[Device]]
) -> None:
    """Each GPU name in the machines' specs is the name of a device."""
    assert len(gpus) >= 60
    assert {device.name for _, device in gpus if device.name.casefold() not in named} == set()


@pytest.mark.parametrize("text", ["fp16", "int8", "gptq", "bnb"])
def test_products_of_quantised_weights_are_in_16_bits(text: str) -> None:
    """Software for quantised weights multiplies in 16 bits, or faster."""
    assert precision_of(text) == "mixed"


def test_machines_say_of_a_gpu_what_its_device_says(
    gpus: list[tuple[str, Accelerator]], named: dict[str, list[Device]]
) -> None:
    """A GPU in a machine's spec has its device's bandwidth, peaks and power."""
    for machine, accelerator in gpus:
        (device,) = named[accelerator.name.casefold()]
        for figure in FIGURES:
            assert getattr(accelerator, figure) in {None, getattr(device, figure)}, (
                machine,
                figure,
            )


def test_every_published_accelerator_is_a_device_or_none(
    catalogue: Catalogue, named: dict[str, list[Device]]
) -> None:
    """All accelerators of the tables have a device, except those in ``WITHOUT_DEVICE``."""
    published = set()
    for table in catalogue.tables_of("examples"):
        path = catalogue.table_path(table, table.table)
        published |= {rate.accelerator for rate in read_rates(path)}
    assert {name for name in published if name.casefold() not in named} == WITHOUT_DEVICE


def test_every_published_chip_is_known_or_none(catalogue: Catalogue) -> None:
    """All chips of the token tables are devices or processors, except two without a spec."""
    unknown = {line.cells["chip"] for line in catalogue_lines(catalogue) if line.device is None}
    assert unknown == {"apple-m2-max-cpu", "sn40l"}
