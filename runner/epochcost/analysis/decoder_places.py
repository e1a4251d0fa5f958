"""The machines on which decoders are served or fine-tuned, and why others are left out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal

from epochcost.analysis.machines import Machine, published_machine
from epochcost.predict.decoders.chips import (
    CpuForm,
    catalogue_processors,
    cpu_form_of,
    generation_of,
)
from epochcost.predict.design import Devices
from epochcost.specs.catalogue import Catalogue
from epochcost.specs.hardware import Device, Hardware
from epochcost.units import seconds

# The reason to refuse a machine without accelerators whose processors are unknown.
UNKNOWN_PROCESSORS = "not enough known of its processors"
_GIB = 2**30
# Older devices run bf16 as fp16 (docs.vllm.ai, supported hardware).
_LEAST_BF16 = Decimal("8.0")


@dataclass(frozen=True, slots=True)
class Place:
    """A machine with ``count`` devices of one kind; all its CPUs together count as one device.

    ``memory_bytes`` is the memory of one device, ``capability`` its CUDA compute capability.
    """

    machine: Machine
    device: Device | CpuForm
    count: int
    memory_bytes: float
    capability: Decimal | None


@dataclass(frozen=True, slots=True)
class Refusal:
    """A machine that is left out, with the reason and the machine's own figures (``detail``)."""

    machine: str
    reason: str
    detail: str = ""

    @classmethod
    def too_slow(cls, machine: str, times: Iterable[tuple[float, float]]) -> Refusal:
        """Refuse a machine by its ``times``: seconds to the first and for each further token."""
        first, token = (seconds(min(each)) for each in zip(*times, strict=True))
        best = f"first token {first}, each further {token}"
        return cls(machine, "too slow for the bounds", best)


def powers_of_two(most: int) -> list[int]:
    """1, 2, 4, ... up to ``most``."""
    return [2**power for power in range(max(most, 0).bit_length())]


def computed_in(precision: str, capability: Decimal | None) -> str:
    """The precision of most arithmetic: ``precision``, but fp16 for bf16 on GPUs before Ampere."""
    old = capability is not None and capability < _LEAST_BF16
    return "fp16" if old and precision == "bf16" else precision


def decoder_places(catalogue: Catalogue) -> tuple[list[Place], list[Refusal]]:
    """Machines with devices known well enough to predict times, and refusals of other machines.

    A machine whose parts are detected at run time is never refused, but may be in neither list.
    """
    devices, processors = Devices(catalogue.devices.values()), catalogue_processors(catalogue)
    places, refusals = [], []
    for hardware in catalogue.hardware.values():
        place = _place(hardware, devices, processors)
        if isinstance(place, Place):
            places.append(place)
        elif not hardware.detected:
            refusals.append(Refusal(hardware.name, place))
    return places, refusals


def _place(hardware: Hardware, devices: Devices, processors: Mapping[str, CpuForm]) -> Place | str:
    machine = published_machine(hardware)
    if hardware.accelerators:
        accelerator = hardware.accelerators[0]
        device = devices.named(accelerator.name)
        if device is None or len(hardware.accelerators) > 1:
            return "not enough known of its accelerators"
        if accelerator.memory_gib is not None:
            device = device.model_copy(update={"memory_gib": accelerator.memory_gib})
        stated, memory_bytes = accelerator.compute_capability, float(device.memory_gib) * _GIB
        capability = None if stated is None else Decimal(stated)
        return Place(machine, device, accelerator.count, memory_bytes, capability)
    processor = cpu_form_of(hardware, processors)
    described = processor and (processor.instructions or generation_of(processor.chip).name)
    if processor is None or not described or hardware.memory_gib is None:
        return UNKNOWN_PROCESSORS
    return Place(machine, processor, 1, float(hardware.memory_gib) * _GIB, None)
