"""Find processors of machines, and compute the peak rates of devices and processors.

Rates of devices come from ``specs/devices``, facts of processors from tables and from the names of
machines. If no table states a fact about a processor, the fact follows from the generation in the
processor's name.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

from epochcost.predict.rates import positive_number, read_table
from epochcost.specs.catalogue import Catalogue
from epochcost.specs.hardware import Device, Hardware

_GIGA = 1e9
_TERA = 1e12
_GIB = 2**30
# Bytes a second in one direction between two devices of a machine: NVLink for forms that have it,
# from NVIDIA's white papers of P100, V100, A100, H100 and B200, else most of a PCIe slot.
_NVLINK = {"Pascal": 80e9, "Volta": 150e9, "Ampere": 300e9, "Hopper": 450e9, "Blackwell": 900e9}
_PCIE = {"Kepler": 12e9, "Maxwell": 12e9, "Pascal": 12e9, "Volta": 12e9, "Turing": 12e9}
_PCIE |= {"Hopper": 50e9, "Blackwell": 50e9}
_PCIE_OF_OTHERS = 25e9
_LINKED = re.compile(r"sxm|nvl|gh200|gb200|gb300|^b[23]00|^[ah]100-pcie")
# Generations whose matrix units multiply in 8-bit floats, at the rate of int8.
_FLOAT8 = frozenset({"Ada", "Hopper", "Blackwell", "CDNA 3", "CDNA 4", "RDNA 4", "Gaudi"})
# Generations without operations on four packed integers, except chips whose makers state them:
# they need twice as many operations to unpack weights of few bits.
_UNPACKED = frozenset({"Kepler", "Maxwell", "Pascal"})
# Operations in fp32 relative to products in 16 bits, if the maker does not state them.
_ORDINARY_SHARE = 1 / 8


class _Generation(NamedTuple):
    """Processors whose names match ``pattern``.

    ``instructions`` is the widest vector instructions, a key of ``_LANES``. ``read`` is the
    gigabytes a second that all cores of one socket read together from memory.
    """

    pattern: str
    name: str
    instructions: str
    read: float


# Makers by the first word of a generation; all others are NVIDIA's.
_MAKERS = {
    "CDNA": "AMD", "RDNA": "AMD", "Apple": "Apple", "Gaudi": "Habana", "Xe-HPC": "Intel",
    "Xe-HPG": "Intel", "Xe2-HPG": "Intel", "TPU": "Google", "NeuronCore-v2": "AWS",
    "NeuronCore-v3": "AWS",
}  # fmt: skip
NVIDIA = "NVIDIA"
# fp32 operations of a core in a cycle, by the widest vectors that programs use.
_LANES = {
    "amx": 128, "avx512_bf16": 64, "avx512": 40, "avx2": 32, "sve": 32, "avx": 16, "neon": 16,
    "a72": 6,
}  # fmt: skip
_HERTZ = 2.5e9
# Threads of a processor of unknown size.
_THREADS_OF_OTHERS = 32
# A part of a socket's cores reads more than its share of the bandwidth.
_CORES_OF_SOCKET = 48
_GENERATIONS = (
    _Generation(r"graviton1|graviton$", "Graviton", "a72", 35),
    _Generation(r"graviton2", "Graviton2", "neon", 170),
    _Generation(r"graviton3", "Graviton3", "sve", 270),
    _Generation(r"graviton4", "Graviton4", "sve", 400),
    _Generation(r"graviton5", "Graviton5", "sve", 600),
    _Generation(r"axion", "Axion", "sve", 400),
    _Generation(r"cobalt", "Cobalt", "sve", 300),
    _Generation(r"altra", "Altra", "neon", 170),
    _Generation(r"ampereone", "Ampereone", "neon", 300),
    _Generation(r"xeon-e\d.*v2|ivy.bridge", "Ivy Bridge", "avx", 45),
    _Generation(r"xeon-e\d.*v3|haswell", "Haswell", "avx2", 55),
    _Generation(r"xeon-e\d.*v4|broadwell", "Broadwell", "avx2", 60),
    _Generation(r"xeon-[3568]1|xeon-8223|skylake", "Skylake", "avx512", 105),
    _Generation(r"xeon-[3568]2|cascade.lake", "Cascade Lake", "avx512", 110),
    _Generation(r"xeon-[3568]3|ice.lake", "Ice Lake", "avx512", 170),
    _Generation(r"xeon-[3568]4|sapphire.rapids", "Sapphire Rapids", "amx", 230),
    _Generation(r"xeon-[3568]5|emerald.rapids", "Emerald Rapids", "amx", 280),
    _Generation(r"xeon-69|granite.rapids", "Granite Rapids", "amx", 400),
    _Generation(r"epyc-7\w\w1$|naples", "Naples", "avx2", 75),
    _Generation(r"epyc-7\w+2$|rome", "Rome", "avx2", 120),
    _Generation(r"epyc-7\w+3$|milan", "Milan", "avx2", 140),
    _Generation(r"epyc-9\w+4[pfx]?$|genoa", "Genoa", "avx512_bf16", 330),
    _Generation(r"epyc-9\w+5[pfx]?$|turin", "Turin", "avx512_bf16", 450),
)
# An average, and the usual instructions of a server.
_OTHERS = _Generation("", "", "avx2", 100)
_PROCESSOR = re.compile(
    r"(xeon|epyc|graviton|neoverse|ampere-?(one|altra)|altra|cobalt|axion|kunpeng|yitian|ryzen"
    r"|threadripper|core-|intel-core)"
)
_COLUMNS = (
    "vendor", "machine", "chip", "gpu", "cpu", "vcpus", "threads_per_core",
    "cores_per_socket", "sockets", "instructions", "read_gb_per_second",
)  # fmt: skip


_THREADS_OF_A_CORE = 2
_THREADS = re.compile(r"(\d+) threads\b")
# Arm's processors.
_ONE_THREAD = re.compile(r"graviton|neoverse|ampere|altra|cobalt|axion|kunpeng|yitian")
# How AWS and Alibaba Cloud, Azure, UpCloud and Google name sizes, with the threads of a unit, not
# of Azure's D1_v2 to D5_v2, which count differently.
_SIZES = (
    (r"(\d*)-?xl(?:arge)?$", 4),
    (r"Standard_(?!D\d+_v2)[A-Z]+(\d+)", 1),
    (r"(\d+)xCPU", 1),
    (r"-(\d+)(?:-lssd)?$", 1),
)
# Assumed for families of machines whose specs state only a clock: their usual processor.
_OF_FAMILIES = {"c5": "xeon-8124m", "c7i": "xeon-8488c", "c8g": "graviton4"}


@dataclass(frozen=True, slots=True)
class CpuForm:
    """The processors of a machine; numbers are totals over its sockets, None if unknown."""

    chip: str
    threads: int | None = None
    cores: int | None = None
    sockets: int | None = None
    instructions: tuple[str, ...] = ()
    read_gb_per_second: float | None = None


@dataclass(frozen=True, slots=True)
class Chip:
    """The peak rates of a device, or of all processors of a machine together.

    ``products`` is the operations a second of the matrix units at a precision, ``operations`` those
    of the ordinary units. ``bandwidth`` is the bytes a second of the memory, ``link`` those to
    another device of the machine. ``hops`` is the number of links on the way to that device.
    ``unpacking`` is the number of operations that unpack a quantised weight, relative to their
    number on most chips. ``memory`` is in bytes, infinite for processors. ``cores`` is 0 for a
    device. Chips that agree in ``kind``, ``maker`` or ``generation`` are expected to behave alike.
    """

    name: str
    kind: str
    maker: str
    generation: str
    bandwidth: float
    products: float
    operations: float
    memory: float = math.inf
    unpacking: float = 1.0
    link: float = _PCIE_OF_OTHERS
    hops: float = 1.0
    cores: float = 0.0
    sockets: float = 1.0


def chip_of(device: Device | CpuForm, precision: str) -> Chip:
    """The peak rates of a device, or of all processors of a machine, at a precision."""
    if isinstance(device, CpuForm):
        return _processor_chip(device)
    linked = _LINKED.search(device.id) is not None
    generation = device.generation
    link = _NVLINK.get(generation, 0.0) if linked else 0.0
    return Chip(
        name=device.id,
        kind=device.chip,
        maker=_MAKERS.get(generation.split()[0], NVIDIA),
        generation=generation,
        bandwidth=float(device.memory_gb_per_second) * _GIGA,
        memory=float(device.memory_gib) * _GIB,
        products=_products(device, precision),
        operations=_operations(device) * _TERA,
        unpacking=2.0 if generation in _UNPACKED and not device.peak_int8_tops else 1.0,
        link=link or _PCIE.get(generation, _PCIE_OF_OTHERS),
        hops=1.0 if link else 2.0,
    )


def _operations(device: Device) -> float:
    fallback = _ORDINARY_SHARE * float(device.peak_fp16_tflops or 0)
    return float(device.peak_fp32_tflops or fallback)


def _products(device: Device, precision: str) -> float:
    """Peak matrix operations a second at a precision; int8 and int4 weights multiply in 16 bits."""
    peak = max(float(device.peak_fp16_tflops or 0), _operations(device))
    if precision in ("fp8", "fp4") and device.generation in _FLOAT8:
        peak = max(peak, float(device.peak_int8_tops or 2 * peak))
        if precision == "fp4" and device.generation == "Blackwell":
            peak *= 2
    return peak * _TERA


def _processor_chip(cpu: CpuForm) -> Chip:
    generation = _generation(cpu.chip)
    instructions = _instructions(cpu) or generation.instructions
    cores = cpu.cores or _THREADS_OF_OTHERS / _threads_of_core(cpu.chip)
    sockets = cpu.sockets or max(1, round(cores / (2 * _CORES_OF_SOCKET)))
    share = math.sqrt(min(1.0, cores / sockets / _CORES_OF_SOCKET))
    read = cpu.read_gb_per_second or generation.read * sockets * share
    products = cores * _LANES[instructions] * _HERTZ
    return Chip(
        name=cpu.chip,
        kind=cpu.chip,
        maker="",
        generation=generation.name or instructions,
        bandwidth=read * _GIGA,
        products=products,
        operations=products,
        cores=cores,
        sockets=sockets,
    )


def generation_of(name: str) -> str:
    """The generation that a processor's name contains, or an empty string."""
    return _generation(name).name


def _generation(name: str) -> _Generation:
    text = name.casefold().replace(" ", "-")
    return next((each for each in _GENERATIONS if re.search(each.pattern, text)), _OTHERS)


def _instructions(cpu: CpuForm) -> str:
    """The widest vector instructions of a processor (a key of ``_LANES``); empty if unknown."""
    text = " ".join(cpu.instructions)
    for name in ("amx", "avx512_bf16", "avx512", "avx2", "i8mm"):
        if name in text:
            return "sve" if name == "i8mm" else name
    return "avx" if text else ""


def _threads_of_core(chip: str) -> int:
    return 1 if _ONE_THREAD.search(chip) else _THREADS_OF_A_CORE


def is_processor(chip: str) -> bool:
    """Whether a chip is a processor (CPU) instead of an accelerator, by its name."""
    return _PROCESSOR.match(chip) is not None


def catalogue_processors(catalogue: Catalogue) -> Mapping[str, CpuForm]:
    """The processor of each machine without an accelerator, by provider and machine's name."""
    forms: dict[str, CpuForm] = {}
    for table in catalogue.tables_of("tokens"):
        if table.machines:
            folder = catalogue.files[f"observations/{table.id}"].parent
            forms |= read_processors(folder / table.machines)
    return forms


def read_processors(path: Path) -> Mapping[str, CpuForm]:
    """Processors of a table, by provider and machine; raises SpecError as ``read_rates`` does."""
    rows = read_table(path, _COLUMNS, lambda _, row: (row, _processor(row)))
    return {f"{row['vendor']} {row['machine']}": form for row, form in rows if not row["gpu"]}


def _processor(row: Mapping[str, str]) -> CpuForm:
    threads = int(positive_number("vcpus", row["vcpus"]))
    rate, sockets = row["read_gb_per_second"], row["sockets"]
    # Some virtual machines present each core as a socket.
    several = sockets != "" and row["cores_per_socket"] not in {"", "1"}
    return CpuForm(
        row["chip"],
        threads,
        max(1, threads // int(positive_number("threads_per_core", row["threads_per_core"] or "1"))),
        int(positive_number("sockets", sockets)) if several else 1,
        tuple(row["instructions"].split()),
        positive_number("read_gb_per_second", rate) if rate else None,
    )


def cpu_form_of(hardware: Hardware, processors: Mapping[str, CpuForm]) -> CpuForm | None:
    """The processor of a machine without accelerators; None if its spec names no processor.

    If ``processors`` (see ``catalogue_processors``) has the machine, its entry is returned.
    Otherwise the numbers come from the spec, and chip and instructions from another machine of the
    same family.
    """
    if hardware.accelerators or hardware.cpu is None:
        return None
    named = {machine.split(" ", 1)[-1]: form for machine, form in processors.items()}
    if hardware.id in named:
        return named[hardware.id]
    family = _family(hardware.id)
    relative = next((form for name, form in named.items() if _family(name) == family), None)
    # The id often names the generation that the text omits.
    text = f"{hardware.cpu} {hardware.id}".casefold()
    chip = relative.chip if relative else _OF_FAMILIES.get(family, text)
    form = _like_its_kin(chip, hardware.vcpus, processors)
    return replace(form, cores=hardware.cores or form.cores)


def processor_of(chip: str, machine: str, note: str, processors: Mapping[str, CpuForm]) -> CpuForm:
    """The processor of the machine in a published row, or the best guess from the row's names.

    A note such as "8 threads" comes from llama.cpp, which runs one thread on each core.
    """
    if machine in processors:
        return processors[machine]
    form = _like_its_kin(chip, _threads_of(machine), processors)
    threads = _THREADS.match(note)
    return replace(form, cores=int(threads[1])) if threads else form


def _like_its_kin(chip: str, threads: int | None, processors: Mapping[str, CpuForm]) -> CpuForm:
    """Copy instructions and threads per core to a processor from other machines with this chip."""
    kin = next((form for form in processors.values() if form.chip == chip), None)
    if kin is not None and kin.threads and kin.cores:
        of_a_core = kin.threads // kin.cores
    else:
        of_a_core = _threads_of_core(chip)
    cores = max(1, threads // of_a_core) if threads else None
    return CpuForm(chip, threads, cores, instructions=kin.instructions if kin else ())


def _threads_of(machine: str) -> int | None:
    """Number of threads that a machine's name contains by its provider's convention, or None."""
    for pattern, threads in _SIZES:
        size = re.search(pattern, machine)
        if size:
            return threads * int(size[1] or 1)
    return None


def _family(machine: str) -> str:
    """The part of a machine's name that all sizes of its family share."""
    return re.split(r"\.|-\d+$", machine)[0]
