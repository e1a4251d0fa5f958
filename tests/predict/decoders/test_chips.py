"""Rates of devices and processors for the law of decoders, and processors of machines."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from epochcost.errors import SpecError
from epochcost.predict.decoders.chips import (
    CpuForm,
    catalogue_processors,
    chip_of,
    cpu_form_of,
    generation_of,
    is_processor,
    processor_of,
    read_processors,
)
from epochcost.predict.decoders.forms import read_forms
from epochcost.specs.catalogue import Catalogue


def test_every_device_has_rates(catalogue: Catalogue) -> None:
    """Every device has all rates, even those that its spec lacks."""
    for device in catalogue.devices.values():
        chip = chip_of(device, "bf16")
        assert min(chip.bandwidth, chip.memory, chip.products, chip.operations, chip.link) > 0


@pytest.mark.parametrize(
    ("device", "count", "link", "hops"),
    [
        ("a100-pcie-80-gb", 2, 300e9, 1),
        ("a100-pcie-80-gb", 4, 25e9, 2),
        ("a100-sxm4-80-gb", 8, 300e9, 1),
        ("a800-sxm4-80-gb", 8, 200e9, 1),
        ("h100-pcie", 2, 300e9, 1),
        ("h800-pcie", 4, 50e9, 2),
        ("h20", 8, 450e9, 1),
        ("gaudi2", 8, 262.5e9, 1),
    ],
)
def test_devices_exchange_over_links(
    catalogue: Catalogue, device: str, count: int, link: float, hops: int
) -> None:
    """Some devices have links or, for two devices, a bridge; others exchange over PCIe."""
    chip = chip_of(catalogue.devices[device], "bf16", count=count)
    assert (chip.link, chip.hops) == (link, hops)


def test_precision_raises_the_peak_where_there_are_units_for_it(catalogue: Catalogue) -> None:
    """Hopper multiplies 8-bit floats at twice its 16-bit rate; Ampere does not."""
    hopper, ampere = catalogue.devices["h100-sxm5"], catalogue.devices["a100-sxm4-80-gb"]
    assert chip_of(hopper, "fp8").products == pytest.approx(
        2 * chip_of(hopper, "bf16").products, rel=1e-3
    )
    assert chip_of(ampere, "fp8").products == chip_of(ampere, "bf16").products
    # MXFP4 and NVFP4 are multiplied in 16 bits before Blackwell.
    assert chip_of(hopper, "fp4").products == chip_of(hopper, "bf16").products
    blackwell = catalogue.devices["b200"]
    assert chip_of(blackwell, "fp4").products == 2 * chip_of(blackwell, "fp8").products


@pytest.mark.parametrize(
    ("device", "gain"), [("geforce-rtx-3090", 2), ("rtx-a6000", 1), ("tesla-p40", 1)]
)
def test_sums_in_16_bits_double_the_peak_of_geforce_gpus(
    catalogue: Catalogue, device: str, gain: float
) -> None:
    """GeForce GPUs multiply twice as fast with sums in 16 bits; other GPUs do not."""
    long, short = (
        chip_of(catalogue.devices[device], "int4", llama_cpp=each) for each in (False, True)
    )
    assert short.products == pytest.approx(gain * long.products, rel=0.01)


@pytest.mark.parametrize(
    ("device", "unpacked_bytes", "share"),
    [("tesla-p100-sxm2", 4, 0.5), ("tesla-m60", 4, 1), ("tesla-v100-sxm2", 2, 1), ("a10", 0, 1)],
)
def test_llama_cpp_multiplies_in_fp32_on_old_gpus(
    catalogue: Catalogue, device: str, unpacked_bytes: float, share: float
) -> None:
    """Before Volta, llama.cpp writes weights to memory and multiplies them in fp32."""
    others, llama_cpp = (
        chip_of(catalogue.devices[device], "int4", llama_cpp=each) for each in (False, True)
    )
    assert (others.unpacked_bytes, llama_cpp.unpacked_bytes) == (0, unpacked_bytes)
    assert llama_cpp.products == pytest.approx(share * others.products)


@pytest.mark.parametrize(
    ("name", "generation"),
    [
        ("xeon-8481c", "Sapphire Rapids"),
        ("Intel Xeon (Cascade Lake)", "Cascade Lake"),
        ("xeon-e5-2666-v3", "Haswell"),
        ("epyc-9r14", "Genoa"),
        ("epyc-7r13", "Milan"),
        ("graviton4", "Graviton4"),
        ("AMD EPYC 7763 64-Core Processor my-server", "Milan"),
        ("Intel(R) Xeon(R) Platinum 8488C my-server", "Sapphire Rapids"),
        ("Intel(R) Xeon(R) CPU E5-2686 v4 @ 2.30GHz", "Broadwell"),
        ("some-cpu", ""),
    ],
)
def test_names_tell_generations(name: str, generation: str) -> None:
    """Names of rows, of specs and of systems give a processor's generation, or nothing."""
    assert generation_of(name).name == generation


def test_a_processor_by_name_alone_has_rates() -> None:
    """A processor's generation supplies its missing facts; a measured bandwidth is used."""
    named = chip_of(CpuForm("graviton4"), "bf16")
    measured = chip_of(
        CpuForm("graviton4", threads=64, cores=64, sockets=1, read_gb_per_second=300.0), "bf16"
    )
    assert named.bandwidth > 0
    assert named.generation == "Graviton4"
    assert measured.bandwidth == 300e9


def test_a_processor_of_unknown_size_is_a_whole_socket() -> None:
    """An AmpereOne without a core count has the 192 cores of the largest one."""
    chip = chip_of(CpuForm("ampereone"), "bf16")
    assert (chip.cores, chip.sockets, chip.maker) == (192, 1, "Arm")
    assert chip_of(CpuForm("epyc-9r45"), "bf16").maker == "AMD"


def test_generations_give_bandwidths_near_the_measured_ones(
    processors: Mapping[str, CpuForm],
) -> None:
    """Bandwidths by generation have a median error below 15 % and a 90th percentile below 60 %."""
    errors = sorted(
        abs(math.log(bandwidth / 1e9 / form.read_gb_per_second))
        for form in processors.values()
        if form.read_gb_per_second
        for bandwidth in [chip_of(replace(form, read_gb_per_second=None), "bf16").bandwidth]
    )
    assert len(errors) > 90
    assert errors[len(errors) // 2] < 0.14
    assert errors[len(errors) * 9 // 10] < math.log(1.6)


@pytest.fixture(scope="module")
def processors(catalogue: Catalogue) -> Mapping[str, CpuForm]:
    """Processors of the machines in the rows."""
    return catalogue_processors(catalogue)


def test_machine_with_rows_has_their_facts(
    catalogue: Catalogue, processors: Mapping[str, CpuForm]
) -> None:
    """A machine with rows has the read rate measured there."""
    form = cpu_form_of(catalogue.machine("c6i.32xlarge"), processors)
    assert form == processors["aws c6i.32xlarge"]
    assert form.cores == 64
    assert form.sockets == 2
    assert form.read_gb_per_second == pytest.approx(336.9)


def test_machine_of_a_family_with_rows_has_its_chip(
    catalogue: Catalogue, processors: Mapping[str, CpuForm]
) -> None:
    """A smaller machine of the family has the same chip and instructions, but no read rate."""
    smaller = catalogue.machine("c6i.32xlarge").model_copy(
        update={"id": "c6i.4xlarge", "vcpus": 16, "cores": None}
    )
    assert cpu_form_of(smaller, processors) == CpuForm(
        "xeon-8375c", 16, 8, instructions=("avx2", "avx512f")
    )


def test_machine_without_rows_has_what_its_spec_says(
    catalogue: Catalogue, processors: Mapping[str, CpuForm]
) -> None:
    """Chip and cores come from the spec; on Arm each vCPU is a core."""
    assert cpu_form_of(catalogue.machine("c8g.48xlarge"), processors) == CpuForm(
        "graviton4", 192, 192
    )
    genoa = cpu_form_of(catalogue.machine("genoa-vm-2"), processors)
    assert genoa is not None
    assert "genoa" in genoa.chip


@pytest.mark.parametrize("machine", ["g6.xlarge", "cloud-ml-basic"])
def test_machines_without_a_processor_of_their_own_have_none(
    catalogue: Catalogue, processors: Mapping[str, CpuForm], machine: str
) -> None:
    """A machine with accelerators, and a spec that names no processor."""
    assert cpu_form_of(catalogue.machine(machine), processors) is None


def test_cores_that_are_shown_as_sockets_are_of_one(
    processors: Mapping[str, CpuForm],
) -> None:
    """No machine has more than eight sockets, although virtual machines may report more."""
    assert max(form.sockets or 1 for form in processors.values()) == 8


@pytest.mark.parametrize(
    ("machine", "threads"),
    [
        ("aws c9i.metal-24xl", 96),
        ("alicloud ecs.r9.xlarge", 4),
        ("azure Standard_E48s_v9", 48),
        ("azure Standard_D4_v2", None),
        ("gcp c9-standard-44-lssd", 44),
        ("upcloud PREMIUM-64xCPU-384GB", 64),
    ],
)
def test_sizes_of_providers_tell_threads(
    processors: Mapping[str, CpuForm], machine: str, threads: int | None
) -> None:
    """A machine without a spec takes its thread count from its name."""
    form = processor_of("xeon-8481c", machine, "", processors)
    assert form.threads == threads
    assert form.cores == (threads // 2 if threads else None)
    assert "amx_bf16" in form.instructions


def test_processors_are_told_from_accelerators_by_name() -> None:
    """Unlisted Xeon and Graviton names are processors, and a GPU is not."""
    assert is_processor("xeon-9999z")
    assert is_processor("graviton9")
    assert not is_processor("h100-sxm5")


@pytest.mark.parametrize(
    ("cells", "message"),
    [
        ("aws,m,xeon,,c,4,0.1,2,1,,", "threads_per_core: expected a whole number, got '0.1'"),
        ("aws,m,xeon,,c,4,2,two,1,,", "cores_per_socket: expected a number above 0, got 'two'"),
    ],
)
def test_a_table_of_processors_with_a_wrong_count(tmp_path: Path, cells: str, message: str) -> None:
    """A count that is no whole number is a fault with its column and line."""
    table = tmp_path / "machines.csv"
    columns = "vendor,machine,chip,gpu,cpu,vcpus,threads_per_core,cores_per_socket,sockets"
    table.write_text(f"{columns},instructions,read_gb_per_second\n{cells}\n")
    with pytest.raises(SpecError) as caught:
        read_processors(table)
    assert str(caught.value) == f"{table}:2:1: {message}"


def test_a_table_of_decoders_with_a_wrong_count(tmp_path: Path) -> None:
    """A number of experts below zero is a fault with its column and line."""
    table = tmp_path / "decoders.csv"
    columns = "model,layers,hidden,vocabulary,parameters,active_parameters,heads,head_size"
    table.write_text(
        f"{columns},experts,experts_per_token,kv_bytes_per_token_16_bit\n"
        "tiny,2,64,100,9000,9000,2,32,-8,2,512\n"
    )
    with pytest.raises(SpecError) as caught:
        read_forms(table)
    assert str(caught.value) == f"{table}:2:1: experts: expected a number above 0, got '-8'"
