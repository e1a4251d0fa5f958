"""Records of a measurement: raw samples, why it stopped, what happened meanwhile. Frozen.

Statistics are derived from the samples by readers and never stored. The machine is described in
``environment``, what LoadGen leaves in ``served``.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Annotated, Literal

from pydantic import Field, ValidationInfo, field_validator, model_validator

from epochcost.plan.trial import Trial
from epochcost.results.conditions import Conditions, Energy
from epochcost.results.environment import Environment, Software
from epochcost.results.fields import (
    Count,
    FiniteLoss,
    FiniteSeconds,
    Former,
    HexDigits,
    Name,
    NonNegative,
    NonNegativeInt,
    ProcessBytes,
    Record,
    Share,
    Timestamp,
)
from epochcost.results.served import ServingRecord
from epochcost.specs.study import Provider

# "loadgen": LoadGen decides when a scenario ends. "rounds": each round was precise enough, all
# together are not (yet).
StopReason = Literal["precise", "budget", "loadgen", "rounds"]
# What ONNX Runtime calls the providers.
EXECUTION_PROVIDERS: Mapping[Provider, str] = MappingProxyType(
    {"cpu": "CPUExecutionProvider", "cuda": "CUDAExecutionProvider"}
)
_FEWEST_SAMPLES = 2
Emulated = Literal["a smaller instance of the same family"]


class Placement(Record):
    """Proof of where the graph ran: nodes executed per execution provider, by operator type."""

    provider: str
    nodes_by_provider: dict[Name, dict[Name, Count]]


class Pinning(Record):
    """The logical CPUs, by the kernel's numbers, that all threads of the worker ran on.

    ``siblings`` are other hardware threads of the same cores, which the worker left alone;
    ``cores`` and ``numa_nodes`` say how many the CPUs spread over. What the kernel does not tell is
    None, or empty. ``threads`` is how many threads ONNX Runtime computed with. Memory, caches and
    clock stay those of the whole machine.
    """

    emulates: Emulated = "a smaller instance of the same family"
    cpus: Annotated[tuple[NonNegativeInt, ...], Field(min_length=1)]
    siblings: tuple[NonNegativeInt, ...] = ()
    cores: Count | None = None
    numa_nodes: Count | None = None
    threads: Count

    @property
    def affected_cpus(self) -> frozenset[int]:
        """The CPUs on which other programs slow the trial: its own and their siblings."""
        return frozenset((*self.cpus, *self.siblings))


class OutputDifference(Record):
    """How far one output of a trial is from the same one in fp32.

    ``maximum_absolute``: the largest difference of an element; ``relative_to_norm``: the Euclidean
    norm of all differences over that of the output in fp32, None where that is zero.
    ``largest_changed``: of the rows of the last axis, the share whose largest element is another
    one; None where a row has but one element.
    """

    output: str
    maximum_absolute: NonNegative
    relative_to_norm: NonNegative | None
    largest_changed: Share | None = None


class Agreement(Record):
    """A batch computed in the trial's precision and in fp32, from the same parameters and inputs.

    ``examples`` is the size of that batch, the first of the trial's. It is about arithmetic:
    parameters drawn at random have no accuracy that could be lost.
    """

    examples: Count
    outputs: Annotated[tuple[OutputDifference, ...], Field(min_length=1)]
    quantization: Former = None

    @property
    def words(self) -> str:
        """The output that is farthest off, in a line for people."""
        worst = max(self.outputs, key=lambda output: output.relative_to_norm or 0.0)
        changed = worst.largest_changed
        off = 100 * (worst.relative_to_norm or 0.0)
        parts = (
            f"{worst.output} {off:.2g} % off fp32 on {self.examples} examples",
            "" if changed is None else f"another largest in {100 * changed:.3g} % of rows",
        )
        return ", ".join(part for part in parts if part)


class Round(Record):
    """A turn of a trial that takes several, each in a new process.

    Its times are the next ``warmup_steps`` and ``samples`` of its measurement's; everything else
    is as in a measurement, of this round alone.
    """

    started_at: Timestamp
    wall_seconds: FiniteSeconds
    warmup_steps: NonNegativeInt
    samples: Count
    stop_reason: StopReason
    steps_taken: Count
    held_out_loss_before: FiniteLoss | None = None
    held_out_loss_after: FiniteLoss | None = None
    peak_memory_bytes: ProcessBytes | None = None
    conditions: Conditions | None = None
    energy: Energy | None = None


class Measurement(Record):
    """Raw times of one trial in order, warm-up apart.

    ``software`` is what the worker reports; a result keeps it in its environment.
    At least two samples, for one has no spread to bound its mean by; none where LoadGen measured
    (``served``), whose times are latencies. For training,
    ``held_out_loss_before`` and ``_after`` frame the steps taken. ``peak_memory_bytes`` is the
    worker's own. ``conditions`` and ``energy`` are of the sampling phase alone, and None where
    nothing watched it. ``agreement`` is with fp32, for trials in another precision. ``rounds``:
    none where one process took all samples; else the times and sums here are of all rounds, the
    losses and the placement of the last. ``pinning`` is None where the worker might run on every
    CPU.
    """

    started_at: Timestamp
    wall_seconds: FiniteSeconds
    warmup_seconds: tuple[FiniteSeconds, ...]
    served: ServingRecord | None = None
    samples_seconds: tuple[FiniteSeconds, ...]
    stop_reason: StopReason
    placement: Placement
    pinning: Pinning | None = None
    steps_taken: Count
    held_out_loss_before: FiniteLoss | None = None
    held_out_loss_after: FiniteLoss | None = None
    peak_memory_bytes: ProcessBytes | None = None
    conditions: Conditions | None = None
    energy: Energy | None = None
    pace: Former = None
    agreement: Agreement | None = None
    epochs: Former = None
    rounds: tuple[Round, ...] = ()
    software: Software | None = None

    @property
    def samples_by_round(self) -> tuple[int, ...]:
        """How many of the samples, in order, each round took."""
        return tuple(turn.samples for turn in self.rounds) or (len(self.samples_seconds),)

    @model_validator(mode="after")
    def _rounds_add_up(self) -> Measurement:
        """No sample without a round, none counted twice."""
        samples, warmup = sum(self.samples_by_round), sum(turn.warmup_steps for turn in self.rounds)
        if samples != len(self.samples_seconds):
            demanded = len(self.samples_seconds)
            raise ValueError(f"rounds should have {demanded} samples in all, not {samples}")
        if self.rounds and warmup != len(self.warmup_seconds):
            demanded = len(self.warmup_seconds)
            raise ValueError(f"rounds should have {demanded} steps of warm-up in all, not {warmup}")
        return self

    @field_validator("samples_seconds")
    @classmethod
    def _samples_or_served(
        cls, samples: tuple[float, ...], info: ValidationInfo
    ) -> tuple[float, ...]:
        fewest = 0 if info.data.get("served") else _FEWEST_SAMPLES
        if len(samples) < fewest:
            raise ValueError(f"should have at least {fewest} samples, not {len(samples)}")
        return samples


class Result(Record):
    """A trial measured on a machine; ``trial_id`` and ``hardware`` name both.

    ``contradictions`` are what the machine has that ``hardware`` has not, measured all the same
    because the user asked for it. ``spec_files`` are the SHA-256 of the TOML files of model and
    machine as they stood, by ``kind/id``; the trial holds that of the ONNX file.
    """

    format_version: Count
    trial_id: HexDigits
    trial: Trial
    hardware: str
    measurement: Measurement
    environment: Environment
    contradictions: tuple[str, ...] = ()
    spec_files: dict[str, str] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _ran_where_asked(self) -> Result:
        """A figure of one provider can be neither stored nor read under the name of another."""
        demanded = EXECUTION_PROVIDERS[self.trial.provider]
        ran = self.measurement.placement.provider
        if demanded != ran:
            raise ValueError(f"a trial on {demanded} should have run there, not on {ran}")
        return self

    @model_validator(mode="after")
    def _ran_under_the_runtime_asked(self) -> Result:
        """No figure of one runtime is stored or read under the name of another."""
        if self.trial.runtime != self.environment.runtime:
            demanded, ran = self.trial.runtime, self.environment.runtime
            raise ValueError(f"a trial of {demanded} should have run under it, not under {ran}")
        return self

    @model_validator(mode="after")
    def _loaded_as_asked(self) -> Result:
        """Latencies under load are never read as times of full batches, nor the reverse."""
        if (self.trial.work.scenario == "batch") != (self.measurement.served is None):
            trial = f"a trial of the scenario {self.trial.work.scenario}"
            raise ValueError(f"{trial} should have runs of LoadGen if and only if it asks for them")
        return self
