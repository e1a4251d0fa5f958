"""Check whether this machine can be the declared machine.

A result that is stored under another machine's name would always get a wrong price. So before
measuring, this module compares the spec with facts from the kernel, drivers and the cloud's
metadata service. It compares a fact only if both the spec and the machine state it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from epochcost.errors import InputError
from epochcost.results.environment import CloudProvider, Environment, Gpu
from epochcost.specs.hardware import Accelerator, Hardware
from epochcost.units import plain

_GIB = 2**30
# Kernel and hypervisor reserve up to a tenth of the memory, as error correction does on a GPU, and
# some lists print GB for GiB (7 %); the next larger size has at least a sixth more.
_LEAST_MEMORY_SHARE = 0.85
_MOST_MEMORY_SHARE = 1.08
_MAKERS = {"amd", "intel"}
# Distinguishes generations if a hypervisor hides the model's name.
_KIND = re.compile(r"\(family \d+, model \d+\)")
_PROVIDERS: tuple[CloudProvider, ...] = ("AWS EC2", "Google Compute Engine", "Azure")
# Begins the ids of machines that are no instance type of a cloud's list.
_MADE_UP = "gcp-"


def require_plausible(hardware: Hardware, environment: Environment, *, as_is: bool = False) -> None:
    """Raise InputError if spec and machine contradict each other, unless ``as_is``."""
    differences = contradictions(hardware, environment)
    if differences and not as_is:
        raise InputError(
            f"--hardware {hardware.id}: expected {hardware.name}; this machine has "
            f"{'; '.join(differences)}: run on that machine, leave --hardware out to measure this "
            "one as `local`, or add --as-is to store its results with these contradictions"
        )


def contradictions(hardware: Hardware, environment: Environment) -> tuple[str, ...]:
    """Differences of this machine from the spec, as texts.

    Empty if the spec was made from this machine.
    """
    if hardware.detected:
        return ()
    return (
        *_processor(hardware, environment),
        *_cpus(hardware, environment),
        *_memory(hardware, environment),
        *_gpus(hardware, environment),
        *_instance(hardware, environment),
    )


def _processor(hardware: Hardware, environment: Environment) -> Iterator[str]:
    """Differences of the CPU: its maker, family and model, as far as both sides state them."""
    names = (hardware.cpu or "", environment.cpu or "")
    makers = [set(_parts(name)) & _MAKERS for name in names]
    kinds = [_KIND.findall(name) for name in names]
    if any(all(pair) and pair[0] != pair[1] for pair in (makers, kinds)):
        yield f"a CPU {environment.cpu}, not {hardware.cpu}"


def _cpus(hardware: Hardware, environment: Environment) -> Iterator[str]:
    logical, quota = environment.logical_cpus, environment.cpu_quota
    if hardware.vcpus is not None and logical != hardware.vcpus:
        yield f"{logical} logical CPUs, not {hardware.vcpus}"
    if hardware.vcpus is not None and quota is not None and quota < hardware.vcpus:
        yield f"a quota of {quota:.3g} CPUs, not {hardware.vcpus}"
    cores = environment.physical_cores
    # A hypervisor may show each thread as a core: equal counts say nothing.
    tells_threads = cores is not None and cores < logical
    if hardware.cores is not None and tells_threads and cores != hardware.cores:
        yield f"{cores} cores, not {hardware.cores}"


def _memory(hardware: Hardware, environment: Environment) -> Iterator[str]:
    limits = (environment.memory_bytes, environment.memory_limit_bytes)
    sizes = [limit for limit in limits if limit is not None]
    if hardware.memory_gib is None or not sizes:
        return
    memory_gib = min(sizes) / _GIB
    if not _about(memory_gib, float(hardware.memory_gib)):
        yield f"{memory_gib:.1f} GiB of memory, not {plain(hardware.memory_gib)}"


def _about(found_gib: float, declared_gib: float) -> bool:
    return _LEAST_MEMORY_SHARE <= found_gib / declared_gib <= _MOST_MEMORY_SHARE


def _gpus(hardware: Hardware, environment: Environment) -> Iterator[str]:
    """Differences of the GPUs: their number, or else the differences of each kind of GPU."""
    demanded = [chip for chip in hardware.accelerators for _ in range(chip.count)]
    gpus = environment.gpus
    if len(gpus) != len(demanded):
        yield f"{len(gpus)} GPUs, not {len(demanded)}"
        return
    demanded.sort(key=lambda chip: chip.name)
    pairs = zip(sorted(gpus, key=lambda gpu: str(gpu.name)), demanded, strict=True)
    yield from dict.fromkeys(difference for gpu, chip in pairs for difference in _gpu(gpu, chip))


def _gpu(gpu: Gpu, chip: Accelerator) -> Iterator[str]:
    """Differences of a GPU: its name, and its memory, since GPUs of one name differ in memory."""
    if gpu.name is not None and not same_chip(gpu.name, chip.name):
        yield f"a {gpu.name}, not a {chip.name}"
    elif chip.memory_gib is not None and gpu.memory_bytes is not None:
        memory_gib = gpu.memory_bytes / _GIB
        if not _about(memory_gib, float(chip.memory_gib)):
            yield f"a GPU of {memory_gib:.1f} GiB, not of {plain(chip.memory_gib)}"


def same_chip(driver_name: str, spec_name: str) -> bool:
    """Whether a GPU's name by its driver means a chip of the catalogue.

    It does if the model number is a word in both names. Form factors and memory sizes are not
    compared, since they are spelled in many ways: ``NVIDIA A100-SXM4-40GB`` is an ``A100 SXM4 (40
    GB)``, and an ``NVIDIA L40S`` is no ``L4``.
    """
    numbers = [word for word in _parts(spec_name) if any(letter.isdigit() for letter in word)]
    return not numbers or numbers[0] in _parts(driver_name)


def _parts(name: str) -> list[str]:
    return re.findall(r"[a-z0-9]+", name.lower())


def _instance(hardware: Hardware, environment: Environment) -> Iterator[str]:
    rented = environment.instance
    if rented is None or hardware.provider not in _PROVIDERS:
        return
    if hardware.provider != rented.provider:
        yield f"the instance type {rented.type} of {rented.provider}, not {hardware.provider}"
    elif not hardware.id.startswith(_MADE_UP) and not _of_type(hardware.id, rented.type):
        yield f"the instance type {rented.type}, not {hardware.id}"


def _of_type(identifier: str, instance_type: str) -> bool:
    """Whether a machine's id is that of a cloud's instance type.

    Such an id is the instance type in lower case. For Azure it lacks ``Standard_``; for GCE the
    GPUs are appended.
    """
    spelled = instance_type.lower().replace("_", "-").removeprefix("standard-")
    return identifier == spelled or identifier.startswith(f"{spelled}-")
