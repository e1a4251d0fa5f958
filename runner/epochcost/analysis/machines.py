"""Identify the machine of a measured, published or predicted time, and name it for readers."""

from __future__ import annotations

import re
from dataclasses import dataclass

from epochcost.results.environment import Environment
from epochcost.specs.hardware import Hardware
from epochcost.specs.study import AT_HAND

_MARKS = re.compile(r"\((?:R|TM)\)|\bCPU\b|@ .*$|\bProcessor\b|\b\d+-Core\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Machine:
    """A machine by its kind (the id of its spec), its host and the device that a workload used.

    ``host`` distinguishes measured hosts of one kind; None for published figures. ``gpu`` is the
    name of the GPU that was measured, if any.
    """

    hardware: str
    host: str | None
    name: str
    device: str
    vcpus: int | None
    gpu: str | None = None


def hardware_option(hardware: str) -> str:
    """The text that selects a machine in a command `epochcost run`; empty for `local`."""
    return "" if hardware == AT_HAND else f" --hardware {hardware}"


def published_machine(hardware: Hardware) -> Machine:
    """The machine of a published or predicted time, as its spec describes it, without a host."""
    return Machine(hardware.id, None, hardware.name, hardware.device, hardware.vcpus)


def measured_machine(
    hardware: Hardware, environment: Environment, device: str, *, only_host: bool, gpu: int = 0
) -> Machine:
    """The machine of a measurement, with a name for readers.

    If the spec leaves CPU and GPUs to detection at run time, the name states the chip and vCPUs. It
    states the host unless ``only_host``: then no other host of the spec was measured.
    """
    chip = gpu_name(environment, gpu) if device == "cuda" else None
    name = hardware.name
    if hardware.detected:
        name = f"{name}: {chip or cpu_name(environment)}, {environment.logical_cpus} vCPUs"
    if not only_host:
        name = f"{name} (host {environment.fingerprint[:4]})"
    if device != hardware.device and not hardware.detected:
        name = f"{name}, on its {device.upper()}"
    vcpus = environment.logical_cpus if hardware.detected else hardware.vcpus
    return Machine(hardware.id, environment.fingerprint, name, device, vcpus, chip)


def cpu_name(environment: Environment) -> str:
    """The CPU's name without trade marks and clock, or "unknown CPU"."""
    if environment.cpu is None:
        return "unknown CPU"
    return " ".join(_MARKS.sub(" ", environment.cpu).split())


def gpu_name(environment: Environment, number: int) -> str:
    """The name of the host's GPU with this number, or "unknown GPU"."""
    name = environment.gpus[number].name if number < len(environment.gpus) else None
    return name or "unknown GPU"
