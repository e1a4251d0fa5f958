"""Rates of devices and processors for the law."""

from __future__ import annotations

from pathlib import Path

import pytest

from epochcost.predict.decoders.chips import chip_of, generation_of
from epochcost.predict.decoders.processors import CpuForm
from epochcost.specs.catalogue import Catalogue
from epochcost.specs.loader import load_catalogue

ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def catalogue() -> Catalogue:
    """The project's catalogue."""
    return load_catalogue(ROOT)


def test_every_device_has_rates(catalogue: Catalogue) -> None:
    """All rates exist, even those missing in the spec."""
    for device in catalogue.devices.values():
        chip = chip_of(device, "bf16")
        assert min(chip.bandwidth, chip.memory, chip.products, chip.operations, chip.link) > 0


def test_precision_raises_the_peak_where_there_are_units_for_it(catalogue: Catalogue) -> None:
    """Hopper multiplies 8-bit floats at twice the rate, Ampere does not."""
    hopper, ampere = catalogue.devices["h100-sxm5"], catalogue.devices["a100-sxm4-80-gb"]
    assert chip_of(hopper, "fp8").products == pytest.approx(
        2 * chip_of(hopper, "bf16").products, rel=1e-3
    )
    assert chip_of(ampere, "fp8").products == chip_of(ampere, "bf16").products


@pytest.mark.parametrize(
    ("name", "generation"),
    [
        ("xeon-8481c", "Sapphire Rapids"),
        ("Intel Xeon (Cascade Lake)", "Cascade Lake"),
        ("xeon-e5-2666-v3", "Haswell"),
        ("epyc-9r14", "Genoa"),
        ("epyc-7r13", "Milan"),
        ("graviton4", "Graviton4"),
        ("some-cpu", ""),
    ],
)
def test_names_tell_generations(name: str, generation: str) -> None:
    """Names of rows and of machines give a processor's generation, or nothing."""
    assert generation_of(name) == generation


def test_a_processor_by_name_alone_has_rates() -> None:
    """Missing facts follow from the generation."""
    named = chip_of(CpuForm("graviton4"), "bf16")
    measured = chip_of(
        CpuForm("graviton4", threads=64, cores=64, sockets=1, read_gb_per_second=300.0), "bf16"
    )
    assert named.bandwidth > 0
    assert named.instructions == "sve"
    assert measured.bandwidth == 300e9
