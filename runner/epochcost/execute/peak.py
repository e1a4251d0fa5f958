"""Whether a result claims more arithmetic a second than its machine can do.

The work is counted from the model's graph, never from the result. Only what surely has to be
computed counts: in training too, the forward pass alone.
"""

from __future__ import annotations

from collections.abc import Iterator

from epochcost.errors import ModelError
from epochcost.execute.binding import bound
from epochcost.graphs.counting import flops
from epochcost.graphs.loading import load_model
from epochcost.results.records import Environment, Result
from epochcost.specs.catalogue import Catalogue
from epochcost.specs.hardware import Hardware
from epochcost.specs.model import Model
from epochcost.units import scientific

# A core's two units of AVX-512 do a multiply and an add of 16 fp32 numbers each a cycle, and no
# clock is above 6.2 GHz (Intel Core i9-14900KS). AMX does 2048 operations of int8 a cycle.
FP32_FLOPS_A_CYCLE = 64
_HIGHEST_CLOCK_HERTZ = 6.5e9
_HALF_OVER_SINGLE_CPU = 32
# Clocks rise above those that list prices' peaks are computed from.
_BOOST = 1.2
# Winograd's F(4x4, 3x3) needs a quarter of a 3x3 convolution's products (Lavin & Gray 2016).
_FEWER_PRODUCTS = 4


# FLOPs of one example by model, as far as they were counted; None where they cannot be.
Counted = dict[str, float | None]


def implausible_rate(catalogue: Catalogue, result: Result, counted: Counted) -> Iterator[str]:
    """What is wrong with the rate; nothing where work or peak are not known.

    ``counted`` is filled, so that each model is counted once.
    """
    peak = peak_flops(catalogue.hardware[result.hardware], result)
    rate = _rate(catalogue, result, counted)
    if peak is not None and rate is not None and rate > peak:
        yield (
            f"samples_seconds: demanded at most {scientific(peak)} FLOP/s, what this machine can "
            f"do; got {scientific(rate)}"
        )


def peak_flops(hardware: Hardware, result: Result) -> float | None:
    """FLOP/s that no run of a trial on this machine exceeds; None where its GPU tells no peak."""
    if result.trial.provider == "cuda":
        return _of_gpu(hardware, result)
    environment = result.environment
    cpus = min(environment.logical_cpus, result.trial.vcpus or environment.logical_cpus)
    peak = cpu_cycles(environment, cpus) * FP32_FLOPS_A_CYCLE
    return peak * (1 if result.trial.precision == "fp32" else _HALF_OVER_SINGLE_CPU)


def cpu_cycles(environment: Environment, cpus: int) -> float:
    """Cycles a second that no CPUs of this number exceed together."""
    clock = environment.processor.highest_frequency_hertz or 0
    return cpus * max(clock, _HIGHEST_CLOCK_HERTZ)


def _of_gpu(hardware: Hardware, result: Result) -> float | None:
    chips = hardware.accelerators
    if not chips:
        return None
    single = result.trial.precision == "fp32"
    known = [chip.peak_fp32_tflops if single else chip.peak_fp16_tflops for chip in chips]
    if None in known:
        return None
    doubled = 2 if result.trial.precision == "int8" else 1
    fastest = max(float(one) for one in known if one is not None)
    return fastest * 1e12 * doubled * _BOOST * _FEWER_PRODUCTS


def _rate(catalogue: Catalogue, result: Result, counted: Counted) -> float | None:
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
        return float(flops(bound(load_model(catalogue.graph_path(model)), model, 1)))
    except ModelError:
        return None
