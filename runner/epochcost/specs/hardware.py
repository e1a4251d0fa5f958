"""Machines with their CPUs, memory and accelerators; and accelerators as separate specs.

The module ``price`` has the costs of machines; ``published`` has the times that others measured.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, model_validator

from epochcost.specs.base import (
    DISTINCT,
    FROM_LIST,
    NamedSpec,
    NonNegative,
    Notes,
    Positive,
    PositiveInt,
    Source,
    Spec,
    Text,
    Unconfirmed,
    matching,
)

# A text, since a number would make 8.10 equal to 8.1.
Capability = Annotated[
    str, matching(r"[1-9][0-9]?\.[0-9]", 'NVIDIA\'s major.minor in quotes, such as "8.6"')
]


class Accelerator(Spec):
    """Identical GPUs in a machine; memory, peak rates and power are those of a single GPU."""

    name: Text = Field(description="Make and form of the device.", examples=["V100 SXM2 (16 GB)"])
    count: PositiveInt = Field(1, description="Devices in the machine.", examples=[8])
    compute_capability: Capability | None = Field(
        None,
        description=(
            "NVIDIA's compute capability, which decides the packages of ONNX Runtime that support "
            "the device."
        ),
        examples=["8.9"],
    )
    memory_gib: Positive | None = Field(
        None, description="Memory of one device, in GiB.", examples=[16]
    )
    memory_gb_per_second: Positive | None = Field(
        None, description="Memory bandwidth of one device, in GB/s.", examples=[900]
    )
    peak_fp32_tflops: Positive | None = Field(
        None, description="Peak of one device in fp32, in TFLOP/s.", examples=[15.7]
    )
    peak_fp16_tflops: Positive | None = Field(
        None,
        description=(
            "Peak of one device in dense fp16 or bf16, on tensor cores if it has any, in TFLOP/s."
        ),
        examples=[125],
    )
    power_watts: Positive | None = Field(
        None, description="Power limit of one device, in watts.", examples=[300]
    )


class Hardware(NamedSpec):
    """A kind of machine: its CPUs, memory, accelerators and power."""

    name: Text = Field(
        description="Name of the machine for people.", examples=["AWS g6.xlarge (L4)"]
    )
    provider: Text = Field(
        description="Company that rents it out, or its place.", examples=["AWS EC2"]
    )
    vcpus: PositiveInt | None = Field(None, description="Logical CPUs.", examples=[8])
    memory_gib: Positive | None = Field(None, description="Main memory, in GiB.", examples=[61])
    cpu: Text | None = Field(
        None, description="Make of the CPU.", examples=["Intel Xeon E5-2686 v4"]
    )
    cores: PositiveInt | None = Field(None, description="Physical cores.", examples=[4])
    peak_fp32_tflops: Positive | None = Field(
        None, description="Peak of all cores together in fp32, in TFLOP/s.", examples=[0.6]
    )
    idle_watts: NonNegative | None = Field(
        None,
        description="Power of the idle machine without its accelerators, in watts.",
        examples=[60],
    )
    busy_watts: Positive | None = Field(
        None,
        description="Power of the busy machine without its accelerators, in watts.",
        examples=[150],
    )
    accelerators: Annotated[tuple[Accelerator, ...], FROM_LIST] = Field(
        (), description="GPUs, a table for each kind."
    )
    detected: bool = Field(
        False,
        description="Whether its parts are read from the machine that measures.",
    )
    source: Source
    notes: Notes | None = None
    unconfirmed: Unconfirmed = ()

    @property
    def device(self) -> str:
        """``cuda`` if the machine has an accelerator, else ``cpu``."""
        return "cuda" if self.accelerators else "cpu"


class Device(NamedSpec):
    """Peak rates, memory and power of an accelerator in one form factor, such as PCIe."""

    name: Text = Field(description="Name for people.", examples=["A100 SXM4 (40 GB)"])
    chip: Text = Field(
        description="The chip, equal for all form factors, such as PCIe and SXM.", examples=["A100"]
    )
    generation: Text = Field(
        description="The maker's architecture of the chip.", examples=["Ampere"]
    )
    spellings: Annotated[tuple[Text, ...], FROM_LIST, DISTINCT] = Field(
        (),
        description="Other names under which sources and machines list it; case does not matter.",
        examples=[["A100-SXM4-40GB"]],
    )
    memory_gib: Positive = Field(description="Memory, in GiB.", examples=[40])
    memory_gb_per_second: Positive = Field(
        description="Memory bandwidth, in GB/s.", examples=[1555]
    )
    cache_mib: Positive | None = Field(
        None, description="Last level of cache, in MiB.", examples=[40]
    )
    peak_fp32_tflops: Positive | None = Field(
        None, description="Peak in fp32 without TF32, in TFLOP/s.", examples=[19.49]
    )
    peak_tf32_tflops: Positive | None = Field(
        None, description="Peak of dense products in TF32, in TFLOP/s.", examples=[156]
    )
    peak_fp16_tflops: Positive | None = Field(
        None,
        description="Peak of dense products in fp16 or bf16 with sums in fp32, in TFLOP/s.",
        examples=[311.9],
    )
    peak_int8_tops: Positive | None = Field(
        None, description="Peak of dense products in int8, in TOP/s.", examples=[624]
    )
    power_watts: Positive | None = Field(None, description="Power limit, in watts.", examples=[400])
    source: Source
    notes: Notes | None = None
    unconfirmed: Unconfirmed = ()

    @model_validator(mode="after")
    def _has_a_peak(self) -> Device:
        if self.peak_fp32_tflops is None and self.peak_fp16_tflops is None:
            raise ValueError("should have peak_fp32_tflops or peak_fp16_tflops")
        return self

    @property
    def names(self) -> tuple[str, ...]:
        """The id, the name and the other spellings of the accelerator, in lower case."""
        return tuple(
            dict.fromkeys(name.casefold() for name in (self.id, self.name, *self.spellings))
        )
