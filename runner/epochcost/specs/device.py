"""Accelerators as their makers describe them, each with all names that sources use.

``hardware`` has the accelerators of each machine, ``observation`` times that others measured.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from epochcost.specs.base import (
    DISTINCT,
    FROM_LIST,
    NamedSpec,
    Notes,
    Positive,
    Source,
    Text,
    Unconfirmed,
)


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
    peak_fp32_tflops: Positive = Field(
        description="Peak in fp32 without loss of precision, in TFLOP/s.", examples=[19.49]
    )
    peak_tf32_tflops: Positive | None = Field(
        None, description="Peak of dense products in TF32, in TFLOP/s.", examples=[156]
    )
    peak_fp16_tflops: Positive | None = Field(
        None,
        description="Peak of dense products in fp16 summed in fp32, in TFLOP/s.",
        examples=[311.9],
    )
    peak_int8_tops: Positive | None = Field(
        None, description="Peak of dense products in int8, in TOP/s.", examples=[624]
    )
    power_watts: Positive | None = Field(None, description="Power limit, in watts.", examples=[400])
    source: Source
    notes: Notes | None = None
    unconfirmed: Unconfirmed = ()

    @property
    def names(self) -> tuple[str, ...]:
        """Every name that means it, in lower case."""
        return tuple(
            dict.fromkeys(name.casefold() for name in (self.id, self.name, *self.spellings))
        )
