"""Find processors (CPUs) of machines, and compute the peak rates of devices and processors.

Rates of devices come from ``specs/devices``. Facts about processors come from tables, else from the
names of machines and from the generation in the processor's name.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import NamedTuple

from epochcost.predict.rates import count_or, positive_number, read_table, whole_number
from epochcost.specs.catalogue import Catalogue
from epochcost.specs.hardware import Device, Hardware

_GIGA = 1e9
_TERA = 1e12
_GIB = 2**30
# Bytes a second in one direction between two devices of a machine, by generation. NVLink: from
# NVIDIA's white papers of P100, V100, A100, H100 and B200. PCIe: three quarters to four fifths of
# the rate of 16 lanes, of PCIe 3 in older generations, PCIe 5 in newer ones, PCIe 4 in all others.
_NVLINK = {"Pascal": 80e9, "Volta": 150e9, "Ampere": 300e9, "Hopper": 450e9, "Blackwell": 900e9}
# The same by device, if it has fewer links than others of its generation (NVIDIA's data sheets), or
# 21 links of Ethernet to seven other devices (stas00/ml-engineering@0030e63f52: network/README.md).
_OTHER_LINKS = {
    "a800-pcie-80-gb": 200e9, "a800-sxm4-80-gb": 200e9, "h800-pcie": 200e9, "h800-sxm5": 200e9,
    "h100-pcie": 300e9, "h100-nvl": 300e9, "gaudi2": 262.5e9, "gaudi3": 525e9,
}  # fmt: skip
_PCIE = {"Kepler": 12e9, "Maxwell": 12e9, "Pascal": 12e9, "Volta": 12e9, "Turing": 12e9}
_PCIE |= {"Hopper": 50e9, "Blackwell": 50e9}
_PCIE_OF_OTHERS = 25e9
# Ids of devices with links between all devices of a machine, and of those with bridges, which join
# two devices.
_LINKED = re.compile(r"sxm|gh200|gb200|gb300|^b[23]00|^h20$|^gaudi")
_BRIDGED, _DEVICES_OF_BRIDGE = re.compile(r"nvl|^[ah][18]00-pcie"), 2
# Generations whose matrix units multiply floats of 8 bits, at the rate of int8, or of 4 bits, at
# twice that rate.
_FLOAT8 = frozenset({"Ada", "Hopper", "Blackwell", "CDNA 3", "CDNA 4", "RDNA 4", "Gaudi"})
_FLOAT4 = frozenset({"Blackwell", "CDNA 4"})
# GPUs of these generations need twice as many operations to unpack quantised weights, since they
# cannot multiply four packed integers at once. GPUs with a stated int8 rate, such as P40, can.
_OLD = frozenset({"Kepler", "Maxwell", "Pascal"})
# For a prompt, llama.cpp writes quantised weights to memory as numbers of this many bytes on GPUs
# of other old generations, and of four bytes on those above (llama.cpp@b4753: ggml-cuda.cu).
_UNPACKED_BYTES = {"Volta": 2.0}
# Assumed peak in fp32 relative to that of products in 16 bits, if the maker states none.
_ORDINARY_SHARE = 1 / 8


class CpuGeneration(NamedTuple):
    """Processors whose names match ``pattern``; ``cores`` is that of the largest one.

    ``lanes`` is the number of fp32 operations of a core in a cycle; a multiply-add counts as two.
    ``gigahertz`` is the usual clock if all cores are busy. ``core_read`` and ``read`` are the most
    GB/s that a core and a processor read from memory.
    """

    pattern: str
    name: str
    lanes: int
    gigahertz: float
    cores: int
    core_read: float
    read: float


# Makers by the first word of a generation; all others are NVIDIA's.
_MAKERS = {
    "CDNA": "AMD", "RDNA": "AMD", "Apple": "Apple", "Gaudi": "Habana", "Xe-HPC": "Intel",
    "Xe-HPG": "Intel", "Xe2-HPG": "Intel", "TPU": "Google", "NeuronCore-v2": "AWS",
    "NeuronCore-v3": "AWS",
}  # fmt: skip
NVIDIA, ARM = "NVIDIA", "Arm"
# Makers of processors, by words in the processors' names; all others are Intel's. Makers of Arm
# processors count as one, since programs use the same instructions on them.
_OF_PROCESSORS = {
    ARM: re.compile(r"graviton|neoverse|ampere|altra|cobalt|axion|kunpeng|yitian"),
    "AMD": re.compile(r"epyc|ryzen|threadripper"),
}
# Lanes of processors of unknown generation, by the widest vector instructions that they have.
_LANES = {"amx": 128, "avx512_bf16": 64, "avx512": 40, "avx2": 32, "i8mm": 32}
_FEWEST_LANES = 16
# Lanes, clocks and cores are from makers' documents, bandwidths from the machines in
# specs/observations/sparecores-machines.csv.
_GENERATIONS = (
    CpuGeneration(r"graviton1|graviton$", "Graviton", 8, 2.3, 16, 3, 35),
    CpuGeneration(r"graviton2", "Graviton2", 16, 2.5, 64, 20, 175),
    CpuGeneration(r"graviton3", "Graviton3", 32, 2.6, 64, 24, 275),
    CpuGeneration(r"graviton4", "Graviton4", 32, 2.8, 96, 22, 465),
    CpuGeneration(r"graviton5", "Graviton5", 32, 3.3, 192, 22, 745),
    CpuGeneration(r"axion", "Axion", 32, 3.0, 72, 22, 400),
    CpuGeneration(r"cobalt", "Cobalt", 32, 3.4, 128, 22, 475),
    CpuGeneration(r"yitian", "Yitian", 32, 2.8, 128, 20, 250),
    CpuGeneration(r"altra", "Altra", 16, 3.0, 128, 20, 175),
    CpuGeneration(r"ampereone", "Ampereone", 16, 3.2, 192, 20, 290),
    CpuGeneration(r"xeon-e\d.*v2|ivy.bridge", "Ivy Bridge", 16, 2.9, 12, 13, 52),
    CpuGeneration(r"xeon-e\d.*v3|haswell", "Haswell", 32, 2.7, 18, 13, 58),
    CpuGeneration(r"xeon-e\d.*v4|broadwell", "Broadwell", 32, 2.7, 22, 13, 62),
    CpuGeneration(r"xeon-e-2|xeon-e3-\d+-v6", "Xeon E", 32, 4.3, 8, 15, 35),
    CpuGeneration(r"xeon-[3568]1|xeon-8223|skylake", "Skylake", 40, 2.9, 28, 13, 110),
    CpuGeneration(r"xeon-[3568]2|cascade.lake", "Cascade Lake", 40, 3.1, 28, 13, 115),
    CpuGeneration(r"xeon-[3568]3|ice.lake", "Ice Lake", 40, 3.1, 40, 14, 175),
    CpuGeneration(r"xeon-[3568]4|sapphire.rapids", "Sapphire Rapids", 128, 3.0, 60, 14, 240),
    CpuGeneration(r"xeon-[3568]5|emerald.rapids", "Emerald Rapids", 128, 3.1, 64, 15, 300),
    CpuGeneration(r"xeon-69|granite.rapids", "Granite Rapids", 128, 3.6, 128, 17, 560),
    CpuGeneration(r"epyc-4", "EPYC 4004", 64, 5.0, 16, 15, 53),
    CpuGeneration(r"epyc-7\w\w1p?\b|naples", "Naples", 16, 2.7, 32, 6, 80),
    CpuGeneration(r"epyc-7\w+2p?\b|rome", "Rome", 32, 3.1, 64, 9, 120),
    CpuGeneration(r"epyc-7\w+3[px]?\b|milan", "Milan", 32, 3.4, 64, 6, 140),
    CpuGeneration(r"epyc-9\w+4[pfx]?\b|genoa", "Genoa", 64, 3.6, 128, 9, 355),
    CpuGeneration(r"epyc-9\w+5[pfx]?\b|turin", "Turin", 64, 4.0, 192, 9, 530),
)
# Parts of names that systems give to processors; names in tables of rates do not have them.
_NO_PART_OF_NAME = re.compile(r"\((r|tm)\)|\b(cpu|platinum|gold|silver|bronze)\b")
# Processors of unknown generation are like a server of average age.
_OTHERS = CpuGeneration("", "", 0, 3.0, 32, 13, 100)
# If the cores can read a bytes a second and the memory b, the processor reads
# 1 / (1 / a**n + 1 / b**n)**(1 / n), with n being this number.
_SHARPNESS = 3
_PROCESSOR = re.compile(
    "|".join(["xeon", "core-", "intel-core", *(name.pattern for name in _OF_PROCESSORS.values())])
)
_COLUMNS = (
    "vendor", "machine", "chip", "gpu", "cpu", "vcpus", "threads_per_core",
    "cores_per_socket", "sockets", "instructions", "read_gb_per_second",
)  # fmt: skip


_THREADS_OF_A_CORE = 2
_CORES_OF_GROUP = 4
_THREADS = re.compile(r"(\d+) threads\b")
# Sizes in the names of machines at AWS and Alibaba Cloud, Azure, UpCloud and Google, each with the
# threads of one unit of size. In Azure's D1_v2 to D5_v2, the number is not that of threads.
_SIZES = (
    (r"(\d*)-?xl(?:arge)?$", 4),
    (r"Standard_(?!D\d+_v2)[A-Z]+(\d+)", 1),
    (r"(\d+)xCPU", 1),
    (r"-(\d+)(?:-lssd)?$", 1),
)
# The usual processor of AWS families whose specs name only the maker and the clock.
_OF_FAMILIES = {"c5": "xeon-8124m", "c7i": "xeon-8488c", "c8g": "graviton4"}


@dataclass(frozen=True, slots=True)
class CpuForm:
    """The processors of a machine; numbers are totals over all sockets, None if unknown."""

    chip: str
    threads: int | None = None
    cores: int | None = None
    sockets: int | None = None
    instructions: tuple[str, ...] = ()
    read_gb_per_second: float | None = None


@dataclass(frozen=True, slots=True)
class Chip:
    """The peak rates of an accelerator, or of all processors (CPUs) of a machine together.

    ``products`` (matrix units at a precision) and ``operations`` (vector units in fp32) are
    operations a second. ``bandwidth`` and ``link`` (between accelerators) are bytes a second,
    ``memory`` is in bytes and ``power`` in watts, both infinite if unknown. ``hops`` is the number
    of links between two accelerators. ``unpacking`` is 2 if the chip needs twice as many operations
    as others to unpack a quantised weight, else 1; ``unpacked_bytes`` is 0 if the weight is not
    written to memory. ``cores`` and ``sockets`` are 0 and 1 for an accelerator.
    """

    name: str
    kind: str
    maker: str
    generation: str
    bandwidth: float
    products: float
    operations: float
    memory: float = math.inf
    power: float = math.inf
    unpacking: float = 1.0
    unpacked_bytes: float = 0.0
    link: float = _PCIE_OF_OTHERS
    hops: float = 1.0
    cores: float = 0.0
    sockets: float = 1.0


@cache
def chip_of(
    device: Device | CpuForm, precision: str, *, count: int = 1, llama_cpp: bool = False
) -> Chip:
    """The peak rates of an accelerator, or of all processors of a machine, at a precision.

    ``Chip.link`` is the rate between any two of ``count`` accelerators. llama.cpp multiplies
    quantised weights in int8 and sums other products in 16 bits: some GPUs then reach a higher
    rate. On old GPUs, it writes quantised weights to memory as floats.
    """
    if isinstance(device, CpuForm):
        return _processor_chip(device)
    bridged = count <= _DEVICES_OF_BRIDGE and _BRIDGED.search(device.id) is not None
    linked = bridged or _LINKED.search(device.id) is not None
    generation = device.generation
    is_old = generation in _OLD and not device.peak_int8_tops
    unpacked_bytes = 4.0 if is_old else _UNPACKED_BYTES.get(generation, 0.0)
    rate = _OTHER_LINKS.get(device.id, _NVLINK.get(generation, 0.0))
    link = rate if linked else 0.0
    return Chip(
        name=device.id,
        kind=device.chip,
        maker=_MAKERS.get(generation.split()[0], NVIDIA),
        generation=generation,
        bandwidth=float(device.memory_gb_per_second) * _GIGA,
        memory=float(device.memory_gib) * _GIB,
        products=_peak_matrix_rate(device, precision, llama_cpp),
        operations=_operations(device) * _TERA,
        power=float(device.power_watts or math.inf),
        unpacking=2.0 if is_old else 1.0,
        unpacked_bytes=unpacked_bytes if llama_cpp else 0.0,
        link=link or _PCIE.get(generation, _PCIE_OF_OTHERS),
        hops=1.0 if link else 2.0,
    )


def _operations(device: Device) -> float:
    fallback = _ORDINARY_SHARE * float(device.peak_fp16_tflops or 0)
    return float(device.peak_fp32_tflops or fallback)


def _peak_matrix_rate(device: Device, precision: str, llama_cpp: bool) -> float:
    # Weights in int8 and int4 are multiplied in 16 bits too.
    peak = max(float(device.peak_fp16_tflops or 0), _operations(device))
    if llama_cpp and device.generation in _OLD:
        peak = _operations(device)
    elif llama_cpp:
        # GeForce GPUs sum products in fp32 at half the rate (NVIDIA's GA102 white paper).
        peak = max(peak, float(device.peak_int8_tops or 0) / 2)
    native = _FLOAT8 if precision == "fp8" else _FLOAT4
    if precision in ("fp8", "fp4") and device.generation in native:
        peak = max(peak, float(device.peak_int8_tops or 2 * peak))
        if precision == "fp4":
            peak *= 2
    return peak * _TERA


def _processor_chip(cpu: CpuForm) -> Chip:
    generation = generation_of(cpu.chip)
    cores = cpu.cores or generation.cores
    sockets = cpu.sockets or math.ceil(cores / generation.cores)
    limits = generation.core_read * cores, generation.read * sockets
    both = sum(limit**-_SHARPNESS for limit in limits) ** (-1 / _SHARPNESS)
    lanes = generation.lanes or _lanes_by_instructions(cpu)
    products = cores * lanes * generation.gigahertz * _GIGA
    return Chip(
        name=cpu.chip,
        kind=cpu.chip,
        maker=_maker(cpu.chip),
        generation=generation.name or f"{lanes} lanes",
        bandwidth=(cpu.read_gb_per_second or both) * _GIGA,
        products=products,
        operations=products,
        cores=cores,
        sockets=sockets,
    )


def generation_of(name: str) -> CpuGeneration:
    """The generation in a processor's name; an average, unnamed generation if none matches."""
    text = "-".join(_NO_PART_OF_NAME.sub(" ", name.casefold()).split())
    return next((each for each in _GENERATIONS if re.search(each.pattern, text)), _OTHERS)


def _lanes_by_instructions(cpu: CpuForm) -> int:
    text = " ".join(cpu.instructions)
    return next((lanes for name, lanes in _LANES.items() if name in text), _FEWEST_LANES)


def _maker(chip: str) -> str:
    return next((maker for maker, name in _OF_PROCESSORS.items() if name.search(chip)), "Intel")


def is_processor(chip: str) -> bool:
    """Whether a chip is a processor (CPU) instead of an accelerator, by its name."""
    return _PROCESSOR.match(chip) is not None


def catalogue_processors(catalogue: Catalogue) -> Mapping[str, CpuForm]:
    """Processors of a catalogue's machines without GPUs, keyed by names such as "aws c6a.metal"."""
    forms: dict[str, CpuForm] = {}
    for table in catalogue.tables_of("tokens"):
        if table.machines:
            forms |= read_processors(catalogue.table_path(table, table.machines))
    return forms


def read_processors(path: Path) -> Mapping[str, CpuForm]:
    """Read the processors of all machines without GPUs in a table of machines.

    The keys are names such as "aws c6a.metal". Raises SpecError for an invalid table.
    """
    rows = read_table(path, _COLUMNS, lambda _, row: (row, _processor(row)))
    return {f"{row['vendor']} {row['machine']}": form for row, form in rows if not row["gpu"]}


def _processor(row: Mapping[str, str]) -> CpuForm:
    threads = whole_number("vcpus", row["vcpus"])
    rate, sockets = row["read_gb_per_second"], row["sockets"]
    # Some virtual machines present each core, or each group of four cores, as a socket.
    grouped = count_or("cores_per_socket", row["cores_per_socket"], 0) <= _CORES_OF_GROUP
    return CpuForm(
        row["chip"],
        threads,
        max(1, threads // whole_number("threads_per_core", row["threads_per_core"] or "1")),
        1 if grouped or not sockets else whole_number("sockets", sockets),
        tuple(row["instructions"].split()),
        positive_number("read_gb_per_second", rate) if rate else None,
    )


def cpu_form_of(hardware: Hardware, processors: Mapping[str, CpuForm]) -> CpuForm | None:
    """The processors of a machine; None if it has accelerators or its spec names no processor.

    They are the machine's entry in ``processors`` (with keys such as "aws c6a.metal"), else threads
    and cores come from the spec. The ``chip`` is then that of a machine of the same family (such as
    c5) in ``processors`` or of a known AWS family, else the spec's ``cpu`` and id in lower case.
    """
    if hardware.accelerators or hardware.cpu is None:
        return None
    named = {machine.split(" ", 1)[-1]: form for machine, form in processors.items()}
    if hardware.id in named:
        return named[hardware.id]
    family = _name_without_size(hardware.id)
    relative = next(
        (form for name, form in named.items() if _name_without_size(name) == family), None
    )
    # The id often names the generation that the text omits.
    text = f"{hardware.cpu} {hardware.id}".casefold()
    chip = relative.chip if relative else _OF_FAMILIES.get(family, text)
    form = _estimated_form(chip, hardware.vcpus, processors)
    return replace(form, cores=hardware.cores or form.cores)


def processor_of(chip: str, machine: str, note: str, processors: Mapping[str, CpuForm]) -> CpuForm:
    """The entry of ``machine`` in ``processors``, else a guess from ``chip`` and ``machine``.

    For a guess, a ``note`` such as "8 threads" gives the number of cores, one for each thread.
    """
    if machine in processors:
        return processors[machine]
    form = _estimated_form(chip, _threads_in_name(machine), processors)
    threads = _THREADS.match(note)
    return replace(form, cores=int(threads[1])) if threads else form


def _estimated_form(chip: str, threads: int | None, processors: Mapping[str, CpuForm]) -> CpuForm:
    same_chip = next((form for form in processors.values() if form.chip == chip), None)
    if same_chip is not None and same_chip.threads and same_chip.cores:
        threads_per_core = same_chip.threads // same_chip.cores
    else:
        threads_per_core = 1 if _maker(chip) == ARM else _THREADS_OF_A_CORE
    cores = max(1, threads // threads_per_core) if threads else None
    return CpuForm(chip, threads, cores, instructions=same_chip.instructions if same_chip else ())


def _threads_in_name(machine: str) -> int | None:
    for pattern, threads in _SIZES:
        size = re.search(pattern, machine)
        if size:
            return threads * int(size[1] or 1)
    return None


def _name_without_size(machine: str) -> str:
    return re.split(r"\.|-\d+$", machine)[0]
