"""Achieved operations per second beside what a machine could do at most: the roofline.

Operations are counted from the graph, times are measured or published. The bytes counted are those
of parameters, optimizer state and gradients alone, tables that are looked up left out: the least
that a step moves. A point therefore stands at or right of its true place, below the roof all the
same (Williams, Waterman and
Patterson 2009, "Roofline").
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from epochcost.cost.flops import peak_flops
from epochcost.errors import InputError
from epochcost.report.arithmetic import Arithmetic, arithmetic_of
from epochcost.report.inputs import Inputs
from epochcost.report.observations import Observation
from epochcost.report.step_parts import BYTES_PER_NUMBER, states
from epochcost.specs.hardware import Hardware
from epochcost.specs.model import Model

# A training step is three forward passes, as the literature counts it.
_PASSES = 3


@dataclass(frozen=True)
class Roof:
    """The peaks of one device of a machine, all of its chips together; None: not in the spec."""

    device: str
    peak_flops: float | None
    bytes_per_second: float | None


@dataclass(frozen=True)
class Achieved:
    """What a timed work achieved; ``intensity`` is its operations per least byte moved."""

    observed: Observation
    flops_per_second: float
    least_bytes_per_second: float
    intensity: float
    roof: Roof

    @property
    def of_peak(self) -> float | None:
        """The share of the peak operations; None where the spec has no peak."""
        return self.flops_per_second / self.roof.peak_flops if self.roof.peak_flops else None

    @property
    def of_bandwidth(self) -> float | None:
        """The least share of the peak bandwidth; None where the spec has none."""
        peak = self.roof.bytes_per_second
        return self.least_bytes_per_second / peak if peak else None


def achieved(
    inputs: Inputs, hardware: Hardware, observations: Sequence[Observation]
) -> tuple[Achieved, ...]:
    """The best of each workload, mode and device, highest first; uncounted models are left out."""
    best: dict[tuple[object, ...], Achieved] = {}
    for one in _achieved(inputs, hardware, observations):
        observed = one.observed
        key = (observed.subject, observed.mode, observed.machine, observed.kind)
        if key not in best or one.flops_per_second > best[key].flops_per_second:
            best[key] = one
    return tuple(sorted(best.values(), key=lambda one: -one.flops_per_second))


def roof_of(hardware: Hardware, device: str) -> Roof:
    """The peaks that the spec states, in fp32."""
    if device != "cuda":
        peak = hardware.peak_fp32_tflops
        return Roof(device, float(peak) * 1e12 if peak else None, None)
    try:
        operations: float | None = float(peak_flops(hardware, "fp32"))
    except InputError:
        operations = None
    rates = [(one.memory_gb_per_second, one.count) for one in hardware.accelerators]
    known = [float(rate) * count * 1e9 for rate, count in rates if rate]
    return Roof(device, operations, sum(known) if len(known) == len(rates) and known else None)


def _achieved(
    inputs: Inputs, hardware: Hardware, observations: Sequence[Observation]
) -> Iterator[Achieved]:
    for observed in observations:
        model = inputs.catalogue.models.get(observed.subject.id)
        counted = _counted(inputs, model) if observed.subject.is_model else None
        work = _work(model, counted, observed) if model and counted else None
        if work and observed.step:
            flops, least = work
            seconds = float(observed.step.mean)
            roof = roof_of(hardware, observed.machine.device)
            yield Achieved(observed, flops / seconds, least / seconds, flops / least, roof)


def _counted(inputs: Inputs, model: Model | None) -> Arithmetic | None:
    if model is None or model.graph is None:
        return None
    path = inputs.catalogue.graph_path(model)
    return arithmetic_of(path, model.dimensions, inputs.cache)


def _work(model: Model, counted: Arithmetic, observed: Observation) -> tuple[float, float] | None:
    """Operations and least bytes of one step; None where frozen parameters spoil the count."""
    forward = counted.forward_flops * observed.batch_size
    weights = float(counted.read_whole * BYTES_PER_NUMBER)
    if not forward or not weights:
        return None
    if observed.mode == "inference":
        return forward, weights
    if model.training is None or model.training.freeze:
        return None
    # Read forward and backward, a gradient written, and the update as `step_parts` counts it.
    return _PASSES * forward, (6 + 2 * states(model.training.optimizer)) * weights
