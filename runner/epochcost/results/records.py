"""What a measurement leaves behind: raw samples, why it stopped, and where it ran. Frozen.

Statistics are derived from the samples by readers and never stored.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Annotated, Literal

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, model_validator

from epochcost.plan.trial import Trial
from epochcost.specs.study import Provider

StopReason = Literal["precise", "budget"]
# What ONNX Runtime calls the providers.
EXECUTION_PROVIDERS: Mapping[Provider, str] = MappingProxyType(
    {"cpu": "CPUExecutionProvider", "cuda": "CUDAExecutionProvider"}
)
FiniteSeconds = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Count = Annotated[int, Field(gt=0)]
FiniteLoss = Annotated[float, Field(allow_inf_nan=False)]


class Record(BaseModel):
    """A frozen table of a result file; unknown keys are refused."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Gpu(Record):
    """An accelerator as its driver describes it."""

    name: str
    memory_bytes: Count
    driver: str


class Environment(Record):
    """The machine and its software; unknown values are None, never zero.

    ``fingerprint`` is a hash of what makes two hosts alike (CPU, cores, memory, GPUs): figures of
    different fingerprints are never pooled.
    """

    fingerprint: str
    cpu: str | None
    physical_cores: Count | None
    logical_cpus: Count
    memory_bytes: Count | None
    gpus: tuple[Gpu, ...] = ()
    operating_system: str
    python: str
    runtime: str
    packages: dict[str, str] = {}
    virtualisation: str | None = None
    instance_type: str | None = None
    load_average_1min: Annotated[float, Field(ge=0, allow_inf_nan=False)] | None = None


class Placement(Record):
    """Proof of where the graph ran: nodes executed per execution provider, by operator type."""

    provider: str
    nodes_by_provider: dict[str, dict[str, int]]


class Measurement(Record):
    """Raw times of one trial in order, warm-up apart.

    At least two samples, for one has no spread to bound its mean by. For training,
    ``held_out_loss_before`` and ``_after`` frame the steps taken.
    """

    started_at: AwareDatetime
    wall_seconds: FiniteSeconds
    warmup_seconds: tuple[FiniteSeconds, ...]
    samples_seconds: Annotated[tuple[FiniteSeconds, ...], Field(min_length=2)]
    stop_reason: StopReason
    placement: Placement
    steps_taken: Count
    held_out_loss_before: FiniteLoss | None = None
    held_out_loss_after: FiniteLoss | None = None
    peak_memory_bytes: Count | None = None


class Result(Record):
    """One trial measured on one machine; ``trial_id`` and ``hardware`` name what and where."""

    format_version: int
    trial_id: str
    trial: Trial
    hardware: str
    measurement: Measurement
    environment: Environment

    @model_validator(mode="after")
    def _ran_where_asked(self) -> Result:
        """A figure of one provider can be neither stored nor read under the name of another."""
        asked, ran = EXECUTION_PROVIDERS[self.trial.provider], self.measurement.placement.provider
        if asked != ran:
            raise ValueError(f"a trial on {asked} should have run there, not on {ran}")
        return self
