"""Decide whether a machine's times can be predicted: find its devices, or say why not."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal

from epochcost.analysis.rates import cpu_of
from epochcost.plan.variant import CUDA_12_RUNTIME, declared_obstacle
from epochcost.predict.design import Devices
from epochcost.predict.forecast import Forecaster
from epochcost.specs.hardware import Device, Hardware
from epochcost.specs.target import PINNED_RUNTIME


@dataclass(frozen=True, slots=True)
class Place:
    """A machine with ``count`` devices of one kind.

    ``software`` is the version of ONNX Runtime to use on the device, empty if none supports it. If
    epochcost pins a newer version, ``doubt`` says why the pinned version is unsuitable.
    """

    hardware: Hardware
    device: Device
    count: int
    memory_gib: Decimal
    software: str
    doubt: str = ""


def place_of(hardware: Hardware, forecaster: Forecaster) -> Place | str:
    """The devices of a machine, or the reason why nothing is predicted for the machine.

    ``forecaster`` learns from published rates of GPUs or of CPUs, depending on the machine.
    """
    if hardware.accelerators:
        return _accelerated(hardware, forecaster.devices)
    device = cpu_of(hardware)
    if isinstance(device, str):
        return device
    if not forecaster.published:
        return "too few CPUs with published times"
    if hardware.memory_gib is None:
        return "its memory is not known"
    return Place(hardware, device, 1, hardware.memory_gib, runtime_name(PINNED_RUNTIME))


def _accelerated(hardware: Hardware, devices: Devices) -> Place | str:
    if len(hardware.accelerators) > 1:
        return "accelerators of several kinds"
    (accelerator,) = hardware.accelerators
    device = devices.named(accelerator.name)
    if device is None:
        return f"no published time of a {accelerator.name}"
    runtimes = (PINNED_RUNTIME, CUDA_12_RUNTIME)
    runtime = next((name for name in runtimes if not declared_obstacle(name, hardware)), "")
    software = runtime_name(runtime) if runtime else ""
    doubt = f"{PINNED_RUNTIME} has no kernels for compute capability {hardware.compute_capability}"
    older = "" if runtime in {"", PINNED_RUNTIME} else doubt
    memory_gib = accelerator.memory_gib or device.memory_gib
    return Place(hardware, device, accelerator.count, memory_gib, software, older)


def runtime_name(software: str) -> str:
    """Name the runtime ``software`` for readers, for example "ONNX Runtime 1.23"."""
    release = software.partition("==")[2].rpartition(".")[0]
    return f"ONNX Runtime {release}"
