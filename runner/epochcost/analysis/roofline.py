"""Compare the operations a second of a workload with the peak rates of its machine.

Peak rates (roofs; Williams, Waterman and Patterson 2009, "Roofline") are the maker's, or those of
the fastest matrix product and memory copy on the host.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from operator import attrgetter

from epochcost.analysis.arithmetic import (
    BYTES_PER_NUMBER,
    arithmetic_of_model,
    is_whole_pass,
    optimizer_states,
)
from epochcost.analysis.inputs import Inputs
from epochcost.analysis.machines import Machine, gpu_name
from epochcost.analysis.observations import Observation
from epochcost.analysis.phases import PhaseTime, TimedDecoder
from epochcost.cost.flops import peak_flops
from epochcost.graphs.profile import PASSES_PER_STEP, Arithmetic
from epochcost.graphs.weight_bits import BYTES_PER_WEIGHT
from epochcost.results.ceilings import Ceiling, Ceilings
from epochcost.specs.hardware import Hardware
from epochcost.specs.model import Model
from epochcost.specs.study import Precision
from epochcost.statistics import first_by

_HALF_BYTES = 2
_WEIGHT_BYTES: dict[Precision, float] = {
    "fp32": BYTES_PER_NUMBER, "fp16": _HALF_BYTES, "bf16": _HALF_BYTES,
    "int4": BYTES_PER_WEIGHT,
}  # fmt: skip


@dataclass(frozen=True)
class Roof:
    """Peak rates of all CPUs or GPUs of a machine together; a rate is None if it is unknown."""

    device: str
    peak_flops: float | None
    bytes_per_second: float | None


@dataclass(frozen=True)
class MeasuredRoof:
    """A host's measured peak rates at one number of threads and one precision (``ceiling``).

    ``host`` has all of the host's peak rates; ``uri`` is the address of their file.
    """

    ceiling: Ceiling
    host: Ceilings
    uri: str


@dataclass(frozen=True)
class AchievedRate:
    """Operations a second of a timed workload, and a lower bound of its bytes a second.

    ``roof`` is that of the spec, ``measured`` that of the host in fp32: the highest rates of the
    fastest matrix product and of the fastest copy, which counts reads and writes.
    """

    observed: Observation
    flops_per_second: float
    least_bytes_per_second: float
    roof: Roof
    measured: Roof

    @property
    def in_fp32(self) -> bool:
        """Whether the arithmetic is in fp32, like the peak rates, or in an unknown precision."""
        return self.observed.precision in {"fp32", ""}

    def of_peak(self, roof: Roof) -> float | None:
        """Operations a second as a share of a roof's; None without a peak or ``in_fp32``."""
        return self.flops_per_second / roof.peak_flops if roof.peak_flops and self.in_fp32 else None

    def of_bandwidth(self, roof: Roof) -> float | None:
        """Lower bound of the used share of a roof's memory bandwidth; None if that is unknown."""
        peak = roof.bytes_per_second
        return self.least_bytes_per_second / peak if peak else None


def achieved_rates(
    inputs: Inputs, hardware: Hardware, observations: Sequence[Observation]
) -> tuple[AchievedRate, ...]:
    """For each workload, mode, machine and kind of evidence, the fastest timing; fastest first.

    Workloads whose operations cannot be counted are left out.
    """
    achieved = _achieved(inputs, hardware, observations)
    fastest_first = sorted(achieved, key=lambda rate: -rate.flops_per_second)
    job = attrgetter("observed.workload", "observed.mode", "observed.machine", "observed.kind")
    return first_by(fastest_first, job)


def roof_of(hardware: Hardware, device: str) -> Roof:
    """The fp32 peak rates that the spec states for ``device``."""
    if device != "cuda":
        peak = hardware.peak_fp32_tflops
        return Roof(device, float(peak) * 1e12 if peak else None, None)
    operations = peak_flops(hardware, "fp32")
    rates = [(gpu.memory_gb_per_second, gpu.count) for gpu in hardware.accelerators]
    bandwidths = [float(rate) * count * 1e9 for rate, count in rates if rate]
    return Roof(
        device,
        float(operations) if operations else None,
        sum(bandwidths) if len(bandwidths) == len(rates) and bandwidths else None,
    )


def _achieved(
    inputs: Inputs, hardware: Hardware, observations: Sequence[Observation]
) -> Iterator[AchievedRate]:
    for observed in observations:
        model = inputs.catalogue.models.get(observed.workload.key)
        counted = arithmetic_of_model(inputs.catalogue, model, inputs.cache) if model else None
        work = _step_flops_and_bytes(model, counted, observed) if model and counted else None
        if work and observed.step:
            flops, least = work
            seconds = float(observed.step.mean)
            roof = roof_of(hardware, observed.machine.device)
            measured = measured_roof(inputs, observed.machine)
            yield AchievedRate(observed, flops / seconds, least / seconds, roof, measured)


def measured_roofs(inputs: Inputs, hardware: Hardware, device: str) -> tuple[MeasuredRoof, ...]:
    """Measured peak rates of ``device`` on each host of ``hardware``, by host, then by threads."""
    return tuple(
        MeasuredRoof(ceiling, host, inputs.uri_of(path))
        for path, host in inputs.ceilings.items()
        if (host.hardware, host.provider) == (hardware.id, device)
        for ceiling in host.ceilings
    )


def measured_roof(inputs: Inputs, machine: Machine) -> Roof:
    """The highest peak rates in fp32 that were measured on the host and GPU of ``machine``."""
    roofs = [roof.ceiling for roof in roofs_of_host(inputs, machine)]
    single = [ceiling for ceiling in roofs if ceiling.precision == "fp32"]
    return Roof(
        machine.device,
        max((ceiling.flops.high for ceiling in single), default=None),
        max((ceiling.copy_bytes.high for ceiling in single), default=None),
    )


def roofs_of_host(inputs: Inputs, machine: Machine) -> tuple[MeasuredRoof, ...]:
    """Peak rates that were measured on the host and GPU of ``machine``, fewest threads first."""
    hardware = inputs.catalogue.hardware[machine.hardware]
    return tuple(
        roof
        for roof in measured_roofs(inputs, hardware, machine.device)
        if roof.host.environment.fingerprint == machine.host
        and machine.gpu in (None, gpu_name(roof.host.environment, roof.host.device))
    )


def _step_flops_and_bytes(
    model: Model, counted: Arithmetic, observed: Observation
) -> tuple[float, float] | None:
    """Operations of a step, and the least bytes that it reads and writes; None if unknown.

    Bytes of activations do not count. Training with frozen parameters is unknown.
    """
    forward = counted.forward_flops * observed.batch_size
    # In mixed precision, only the update uses weights and states of four bytes.
    number = _HALF_BYTES if observed.precision == "mixed" else BYTES_PER_NUMBER
    weights = float(counted.read_whole * number)
    if not forward or not weights or not is_whole_pass(model, observed.mode):
        return None
    if observed.mode == "inference":
        return forward, weights
    if model.training is None:
        return None
    # Weights are read twice and gradients written once; the update reads weights, gradients and
    # states, and writes weights and states.
    return PASSES_PER_STEP * forward, (6 + 2 * optimizer_states(model.training.optimizer)) * weights


@dataclass(frozen=True, slots=True)
class DecodedStep:
    """A timed decoding step, with the shortest possible seconds to read weights and cache."""

    timed: PhaseTime
    weight_seconds: float
    cache_seconds: float

    @property
    def of_ceiling(self) -> float:
        """Shortest possible time / measured time; above 1 if the CPU's caches saved reads."""
        return (self.weight_seconds + self.cache_seconds) / float(self.timed.step.mean)


def decoded_steps(inputs: Inputs, timed: TimedDecoder) -> Iterator[DecodedStep]:
    """Yield a decoder's timed decoding steps on hosts whose memory rate was measured."""
    model = inputs.catalogue.models[timed.model]
    counted = arithmetic_of_model(inputs.catalogue, model, inputs.cache)
    roofs = roofs_of_host(inputs, timed.machine)
    weight = _WEIGHT_BYTES.get(timed.precision)
    if counted is None or model.decoder is None or weight is None or not roofs:
        return
    rate = max(roof.ceiling.copy_bytes.high for roof in roofs)
    # On a GPU, numbers besides weights of few bits have half precision.
    single = {"fp32", "int4"} if timed.machine.device == "cpu" else {"fp32"}
    number = BYTES_PER_NUMBER if timed.precision in single else _HALF_BYTES
    token = number * model.decoder.cached_numbers_per_token
    for phase_time in timed.phases:
        if phase_time.phase.name == "decode":
            cached = phase_time.sequences * phase_time.phase.tokens * token
            yield DecodedStep(phase_time, counted.read_whole * weight / rate, cached / rate)
