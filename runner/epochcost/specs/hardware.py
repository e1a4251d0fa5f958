"""Machines: their CPUs, memory and accelerators; and accelerators as their makers describe them.

``price`` has the costs of machines, ``published`` times that others measured.
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

# A text as NVIDIA writes it, since 10.0 is later than 9.0 and not the same as 10.
Capability = Annotated[
    str, matching(r"[1-9][0-9]?\.[0-9]", 'NVIDIA\'s major.minor in quotes, such as "8.6"')
]


class Accelerator(Spec):
    """GPUs of one kind in a machine; memory, peaks and power are of one device."""

    name: Text = Field(description="Make and form of the device.", examples=["V100 SXM2 (16 GB)"])
    count: PositiveInt = Field(1, description="Devices in the machine.", examples=[8])
    compute_capability: Capability | None = Field(
        None,
        description=(
            "NVIDIA's compute capability, by which packages of ONNX Runtime have kernels for the "
            "device or not."
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
            "Peak of one device in dense fp16 or bf16, on tensor cores where there "
            "are any, in TFLOP/s."
        ),
        examples=[125],
    )
    power_watts: Positive | None = Field(
        None, description="Power limit of one device, in watts.", examples=[300]
    )


class Hardware(NamedSpec):
    """A kind of machine: its parts and their power."""

    name: Text = Field(description="What people call the machine.", examples=["AWS g6.xlarge (L4)"])
    provider: Text = Field(description="Who rents it out, or where it is.", examples=["AWS EC2"])
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
        (), description="Its GPUs, a table for each kind."
    )
    detected: bool = Field(
        False,
        description=(
            "Whether it is read where the measuring happens: true for the machine at hand."
        ),
    )
    source: Source
    notes: Notes | None = None
    unconfirmed: Unconfirmed = ()

    @property
    def device(self) -> str:
        """``cuda`` if the machine has an accelerator, else ``cpu``."""
        return "cuda" if self.accelerators else "cpu"


class Device(NamedSpec):
    """Form of an accelerator: peaks, memory and power of one device."""

    name: Text = Field(description="What people call it.", examples=["A100 SXM4 (40 GB)"])
    chip: Text = Field(
        description="The chip, the same for all forms: PCIe, SXM and the like.", examples=["A100"]
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
        None, description="Peak in fp32 without loss of precision, in TFLOP/s.", examples=[19.49]
    )
    peak_tf32_tflops: Positive | None = Field(
        None, description="Peak of dense products in TF32, in TFLOP/s.", examples=[156]
    )
    peak_fp16_tflops: Positive | None = Field(
        None,
        description="Peak of dense products in fp16 or bf16 summed in fp32, in TFLOP/s.",
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
        """Every name that means it, in lower case."""
        return tuple(
            dict.fromkeys(name.casefold() for name in (self.id, self.name, *self.spellings))
        )
