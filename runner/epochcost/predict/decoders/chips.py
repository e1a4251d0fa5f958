"""Compute the peak rates of devices and processors that the laws of ``decoders`` need.

Rates of devices come from ``specs/devices``. If a table does not state a fact about a processor,
this module derives the fact from the generation in the processor's name.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

from epochcost.predict.decoders.processors import CpuForm
from epochcost.specs.hardware import Device

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
# Gigabytes a second that all cores of one socket read, by generation; an average for the others.
_READ_OF_SOCKET = {
    "Ivy Bridge": 45, "Haswell": 55, "Broadwell": 60, "Skylake": 105, "Cascade Lake": 110,
    "Ice Lake": 170, "Sapphire Rapids": 230, "Emerald Rapids": 280, "Granite Rapids": 400,
    "Naples": 75, "Rome": 120, "Milan": 140, "Genoa": 330, "Turin": 450, "Graviton": 35,
    "Graviton2": 170, "Graviton3": 270, "Graviton4": 400, "Graviton5": 600,
    "Axion": 400, "Cobalt": 300, "Altra": 170, "Ampereone": 300,
}  # fmt: skip
_READ_OF_OTHERS = 100.0
_CORES_OF_OTHERS = 16
# A part of a socket's cores reads more than its share of the bandwidth.
_CORES_OF_SOCKET = 48
_GENERATIONS = (
    (r"graviton1|graviton$", "Graviton"),
    (r"(graviton\d)", None),
    (r"(axion|cobalt|altra|ampereone)", None),
    (r"xeon-e\d.*v2|ivy.bridge", "Ivy Bridge"),
    (r"xeon-e\d.*v3|haswell", "Haswell"),
    (r"xeon-e\d.*v4|broadwell", "Broadwell"),
    (r"xeon-[3568]1|xeon-8223|skylake", "Skylake"),
    (r"xeon-[3568]2|cascade.lake", "Cascade Lake"),
    (r"xeon-[3568]3|ice.lake", "Ice Lake"),
    (r"xeon-[3568]4|sapphire.rapids", "Sapphire Rapids"),
    (r"xeon-[3568]5|emerald.rapids", "Emerald Rapids"),
    (r"xeon-69|granite.rapids", "Granite Rapids"),
    (r"epyc-7\w\w1$|naples", "Naples"),
    (r"epyc-7\w+2$|rome", "Rome"),
    (r"epyc-7\w+3$|milan", "Milan"),
    (r"epyc-9\w+4[pfx]?$|genoa", "Genoa"),
    (r"epyc-9\w+5[pfx]?$|turin", "Turin"),
)
_INSTRUCTIONS_OF = {
    "Ivy Bridge": "avx", "Haswell": "avx2", "Broadwell": "avx2", "Naples": "avx2", "Rome": "avx2",
    "Milan": "avx2", "Skylake": "avx512", "Cascade Lake": "avx512", "Ice Lake": "avx512",
    "Sapphire Rapids": "amx", "Emerald Rapids": "amx", "Granite Rapids": "amx",
    "Genoa": "avx512_bf16", "Turin": "avx512_bf16", "Graviton": "a72", "Graviton2": "neon",
    "Graviton3": "sve", "Graviton4": "sve", "Graviton5": "sve",
    "Axion": "sve", "Cobalt": "sve", "Altra": "neon", "Ampereone": "neon",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Chip:
    """The peak rates of a device, or of all processors of a machine together.

    ``products`` is the operations a second of the matrix units at a precision, ``operations`` those
    of the ordinary units. ``bandwidth`` is the bytes a second of the memory, ``link`` those to
    another device of the machine. ``hops`` is the number of links on the way to that device.
    ``unpacking`` is the number of operations that unpack a quantised weight, relative to their
    number on most chips. ``memory`` is in bytes, infinite for processors. ``cores`` is 0 for a
    device. Chips that agree in ``kind``, ``maker``, ``generation`` or ``instructions`` are expected
    to behave alike.
    """

    name: str
    kind: str
    maker: str
    generation: str
    instructions: str
    bandwidth: float
    memory: float
    products: float
    operations: float
    unpacking: float
    link: float
    hops: float
    cores: float
    sockets: float


def chip_of(device: Device | CpuForm, precision: str) -> Chip:
    """The rates of a device, or of all processors of a machine, at a precision."""
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
        instructions=generation,
        bandwidth=float(device.memory_gb_per_second) * _GIGA,
        memory=float(device.memory_gib) * _GIB,
        products=_products(device, precision),
        operations=_operations(device) * _TERA,
        unpacking=2.0 if generation in _UNPACKED and not device.peak_int8_tops else 1.0,
        link=link or _PCIE.get(generation, _PCIE_OF_OTHERS),
        hops=1.0 if link else 2.0,
        cores=0.0,
        sockets=1.0,
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
    generation = generation_of(cpu.chip)
    instructions = _instructions(cpu, generation)
    cores = cpu.cores or (cpu.threads or 2 * _CORES_OF_OTHERS) / _threads_of_core(generation)
    sockets = cpu.sockets or max(1, round(cores / (2 * _CORES_OF_SOCKET)))
    read = cpu.read_gb_per_second or _read(generation, cores, sockets)
    products = cores * _LANES[instructions] * _HERTZ
    return Chip(
        name=cpu.chip,
        kind=cpu.chip,
        maker="",
        generation=generation or instructions,
        instructions=instructions,
        bandwidth=read * _GIGA,
        memory=float("inf"),
        products=products,
        operations=products,
        unpacking=1.0,
        link=_PCIE_OF_OTHERS,
        hops=1.0,
        cores=cores,
        sockets=sockets,
    )


def generation_of(name: str) -> str:
    """The generation that a processor's name contains, or an empty string."""
    text = name.casefold().replace(" ", "-")
    for pattern, generation in _GENERATIONS:
        match = re.search(pattern, text)
        if match:
            return generation or match.group().capitalize()
    return ""


def _instructions(cpu: CpuForm, generation: str) -> str:
    """The widest vector instructions of a processor: a key of ``_LANES``."""
    if not cpu.instructions:
        return _INSTRUCTIONS_OF.get(generation, "avx2")
    text = " ".join(cpu.instructions)
    for name in ("amx", "avx512_bf16", "avx512", "avx2", "i8mm"):
        if name in text:
            return "sve" if name == "i8mm" else name
    return "avx"


def _threads_of_core(generation: str) -> int:
    return 1 if _INSTRUCTIONS_OF.get(generation) in ("sve", "neon", "a72") else 2


def _read(generation: str, cores: float, sockets: float) -> float:
    """Compute the gigabytes a second that ``cores`` of a processor read together from memory."""
    share = math.sqrt(min(1.0, cores / sockets / _CORES_OF_SOCKET))
    return _READ_OF_SOCKET.get(generation, _READ_OF_OTHERS) * sockets * share
