"""An upper bound of a machine's FLOP/s, to detect measured times that are too short to be true.

The operations are counted from the model's graph, never taken from the result. Only unavoidable
operations count: even for training, only those of the forward pass. The bound comes from the
machine's spec, else from the fastest chip on the market; facts of the host in a result can only
lower it.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

from epochcost.errors import ModelError
from epochcost.graphs.counting import flops
from epochcost.plan.binding import bind_model
from epochcost.results.environment import Environment
from epochcost.results.plausibility import same_chip
from epochcost.results.records import Result
from epochcost.specs.catalogue import Catalogue
from epochcost.specs.hardware import Accelerator, Hardware
from epochcost.specs.model import Model
from epochcost.specs.study import Precision
from onnxstep.graphs.loading import load_model

# A multiply and an add in two units of 16 numbers, at a clock above that of any chip on the market.
_FLOPS_A_CYCLE, MOST_HERTZ = 64, 6.5e9
# AMX does 2048 operations of int8 a cycle; models in int4 may round activations to int8.
_HALF_OVER_SINGLE_CPU = 32
# Above the CPUs of the largest host: sixteen sockets of 60 cores with two threads have 1,920.
_MOST_CPUS = 2048
# Clocks rise above those from which makers compute peaks.
_BOOST = 1.2
_CPU_BOOST = 2.0
# The fastest GPU on the market: FLOP/s of its cores (RTX PRO 6000) and of its tensor cores (B300),
# and bytes/s of its memory (B300).
_ANY_GPU_SINGLE, _ANY_GPU_HALF, _ANY_GPU_COPY = 1.3e14, 2.6e15, 8e12
# Winograd's F(4x4, 3x3) needs a quarter of a 3x3 convolution's products (Lavin & Gray 2016).
_FEWER_PRODUCTS = 4

# FLOPs of one example by model; None if they cannot be counted.
FlopsByModel = dict[str, float | None]


def example_flops(catalogue: Catalogue, model: Model, counted: FlopsByModel) -> float | None:
    """Operations of the forward pass of one example; None if the graph cannot be read or counted.

    ``counted`` caches the result by model.
    """
    if model.id not in counted:
        counted[model.id] = None
        if model.graph is not None:
            try:
                graph = bind_model(load_model(catalogue.graph_path(model)), model, 1)
                counted[model.id] = float(flops(graph))
            except ModelError:
                pass
    return counted[model.id]


def peak_flops(catalogue: Catalogue, result: Result) -> float:
    """Upper bound of the FLOP/s that a result's trial can reach on its machine."""
    hardware, trial = catalogue.hardware[result.hardware], result.trial
    environment = result.environment
    if trial.provider == "cuda":
        chips = gpus_of(catalogue, hardware, environment, trial.session.device)
        return gpu_products(chips, trial.precision) * _FEWER_PRODUCTS
    single = cpu_flops(hardware, environment, trial.vcpus or environment.logical_cpus)
    return single * (1 if trial.precision == "fp32" else _HALF_OVER_SINGLE_CPU)


def cpu_flops(hardware: Hardware, environment: Environment, cpus: int) -> float:
    """Upper bound of the fp32 FLOP/s of ``cpus`` CPUs of a machine together."""
    count = min(cpus, environment.logical_cpus, hardware.vcpus or _MOST_CPUS)
    most = _FLOPS_A_CYCLE * MOST_HERTZ * count
    spec = hardware.peak_fp32_tflops
    return most if spec is None else min(most, float(spec) * 1e12 * _CPU_BOOST)


def gpu_products(chips: Sequence[Accelerator], precision: Precision) -> float:
    """Upper bound of the FLOP/s of a matrix product on the fastest of these GPUs."""
    single = precision == "fp32"
    peaks = [chip.peak_fp32_tflops if single else chip.peak_fp16_tflops for chip in chips]
    return _fastest(peaks, 1e12, _ANY_GPU_SINGLE if single else _ANY_GPU_HALF) * _BOOST


def gpu_copy(chips: Sequence[Accelerator]) -> float:
    """Upper bound of the bytes per second, reads plus writes, on the fastest of these GPUs."""
    return _fastest([chip.memory_gb_per_second for chip in chips], 1e9, _ANY_GPU_COPY) * _BOOST


def gpus_of(
    catalogue: Catalogue, hardware: Hardware, environment: Environment, device: int = 0
) -> Sequence[Accelerator]:
    """The accelerators of a machine by its spec.

    If the spec has none, these are all accelerators of the catalogue whose name fits the name that
    the host's driver states.
    """
    gpus = environment.gpus
    name = gpus[device].name if device < len(gpus) else None
    every = (chip for machine in catalogue.hardware.values() for chip in machine.accelerators)
    alike = [chip for chip in every if name is not None and same_chip(name, chip.name)]
    return hardware.accelerators or alike


def _fastest(peaks: Sequence[Decimal | None], unit: float, any_gpu: float) -> float:
    """The highest of the peak rates; if one is unknown, that of the fastest GPU on the market."""
    rates = [float(peak) * unit for peak in peaks if peak is not None]
    return max(rates) if rates and len(rates) == len(peaks) else any_gpu
