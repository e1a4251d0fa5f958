"""Specs of machines (CPUs, memory and accelerators), and separate specs of accelerators."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from decimal import Decimal
from typing import Annotated

from pydantic import Field, model_validator

from epochcost.specs.base import (
    DISTINCT,
    Array,
    Positive,
    PositiveInt,
    SourcedSpec,
    Spec,
    Text,
    key,
    matching,
    optional,
)
from epochcost.specs.findings import Finding
from epochcost.specs.wording import KeyPath, describe, suggestion
from epochcost.units import plain

# A text, since 8.10 and 8.1 would be the same number.
Capability = Annotated[
    str, matching(r"[1-9][0-9]?\.[0-9]", 'NVIDIA\'s major.minor in quotes, such as "8.6"')
]


# NVIDIA's list of compute capabilities, by chip and, for all other chips, by architecture.
_LISTED = """
    GK104=3.0 P100=6.0 A100=8.0 A800=8.0 A30=8.0 B200=10.0 B300=10.3 GB10=12.1
    Kepler=3.7 Maxwell=5.2 Pascal=6.1 Volta=7.0 Turing=7.5 Ampere=8.6 Ada=8.9 Hopper=9.0
    Blackwell=12.0
    """
_CAPABILITIES = dict(pair.split("=") for pair in _LISTED.split())
# Largest deviation of an accelerator's number from its device: drivers state up to 8 % less memory.
_MOST_DEVIATION = Decimal("0.1")
# Sorted by a number, each device has at most this many times the number of the device before it.
# Largest so far: 3 (the cache of GRID K520 and of Tesla K80).
_LARGEST_GAP, _FEWEST_USUAL = 4, 10
# NVIDIA's modules of a GPU and an Arm CPU.
_WITH_ARM = re.compile(r"\b(GH200|GB10|GB200|GB300|DGX Spark)\b", re.IGNORECASE)


class Accelerator(Spec):
    """Identical GPUs in a machine, with memory, peak rates and power of a single GPU."""

    name: Text = key("Model and form factor of the device.", "V100 SXM2 (16 GB)")
    count: PositiveInt = key("Number of these devices in the machine.", 8, default=1)
    compute_capability: Capability | None = optional(
        "NVIDIA's compute capability, on which packages of ONNX Runtime depend.", "8.9"
    )
    memory_gib: Positive | None = optional("Memory, in GiB.", 16)
    memory_gb_per_second: Positive | None = optional("Memory bandwidth, in GB/s.", 900)
    peak_fp32_tflops: Positive | None = optional("Peak fp32 rate, in TFLOP/s.", 15.7)
    peak_fp16_tflops: Positive | None = optional(
        "Dense fp16 or bf16 peak rate, in TFLOP/s; with tensor cores if it has them.", 125
    )
    power_watts: Positive | None = optional("Power limit, in watts.", 300)


class Hardware(SourcedSpec):
    """A kind of machine: its CPUs, memory, accelerators and power."""

    name: Text = key("Name of the machine for people.", "AWS g6.xlarge (L4)")
    provider: Text = key("Company that rents out the machine, or the machine's place.", "AWS EC2")
    vcpus: PositiveInt | None = optional("Number of logical CPUs.", 8)
    # No machine has more than 49,152 GiB: a larger number is in MiB.
    memory_gib: Annotated[Positive, Field(le=60_000)] | None = optional("Main memory, in GiB.", 61)
    cpu: Text | None = optional("Model of the CPU.", "Intel Xeon E5-2686 v4")
    cores: PositiveInt | None = optional("Number of physical cores.", 4)
    peak_fp32_tflops: Positive | None = optional("Peak fp32 rate of all cores, in TFLOP/s.", 0.6)
    busy_watts: Positive | None = optional("Power while busy, without accelerators, in watts.", 150)
    accelerators: Array[Accelerator] = key("GPUs, with a table for each kind of GPU.", default=())
    detected: bool = key("Whether CPU, memory and GPUs are detected at run time.", default=False)

    @model_validator(mode="after")
    def _cores_among_vcpus(self) -> Hardware:
        if self.cores is not None and self.vcpus is not None and self.cores > self.vcpus:
            raise ValueError(f"should have cores of at most the vcpus, {self.vcpus}")
        return self

    def completed(self, devices: Mapping[str, Device]) -> Hardware:
        """Copy the spec; look up missing compute capabilities by the GPUs' names in ``devices``."""
        chips = []
        for chip in self.accelerators:
            device = devices.get(chip.name.casefold())
            known = chip.compute_capability or (device and device.compute_capability)
            chips.append(chip.model_copy(update={"compute_capability": known}))
        return self.model_copy(update={"accelerators": tuple(chips)})

    @property
    def device(self) -> str:
        """``cuda`` if the machine has an accelerator, else ``cpu``."""
        return "cuda" if self.accelerators else "cpu"

    @property
    def is_module_with_arm(self) -> bool:
        """Whether the machine's GPU is sold in a module with an Arm CPU."""
        return any(_WITH_ARM.search(chip.name) for chip in self.accelerators)

    @property
    def compute_capability(self) -> str | None:
        """The compute capability of all GPUs; None if unknown or not equal for all."""
        declared = {chip.compute_capability for chip in self.accelerators}
        return declared.pop() if len(declared) == 1 else None


class Device(SourcedSpec):
    """Peak rates, memory and power of an accelerator in a form factor, such as PCIe."""

    name: Text = key("Name for people.", "A100 SXM4 (40 GB)")
    chip: Text = key("The chip, the same for all form factors (PCIe, SXM).", "A100")
    generation: Text = key("The maker's architecture of the chip.", "Ampere")
    spellings: Annotated[Array[Text], DISTINCT] = key(
        "Other names in sources and machines; case does not matter.", ["A100-SXM4-40GB"], default=()
    )
    memory_gib: Positive = key("Memory without the default share of error correction, in GiB.", 40)
    memory_gb_per_second: Positive = key("Memory bandwidth, in GB/s.", 1555)
    cache_mib: Positive | None = optional("Last level of cache, in MiB.", 40)
    peak_fp32_tflops: Positive | None = optional("Peak fp32 rate without TF32, in TFLOP/s.", 19.49)
    peak_tf32_tflops: Positive | None = optional("Peak rate of TF32 products, in TFLOP/s.", 156)
    peak_fp16_tflops: Positive | None = optional(
        "Peak rate of dense products in fp16 or bf16 with sums in fp32, in TFLOP/s.", 311.9
    )
    peak_int8_tops: Positive | None = optional("Peak rate of dense int8 products, in TOP/s.", 624)
    power_watts: Positive | None = optional("Power limit, in watts.", 400)

    @model_validator(mode="after")
    def _has_a_peak(self) -> Device:
        if self.peak_fp32_tflops is None and self.peak_fp16_tflops is None:
            raise ValueError("should have peak_fp32_tflops or peak_fp16_tflops")
        return self

    @property
    def compute_capability(self) -> str | None:
        """NVIDIA's compute capability of the chip; None for other makers and new architectures."""
        return _CAPABILITIES.get(self.chip, _CAPABILITIES.get(self.generation))

    @property
    def names(self) -> Mapping[str, KeyPath]:
        """Id, name and spellings in lower case, with key paths, such as ``("spellings", 0)``."""
        spelled = {text: ("spellings", at) for at, text in enumerate(self.spellings)}
        keys: dict[str, KeyPath] = {**spelled, self.name: ("name",), self.id: ("id",)}
        return {name.casefold(): key for name, key in reversed(keys.items())}


def device_doubts(devices: Iterable[Device]) -> Iterator[tuple[Device, Finding]]:
    """Yield each number that is far from those of other devices, probably in another unit."""
    every = tuple(devices)
    for fact in Device.model_fields:
        numbers = ((getattr(device, fact), device) for device in every)
        stated = [pair for pair in numbers if isinstance(pair[0], Decimal)]
        stated.sort(key=lambda pair: pair[0])
        for at in range(1, len(stated)):
            if stated[at][0] <= stated[at - 1][0] * _LARGEST_GAP:
                continue
            few, usual = sorted((stated[:at], stated[at:]), key=len)
            if len(usual) >= _FEWEST_USUAL and len(few) * _FEWEST_USUAL <= len(usual):
                span = f"other devices have {plain(usual[0][0])} to {plain(usual[-1][0])}"
                for value, device in few:
                    yield device, Finding((fact,), f"{plain(value)}, but {span}: compare the units")


def accelerator_doubts(
    machine: Hardware, devices: Mapping[str, Device], *, timed: bool
) -> Iterator[Finding]:
    """Yield a finding for each name that no device has, and each value far from the device's.

    ``devices`` has each device under all of its names, in lower case. The times of a machine with
    an unknown device cannot be predicted, which is no doubt if a source states a time (``timed``).
    """
    for place, chip in enumerate(machine.accelerators):
        name = chip.name.casefold()
        device = devices.get(name)
        if device is None:
            shorter = devices.get(name.rpartition(" ")[0])
            names = {each.name for each in devices.values()}
            near = suggestion(shorter.name if shorter else chip.name, names)
            if near or (devices and not timed):
                advice = near or ", so no time of this machine is predicted"
                message = f"{describe(chip.name)} is the name of no device in devices/{advice}"
                yield Finding(("accelerators", place, "name"), message)
            continue
        for fact in Accelerator.model_fields:
            stated, usual = getattr(chip, fact), getattr(device, fact, None)
            if not (isinstance(stated, Decimal) and usual):
                continue
            if abs(stated / usual - 1) > _MOST_DEVIATION:
                message = f"{stated} contradicts the {usual} of {device.name} in devices/"
                yield Finding(("accelerators", place, fact), message)
