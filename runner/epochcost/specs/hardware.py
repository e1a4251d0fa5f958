"""Machines: what they are made of. What they cost stands in prices."""

from __future__ import annotations

from typing import Annotated

from epochcost.specs.base import (
    FROM_LIST,
    NamedSpec,
    NonNegative,
    Positive,
    PositiveInt,
    Source,
    Spec,
    Text,
    Unconfirmed,
)


class Accelerator(Spec):
    """GPUs of one kind in a machine; memory, peaks and power are of one device.

    ``peak_fp16_tflops`` is of dense fp16 or bf16 products, on tensor cores where there are any.
    """

    name: Text
    count: PositiveInt = 1
    memory_gib: Positive | None = None
    memory_gb_per_second: Positive | None = None
    peak_fp32_tflops: Positive | None = None
    peak_fp16_tflops: Positive | None = None
    power_watts: Positive | None = None


class Hardware(NamedSpec):
    """One kind of machine; ``detected`` ones are read when measuring, where they stand.

    ``cores`` are physical; ``peak_fp32_tflops`` is of the CPU. ``idle_watts``
    and ``busy_watts`` are of the whole machine without its accelerators.
    """

    name: Text
    provider: Text
    vcpus: PositiveInt | None = None
    memory_gib: Positive | None = None
    cpu: Text | None = None
    cores: PositiveInt | None = None
    peak_fp32_tflops: Positive | None = None
    idle_watts: NonNegative | None = None
    busy_watts: Positive | None = None
    accelerators: Annotated[tuple[Accelerator, ...], FROM_LIST] = ()
    detected: bool = False
    source: Source
    notes: Text | None = None
    unconfirmed: Unconfirmed = ()

    @property
    def device(self) -> str:
        """``cuda`` where the machine has an accelerator, else ``cpu``."""
        return "cuda" if self.accelerators else "cpu"
