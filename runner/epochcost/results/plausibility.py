"""Find contradictions between a machine and its spec, and bound a machine's FLOP/s.

A property is compared only if both spec and machine state it. Measured FLOP/s, which should not
exceed the bound, count only the forward pass, even in training.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from decimal import Decimal
from typing import get_args

from epochcost.errors import InputError, ModelError
from epochcost.graphs.counting import flops
from epochcost.plan.binding import bind_model
from epochcost.results.environment import CloudProvider, Environment, Gpu
from epochcost.results.records import Result
from epochcost.specs.catalogue import Catalogue
from epochcost.specs.hardware import Accelerator, Hardware
from epochcost.specs.model import Model
from epochcost.specs.study import Precision
from epochcost.units import plain
from onnxstep.graphs.loading import load_model

_GIB = 2**30
# A machine may show less memory than its spec: kernel and hypervisor (on a GPU, error correction)
# reserve up to a tenth. It may show more if a list prints GB for GiB (7 %). The next larger size of
# a machine has at least a sixth more.
_LEAST_MEMORY_SHARE = 0.85
_MOST_MEMORY_SHARE = 1.08
_MAKERS = {"amd", "intel"}
# Part of a CPU's name that shows its generation even if a hypervisor hides the model's name.
_KIND = re.compile(r"\(family \d+, model \d+\)")
# Ids of our machines that are not instance types of a cloud begin so.
_MADE_UP = "gcp-"
# A cycle multiplies and adds in two units of 16 numbers; no chip on the market has a higher clock.
_FLOPS_A_CYCLE, MOST_HERTZ = 64, 6.5e9
# AMX does 2048 int8 operations in a cycle; models in int4 may round activations to int8.
_HALF_OVER_SINGLE_CPU = 32
# The largest host has fewer CPUs: sixteen sockets of 60 cores with two threads are 1,920.
_MOST_CPUS = 2048
# Makers compute peak rates from a base clock; the highest clock exceeds it by at most this factor.
_BOOST = 1.2
_CPU_BOOST = 2.0
# Highest rates of GPUs on the market: FLOP/s of cores (RTX PRO 6000) and of tensor cores (B300),
# and bytes/s of memory (B300).
_ANY_GPU_SINGLE, _ANY_GPU_HALF, _ANY_GPU_COPY = 1.3e14, 2.6e15, 8e12
# Winograd's F(4x4, 3x3) needs a quarter of a 3x3 convolution's products (Lavin & Gray 2016).
_FEWER_PRODUCTS = 4

# FLOPs of one example, by the model's id; None if they cannot be counted.
FlopsByModel = dict[str, float | None]


def require_plausible(hardware: Hardware, environment: Environment, *, as_is: bool = False) -> None:
    """Raise InputError if the spec and the machine contradict each other, unless ``as_is``."""
    differences = contradictions(hardware, environment)
    if differences and not as_is:
        raise InputError(
            f"--hardware {hardware.id}: expected {hardware.name}; this machine has "
            f"{'; '.join(differences)}: run on that machine, correct its spec, leave --hardware "
            "out to measure this one as `local`, or add --as-is to store its results with these "
            "contradictions"
        )


def contradictions(hardware: Hardware, environment: Environment) -> tuple[str, ...]:
    """Differences between a machine and its spec, as texts; none for a ``detected`` spec."""
    if hardware.detected:
        return ()
    return (
        *_processor_differences(hardware, environment),
        *_cpu_count_differences(hardware, environment),
        *_memory_differences(hardware, environment),
        *_gpu_differences(hardware, environment),
        *_instance_type_differences(hardware, environment),
    )


def _processor_differences(hardware: Hardware, environment: Environment) -> Iterator[str]:
    names = (hardware.cpu or "", environment.cpu or "")
    makers = [set(_parts(name)) & _MAKERS for name in names]
    kinds = [_KIND.findall(name) for name in names]
    if any(all(pair) and pair[0] != pair[1] for pair in (makers, kinds)):
        yield f"a CPU {environment.cpu}, not {hardware.cpu}"


def _cpu_count_differences(hardware: Hardware, environment: Environment) -> Iterator[str]:
    logical, quota = environment.logical_cpus, environment.cpu_quota
    if hardware.vcpus is not None and logical != hardware.vcpus:
        yield f"{logical} logical CPUs, not {hardware.vcpus}"
    if hardware.vcpus is not None and quota is not None and quota < hardware.vcpus:
        yield f"a quota of {quota:.3g} CPUs, not {hardware.vcpus}"
    cores = environment.physical_cores
    # A hypervisor may show each thread as a core, so that equal counts prove nothing.
    tells_threads = cores is not None and cores < logical
    if hardware.cores is not None and tells_threads and cores != hardware.cores:
        yield f"{cores} cores, not {hardware.cores}"


def _memory_differences(hardware: Hardware, environment: Environment) -> Iterator[str]:
    limits = (environment.memory_bytes, environment.memory_limit_bytes)
    sizes = [limit for limit in limits if limit is not None]
    if hardware.memory_gib is None or not sizes:
        return
    memory_gib = min(sizes) / _GIB
    if not _about(memory_gib, float(hardware.memory_gib)):
        yield f"{memory_gib:.1f} GiB of memory, not {plain(hardware.memory_gib)}"


def _about(found_gib: float, declared_gib: float) -> bool:
    return _LEAST_MEMORY_SHARE <= found_gib / declared_gib <= _MOST_MEMORY_SHARE


def _gpu_differences(hardware: Hardware, environment: Environment) -> Iterator[str]:
    demanded = [chip for chip in hardware.accelerators for _ in range(chip.count)]
    gpus = environment.gpus
    if len(gpus) != len(demanded):
        yield f"{len(gpus)} GPUs, not {len(demanded)}"
        return
    demanded.sort(key=lambda chip: chip.name)
    pairs = zip(sorted(gpus, key=lambda gpu: str(gpu.name)), demanded, strict=True)
    yield from dict.fromkeys(
        difference for gpu, chip in pairs for difference in _chip_differences(gpu, chip)
    )


def _chip_differences(gpu: Gpu, chip: Accelerator) -> Iterator[str]:
    if gpu.name is not None and not same_chip(gpu.name, chip.name):
        yield f"a {gpu.name}, not a {chip.name}"
    elif chip.memory_gib is not None and gpu.memory_bytes is not None:
        memory_gib = gpu.memory_bytes / _GIB
        if not _about(memory_gib, float(chip.memory_gib)):
            yield f"a GPU of {memory_gib:.1f} GiB, not of {plain(chip.memory_gib)}"


def same_chip(driver_name: str, spec_name: str) -> bool:
    """Whether a GPU's name in its driver and a name in a spec mean the same chip.

    The model number must be a word in both: an ``NVIDIA L40S`` is no ``L4``. Form factors and
    memory sizes are not compared.
    """
    numbers = [word for word in _parts(spec_name) if any(letter.isdigit() for letter in word)]
    return not numbers or numbers[0] in _parts(driver_name)


def _parts(name: str) -> list[str]:
    return re.findall(r"[a-z0-9]+", name.lower())


def _instance_type_differences(hardware: Hardware, environment: Environment) -> Iterator[str]:
    rented = environment.instance
    if rented is None or hardware.provider not in get_args(CloudProvider):
        return
    if hardware.provider != rented.provider:
        yield f"the instance type {rented.type} of {rented.provider}, not {hardware.provider}"
    elif not hardware.id.startswith(_MADE_UP) and not _is_of_type(hardware.id, rented.type):
        yield f"the instance type {rented.type}, not {hardware.id}"


def _is_of_type(hardware_id: str, instance_type: str) -> bool:
    # The type's spelling in ids, without Azure's `Standard_`. On GCE, GPUs may follow the type.
    spelled = instance_type.lower().replace("_", "-").removeprefix("standard-")
    return hardware_id == spelled or hardware_id.startswith(f"{spelled}-")


def example_flops(catalogue: Catalogue, model: Model, counted: FlopsByModel) -> float | None:
    """FLOPs of an example's forward pass, cached in ``counted``; None if they cannot be counted."""
    if model.id not in counted:
        counted[model.id] = None
        if model.graph is not None:
            try:
                graph = bind_model(load_model(catalogue.graph_path(model)), model, 1)
                counted[model.id] = float(flops(graph))
            except ModelError:
                pass
    return counted[model.id]


def peak_flops(catalogue: Catalogue, result: Result) -> float:
    """Upper bound of the FLOP/s that a result's trial can reach on its machine."""
    hardware, trial = catalogue.hardware[result.hardware], result.trial
    environment = result.environment
    if trial.provider == "cuda":
        chips = gpus_of(catalogue, hardware, environment, trial.session.device)
        return gpu_products(chips, trial.precision) * _FEWER_PRODUCTS
    single = cpu_flops(hardware, environment, trial.vcpus or environment.logical_cpus)
    return single * (1 if trial.precision == "fp32" else _HALF_OVER_SINGLE_CPU)


def cpu_flops(hardware: Hardware, environment: Environment, cpus: int) -> float:
    """Upper bound of the fp32 FLOP/s that ``cpus`` CPUs of a machine reach together."""
    count = min(cpus, environment.logical_cpus, hardware.vcpus or _MOST_CPUS)
    most = _FLOPS_A_CYCLE * MOST_HERTZ * count
    spec = hardware.peak_fp32_tflops
    return most if spec is None else min(most, float(spec) * 1e12 * _CPU_BOOST)


def gpu_products(chips: Sequence[Accelerator], precision: Precision) -> float:
    """Upper bound of the FLOP/s of a matrix product on the fastest of ``chips``."""
    single = precision == "fp32"
    peaks = [chip.peak_fp32_tflops if single else chip.peak_fp16_tflops for chip in chips]
    return _highest_rate(peaks, 1e12, _ANY_GPU_SINGLE if single else _ANY_GPU_HALF) * _BOOST


def gpu_copy(chips: Sequence[Accelerator]) -> float:
    """Upper bound of the memory bandwidth of the fastest of ``chips``, in bytes per second."""
    return _highest_rate([chip.memory_gb_per_second for chip in chips], 1e9, _ANY_GPU_COPY) * _BOOST


def gpus_of(
    catalogue: Catalogue, hardware: Hardware, environment: Environment, device: int = 0
) -> Sequence[Accelerator]:
    """The spec's GPUs; if none, all of the catalogue named like the host's GPU ``device``."""
    gpus = environment.gpus
    name = gpus[device].name if device < len(gpus) else None
    every = (chip for machine in catalogue.hardware.values() for chip in machine.accelerators)
    alike = [chip for chip in every if name is not None and same_chip(name, chip.name)]
    return hardware.accelerators or alike


def _highest_rate(peaks: Sequence[Decimal | None], unit: float, any_gpu_rate: float) -> float:
    rates = [float(peak) * unit for peak in peaks if peak is not None]
    # A chip without a known peak may be the fastest.
    return max(rates) if rates and len(rates) == len(peaks) else any_gpu_rate
