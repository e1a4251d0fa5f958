"""Whether a result claims more arithmetic a second than its machine can do.

The work is counted from the model's graph, never from the result. Only what surely has to be
computed counts: in training too, the forward pass alone. What the machine can do comes from its
spec and from the tables here; what a result says of its host can lower that and never raise it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from decimal import Decimal
from typing import NamedTuple

from epochcost.errors import ModelError
from epochcost.plan.binding import bind_model
from epochcost.results.environment import Environment
from epochcost.results.plausibility import same_chip
from epochcost.results.records import Result
from epochcost.results.submission_figures import MOST_CPUS
from epochcost.specs.catalogue import Catalogue
from epochcost.specs.hardware import Accelerator, Hardware
from epochcost.specs.model import Model
from epochcost.specs.study import Precision
from epochcost.units import scientific
from onnxstep.graphs.counting import flops
from onnxstep.graphs.loading import load_model


class _Processor(NamedTuple):
    """Fp32 operations that a core does a cycle at most, and the highest clock of any such chip."""

    named: re.Pattern[str]
    flops_a_cycle: int
    highest_hertz: float


def _processors(pattern: str, flops_a_cycle: int, highest_hertz: float) -> _Processor:
    return _Processor(re.compile(pattern, re.IGNORECASE), flops_a_cycle, highest_hertz)


# The first that a name fits. A multiply and an add in two units of 16 numbers are 64 operations, of
# 8 numbers 32; clocks are those of the fastest chip of a family by its maker's list: EPYC 7371,
# 7F32, 72F3 and 9575F, Xeon E5-1680 v2 and v4, Xeon 6369P, AmpereOne, Core i9-14900KS.
_PROCESSORS = (
    _processors(r"\bEPYC 7\w\w1\b|\bEPYC \(family 23, model 1\)", 16, 3.8e9),
    _processors(r"\bEPYC 7\w\w2\b|\bEPYC \(family 23, model 49\)", 32, 3.9e9),
    _processors(r"\bEPYC 7\w\w3\b|\bEPYC \(family 25, model 1\)", 32, 4.1e9),
    _processors(r"\bEPYC\b", 64, 5.0e9),
    _processors(r"\bE5-\d{4}\w*(?! ?v\d)\b|\bE5-\d{4}\w* ?v2\b", 16, 4.1e9),
    _processors(r"\bE[57]-\d{4}\w* ?v[34]\b", 32, 4.0e9),
    _processors(r"\bXeon\b", 64, 5.8e9),
    _processors(r"\b(Graviton\w*|Neoverse\S*|Altra|AmpereOne)\b|\(Arm\)", 32, 3.8e9),
    _processors("", 64, 6.5e9),
)
# AMX does 2048 operations of int8 a cycle, to which int4 rounds its activations.
_HALF_OVER_SINGLE_CPU = 32
# Clocks rise above those that makers compute peaks from, those of CPUs to twice the base.
_BOOST = 1.2
_CPU_BOOST = 2.0
# FLOP/s of the fastest GPU there is, on its cores and on its tensor cores (RTX PRO 6000, B300), and
# bytes/s of its memory (B300).
_ANY_GPU_SINGLE, _ANY_GPU_HALF, _ANY_GPU_COPY = 1.3e14, 2.6e15, 8e12
# Winograd's F(4x4, 3x3) needs a quarter of a 3x3 convolution's products (Lavin & Gray 2016).
_FEWER_PRODUCTS = 4


# FLOPs of one example by model, as far as they were counted; None where they cannot be.
FlopsByModel = dict[str, float | None]


def implausible_rate(catalogue: Catalogue, result: Result, counted: FlopsByModel) -> Iterator[str]:
    """Say where a result did more arithmetic a second than its machine can; else nothing.

    ``counted`` is filled, so that each model is counted once.
    """
    peak, rate = peak_flops(catalogue, result), _rate(catalogue, result, counted)
    if rate is not None and rate > peak:
        yield (
            f"samples_seconds: expected at most {scientific(peak)} FLOP/s, what this machine can "
            f"do, got {scientific(rate)}"
        )


def peak_flops(catalogue: Catalogue, result: Result) -> float:
    """The most FLOP/s that a trial can reach on this machine."""
    hardware, trial = catalogue.hardware[result.hardware], result.trial
    if trial.provider == "cuda":
        device = trial.session.device
        return gpu_flops(catalogue, hardware, result.environment, device, trial.precision)
    environment = result.environment
    single = cpu_flops(hardware, environment, trial.vcpus or environment.logical_cpus)
    return single * (1 if trial.precision == "fp32" else _HALF_OVER_SINGLE_CPU)


def cpu_flops(hardware: Hardware, environment: Environment, cpus: int) -> float:
    """The most fp32 operations a second that so many CPUs of this machine do together."""
    found = min(
        one.flops_a_cycle * one.highest_hertz for one in _processors_of(hardware, environment)
    )
    table = found * _cpus_at_most(hardware, environment, cpus)
    spec = hardware.peak_fp32_tflops
    return table if spec is None else min(table, float(spec) * 1e12 * _CPU_BOOST)


def cpu_cycles(hardware: Hardware, environment: Environment, cpus: int) -> float:
    """The most cycles a second that so many CPUs of this machine have together."""
    clock = min(one.highest_hertz for one in _processors_of(hardware, environment))
    return clock * _cpus_at_most(hardware, environment, cpus)


def _processors_of(hardware: Hardware, environment: Environment) -> Iterator[_Processor]:
    """The tables' rows of the chip that the spec names, and of the one that the host names."""
    for name in (hardware.cpu or "", environment.cpu or ""):
        yield next(one for one in _PROCESSORS if one.named.search(name))


def _cpus_at_most(hardware: Hardware, environment: Environment, cpus: int) -> int:
    return min(cpus, environment.logical_cpus, hardware.vcpus or MOST_CPUS)


def gpu_flops(
    catalogue: Catalogue,
    hardware: Hardware,
    environment: Environment,
    device: int = 0,
    precision: Precision = "fp32",
) -> float:
    """The most FLOP/s that a network reaches on a GPU of this machine."""
    chips = gpus_of(catalogue, hardware, environment, device)
    return gpu_products(chips, precision) * _FEWER_PRODUCTS


def gpu_products(chips: Sequence[Accelerator], precision: Precision) -> float:
    """The most FLOP/s of a product of matrices on the fastest of these GPUs."""
    single = precision == "fp32"
    known = [chip.peak_fp32_tflops if single else chip.peak_fp16_tflops for chip in chips]
    fastest = _fastest(known, 1e12, _ANY_GPU_SINGLE if single else _ANY_GPU_HALF)
    return fastest * _BOOST


def gpu_copy(chips: Sequence[Accelerator]) -> float:
    """The most bytes a second that the fastest of these GPUs reads and writes together."""
    return _fastest([chip.memory_gb_per_second for chip in chips], 1e9, _ANY_GPU_COPY) * _BOOST


def gpus_of(
    catalogue: Catalogue, hardware: Hardware, environment: Environment, device: int = 0
) -> Sequence[Accelerator]:
    """The spec's accelerators, else the catalogue's of the name that the driver gives."""
    gpus = environment.gpus
    name = gpus[device].name if device < len(gpus) else None
    every = (chip for machine in catalogue.hardware.values() for chip in machine.accelerators)
    alike = [chip for chip in every if name is not None and same_chip(name, chip.name)]
    return hardware.accelerators or alike


def _fastest(peaks: Sequence[Decimal | None], unit: float, any_gpu: float) -> float:
    """The highest peak; that of the fastest GPU there is where one of them is unknown."""
    known = [float(peak) * unit for peak in peaks if peak is not None]
    return max(known) if known and len(known) == len(peaks) else any_gpu


def _rate(catalogue: Catalogue, result: Result, counted: FlopsByModel) -> float | None:
    model = catalogue.models[result.trial.model]
    if model.id not in counted:
        counted[model.id] = _flops_of_example(catalogue, model) if model.graph else None
    example = counted[model.id]
    if example is None:
        return None
    measured = result.measurement
    if measured.served is not None:
        return example * measured.served.run.samples_per_second if measured.served.run else None
    seconds = sum(measured.samples_seconds) / len(measured.samples_seconds)
    return example * result.trial.batch_size / seconds


def _flops_of_example(catalogue: Catalogue, model: Model) -> float | None:
    """The forward pass of one example; None where the graph cannot be read or counted."""
    try:
        return float(flops(bind_model(load_model(catalogue.graph_path(model)), model, 1)))
    except ModelError:
        return None
