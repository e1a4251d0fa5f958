"""Records of a measurement: raw samples, the reason why sampling ended, and conditions.

Readers compute statistics from the samples; none are stored. Stored files are never edited.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, Literal

from pydantic import Field, ValidationError, model_validator

from epochcost.errors import Fault, ResultError
from epochcost.plan.trial import Trial
from epochcost.results.environment import Conditions, Energy, Environment, Software
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
    first_error,
    read_record,
)
from epochcost.results.served import ServingRecord
from epochcost.specs.requests import Requests
from epochcost.specs.study import Provider
from epochcost.units import rounded

# History of FORMAT_VERSION:
# 1  first form: trial, measurement with raw samples in seconds, environment.
# 2  Added to the environment: the cloud's `instance`, instead of `instance_type`, which was always
#    null; parts of the processor, GPU settings, container, limits, revision. `virtualisation` names
#    the hypervisor even in a container. Added to the measurement: conditions and
#    energy of the sampling phase, runs of LoadGen, rounds, and whole epochs. Added otherwise: the
#    trial's load and the CPUs that it was pinned to, contradictions to the declared machine, and
#    hashes of spec files.
# 3  Added: the machine's pace, read between the samples.
# 4  Removed from the measurement: whole epochs, and the machine's pace. Removed from the
#    environment: the container, an instance's place, the load, and clocks, sockets and memory
#    checks of CPU and GPUs. These parts of earlier files are ignored. Removed from the trial: other
#    runtimes, and settings of graph optimisation, spinning, denormals and input copies. A trial
#    with such a setting differs from today's trials. Files of trials in int8 are no longer read.
# Whoever changes a record raises the version and adds a line above. New fields are optional and
# removed fields have the type ``Former``, so that one parser reads the files of all versions.
FORMAT_VERSION = 4
_NUMBERS_ON_LINES = re.compile(r"\[\n\s*([-+.\deE]+(?:,\n\s*[-+.\deE]+)*)\n\s*\]")
# "loadgen": LoadGen decided when the scenario ended. "rounds": each round was precise enough, but
# all rounds together are not yet.
StopReason = Literal["precise", "budget", "loadgen", "rounds"]
# ONNX Runtime's names of the providers.
EXECUTION_PROVIDERS: Mapping[Provider, str] = MappingProxyType(
    {"cpu": "CPUExecutionProvider", "cuda": "CUDAExecutionProvider"}
)
_FEWEST_SAMPLES = 2
Emulated = Literal["a smaller instance of the same family"]


class Placement(Record):
    """The numbers of nodes that each execution provider ran, by operator type.

    The trial asked for ``provider``. Trials with onnxruntime-genai also count unexecuted nodes.
    """

    provider: str
    nodes_by_provider: dict[Name, dict[Name, Count]]


class Pinning(Record):
    """The pinning of all threads of a trial's worker process to logical CPUs, by kernel number.

    Pinning emulates a smaller instance, but does not limit memory, caches and clock. ``siblings``
    are the unused hardware threads of the same cores. ``cores`` and ``numa_nodes`` count those of
    ``cpus``, None if the kernel does not state them. ``threads`` counts ONNX Runtime's threads.
    """

    emulates: Emulated = "a smaller instance of the same family"
    cpus: Annotated[tuple[NonNegativeInt, ...], Field(min_length=1)]
    siblings: tuple[NonNegativeInt, ...] = ()
    cores: Count | None = None
    numa_nodes: Count | None = None
    threads: Count

    @property
    def affected_cpus(self) -> frozenset[int]:
        """The worker's CPUs and their hardware siblings, where other programs slow the trial."""
        return frozenset((*self.cpus, *self.siblings))


class OutputDifference(Record):
    """The difference between an output in the trial's precision and the same output in fp32.

    ``relative_to_norm`` is the Euclidean norm of the difference ÷ that of the fp32 output, None if
    the latter is zero. ``largest_changed`` is the share of rows (last axis) whose largest element
    is elsewhere in fp32. It is None for outputs of one axis and for rows of one element.
    """

    output: str
    maximum_absolute: NonNegative
    relative_to_norm: NonNegative | None
    largest_changed: Share | None = None


class Agreement(Record):
    """Comparison of outputs in the trial's precision with outputs in fp32, for equal inputs.

    All ``examples`` are from the first batch. The comparison says nothing about accuracy, since the
    parameters are drawn at random.
    """

    examples: Count
    outputs: Annotated[tuple[OutputDifference, ...], Field(min_length=1)]
    quantization: Former = None

    @property
    def summary(self) -> str:
        """Name the output that differs most from fp32, and its difference, in one line."""
        worst = max(self.outputs, key=lambda output: output.relative_to_norm or 0.0)
        changed = worst.largest_changed
        off = 100 * (worst.relative_to_norm or 0.0)
        parts = (
            f"{worst.output} {rounded(off, 2)} % off fp32 on {self.examples} examples",
            "" if changed is None else f"another largest in {100 * changed:.3g} % of rows",
        )
        return ", ".join(part for part in parts if part)


class Round(Record):
    """The record of a round of a trial; each round runs in a new process.

    ``warmup_steps`` and ``samples`` say how many of the times in `Measurement` belong to this
    round. All other fields are as in `Measurement`, for this round alone.
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
    """Times of a trial's steps, in order, and other values that the worker measured.

    ``samples_seconds`` has the steps after the warm-up: at least two, or none if LoadGen measured
    latencies (``served``). Held-out losses are from before the first and after the last training
    step. ``peak_memory_bytes`` is that of the worker's process. ``conditions`` and ``energy`` cover
    only the sampling phase. ``pinning`` is None if the worker could run on every CPU. ``rounds`` is
    empty for a single process. Times and step counts cover all rounds, but losses and ``placement``
    are from the last process.
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
        """The number of samples of each round, in order."""
        return tuple(turn.samples for turn in self.rounds) or (len(self.samples_seconds),)

    @model_validator(mode="after")
    def _counts_agree(self) -> Measurement:
        count, fewest = len(self.samples_seconds), 0 if self.served else _FEWEST_SAMPLES
        if count < fewest:
            raise ValueError(f"samples_seconds should have at least {fewest} samples, not {count}")
        warmups = sum(turn.warmup_steps for turn in self.rounds)
        for noun, counted, times in (
            ("samples", sum(self.samples_by_round), self.samples_seconds),
            ("steps of warm-up", warmups, self.warmup_seconds),
        ):
            if self.rounds and counted != len(times):
                raise ValueError(f"rounds should have {len(times)} {noun} in all, not {counted}")
        return self


class Result(Record):
    """A trial's measurement on a machine, and all data that are needed to check it.

    The user accepted the ``contradictions`` to the spec of ``hardware``. ``spec_files`` maps
    ``kind/id`` of model and machine to the SHA-256 of their TOML files.
    """

    format_version: Count
    trial_id: HexDigits
    trial: Trial
    hardware: str
    measurement: Measurement
    environment: Environment
    contradictions: tuple[str, ...] = ()
    spec_files: dict[str, str] = Field(default_factory=dict)

    @property
    def peak_bytes(self) -> int | None:
        """Peak memory of the trial's worker in bytes: device memory for CUDA, else host memory."""
        measured = self.measurement
        if self.trial.provider == "cpu":
            return measured.peak_memory_bytes
        return None if measured.conditions is None else measured.conditions.device_memory_bytes

    @model_validator(mode="after")
    def _ran_as_demanded(self) -> Result:
        demanded = EXECUTION_PROVIDERS[self.trial.provider]
        ran = self.measurement.placement.provider
        if demanded != ran:
            raise ValueError(f"a trial on {demanded} should have run there, not on {ran}")
        runtime, ran = self.trial.runtime, self.environment.runtime
        if runtime != ran:
            raise ValueError(f"a trial of {runtime} should have run under it, not under {ran}")
        if (self.trial.work.scenario == "batch") != (self.measurement.served is None):
            trial = f"a trial of the scenario {self.trial.work.scenario}"
            raise ValueError(f"{trial} should have runs of LoadGen if and only if it asks for them")
        runs = self.measurement.served.runs if self.measurement.served else ()
        rated = (run for run in runs if run.purpose in {"scored", "share"})
        if isinstance(self.trial.work, Requests) and any(run.tokens is None for run in rated):
            raise ValueError("runs that serve requests should have tokens")
        return self


class DamagedResultError(ResultError):
    """A file that is not a valid result; ``fault`` says where and why the file is wrong."""

    def __init__(self, fault: Fault) -> None:
        self.fault = fault
        super().__init__(str(fault))


class NewerResultError(DamagedResultError):
    """A file that a newer version of epochcost wrote and that must not be replaced."""


def serialise_result(result: Result) -> bytes:
    """The bytes of a result's file, with a line for each key and one line for all samples."""
    text = json.dumps(result.model_dump(mode="json"), indent=1, ensure_ascii=False, allow_nan=False)
    return (_NUMBERS_ON_LINES.sub(_on_one_line, text) + "\n").encode()


def _on_one_line(numbers: re.Match[str]) -> str:
    return "[" + ", ".join(number.strip() for number in numbers[1].split(",")) + "]"


def parse_result(data: bytes, path: Path) -> Result:
    """Parse the bytes of a result file of any version so far; ``path`` is for messages only.

    Raises DamagedResultError if the bytes are not a complete and consistent result.
    """
    try:
        result = read_record(Result, data)
    except ValidationError as error:
        _refuse_newer(_stored_version(data, path), path)
        raise damaged(path, first_error(error)) from None
    _refuse_newer(result.format_version, path)
    if result.trial_id != result.trial.id:
        expected = f"expected trial_id {result.trial.id} for this trial, got {result.trial_id}"
        raise damaged(path, f"{expected}: the file was edited; measure again")
    return result.model_copy(update={"format_version": FORMAT_VERSION})


def _stored_version(data: bytes, path: Path) -> Any:
    """The file's ``format_version``, of any type; raises DamagedResultError unless it is JSON."""
    try:
        document = json.loads(data.decode())
    except UnicodeDecodeError as error:
        raise damaged(path, f"expected UTF-8 text, got another byte at {error.start}") from None
    except json.JSONDecodeError as error:
        message = f"expected a complete JSON document, got an error here: {error.msg}"
        raise DamagedResultError(Fault(path, error.lineno, error.colno, message)) from None
    except (RecursionError, ValueError) as error:
        raise damaged(path, f"expected a JSON document of a result, got {error}") from None
    return document.get("format_version") if isinstance(document, dict) else None


def _refuse_newer(version: Any, path: Path) -> None:
    if isinstance(version, int) and version > FORMAT_VERSION:
        message = (
            f"expected format_version up to {FORMAT_VERSION}, got {version}: "
            "a newer epochcost wrote this file; update epochcost to read it"
        )
        raise NewerResultError(Fault(path, 1, 1, message))


def damaged(path: Path, message: str) -> DamagedResultError:
    """A DamagedResultError for a file as a whole, with the position line 1, column 1."""
    return DamagedResultError(Fault(path, 1, 1, message))
