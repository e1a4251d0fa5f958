"""Find the devices of machines, and collect the rates on them from which predictions learn.

A rate is a number of examples a second. Our own rates on GPUs are collected here, and all rates on
CPUs: from our results, from specs/published and from specs/observations. `predict.learnt` reads
published rates on GPUs.
"""

from __future__ import annotations

import re
import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from statistics import NormalDist

from epochcost.analysis.arithmetic import is_whole_pass
from epochcost.analysis.inputs import Inputs
from epochcost.analysis.machines import cpu_name
from epochcost.analysis.representatives import is_of_steps, representatives
from epochcost.graphs.profile import Profile
from epochcost.plan.variant import CUDA_12_RUNTIME, declared_obstacle
from epochcost.predict.design import Devices, Placed, Precision, precision_of
from epochcost.predict.forecast import Forecaster, Question, as_rate, has_kin
from epochcost.predict.learnt import placed_table
from epochcost.results.records import Result
from epochcost.results.rounds import summary_of
from epochcost.results.stability import disturbances_of
from epochcost.specs.catalogue import Catalogue
from epochcost.specs.hardware import Device, Hardware
from epochcost.specs.published import Published, Timing
from epochcost.specs.study import Provider
from epochcost.specs.target import PINNED_RUNTIME
from epochcost.statistics.quantiles import LEVEL

# No vCPU does more: 64 operations a cycle (two units of AVX-512) at 4 GHz. It bounds rates only.
_MOST_TFLOPS = Decimal("0.256")
# Ends of a confidence interval, in standard deviations of a normal distribution.
_INTERVAL_ENDS = NormalDist().inv_cdf((1 + LEVEL) / 2)
# With fewer makes, nothing can be inferred for another one.
_LEAST_MAKES = 3


@dataclass(frozen=True, slots=True)
class Place:
    """A machine with ``count`` devices of one kind.

    ``software`` is the version of ONNX Runtime to use on the device, empty if none supports it. If
    epochcost pins a newer version, ``doubt`` says why the pinned version is unsuitable.
    """

    hardware: Hardware
    device: Device
    count: int
    memory_gib: Decimal
    software: str
    doubt: str = ""


def cpu_device(make: str, vcpus: int) -> Device:
    """Describe ``vcpus`` vCPUs of a CPU with the name ``make`` as a device, for predictions.

    Peak rates of arithmetic and memory are proportional to ``vcpus``, and equal for all makes.
    """
    stem = re.sub(r"[\W_]+", "-", make.casefold()).strip("-") or make
    # Not validated: any text may be a make, and no spec has such an id.
    return Device.model_construct(
        id=f"{stem}-{vcpus}",
        name=f"{make}, {vcpus} vCPUs",
        chip=make,
        generation="CPU",
        spellings=(make,),
        memory_gib=Decimal(1),
        memory_gb_per_second=Decimal(vcpus),
        peak_fp32_tflops=_MOST_TFLOPS * vcpus,
        source="counted by vCPUs",
    )


def cpu_of(hardware: Hardware) -> Device | str:
    """The CPUs of a machine as a device, or the reason why nothing is predicted for the machine."""
    if hardware.detected:
        return "its CPUs are only known when it measures"
    if hardware.vcpus is None or hardware.cpu is None:
        return "its CPUs are not known"
    if re.search(r"\bArm\b", hardware.cpu):
        return "no published time of an Arm CPU"
    return cpu_device(hardware.cpu, hardware.vcpus)


def place_of(hardware: Hardware, forecaster: Forecaster) -> Place | str:
    """The devices of a machine, or the reason why nothing is predicted for the machine.

    ``forecaster`` learns from published rates of GPUs or of CPUs, depending on the machine.
    """
    if hardware.accelerators:
        return _accelerated(hardware, forecaster.devices)
    device = cpu_of(hardware)
    if isinstance(device, str):
        return device
    if not forecaster.published:
        return "too few CPUs with published times"
    if hardware.memory_gib is None:
        return "its memory is not known"
    return Place(hardware, device, 1, hardware.memory_gib, runtime_name(PINNED_RUNTIME))


def _accelerated(hardware: Hardware, devices: Devices) -> Place | str:
    if len(hardware.accelerators) > 1:
        return "accelerators of several kinds"
    (accelerator,) = hardware.accelerators
    device = devices.named(accelerator.name)
    if device is None:
        return f"no published time of a {accelerator.name}"
    runtimes = (PINNED_RUNTIME, CUDA_12_RUNTIME)
    runtime = next((name for name in runtimes if not declared_obstacle(name, hardware)), "")
    software = runtime_name(runtime) if runtime else ""
    doubt = f"{PINNED_RUNTIME} has no kernels for compute capability {hardware.compute_capability}"
    older = "" if runtime in {"", PINNED_RUNTIME} else doubt
    memory_gib = accelerator.memory_gib or device.memory_gib
    return Place(hardware, device, accelerator.count, memory_gib, software, older)


def runtime_name(software: str) -> str:
    """Name the runtime ``software`` for readers, for example "ONNX Runtime 1.23"."""
    release = software.partition("==")[2].rpartition(".")[0]
    return f"ONNX Runtime {release}"


def models_with_rates(inputs: Inputs) -> frozenset[str]:
    """Ids of the models with measured or published rates from which predictions learn."""
    results = (*_default_cpu_results(inputs), *_usable_results(inputs, "cuda"))
    published = (str(source.model) for source, _, _ in _published_cpu_timings(inputs.catalogue))
    return frozenset((*(result.trial.model for result in results), *published))


def cpu_rates(
    inputs: Inputs, profiles: Mapping[str, Profile]
) -> tuple[tuple[Placed, ...], Devices]:
    """The fp32 rates of workloads on CPUs, and the devices of these rates.

    A device is a CPU model with a number of vCPUs. If fewer than three CPU models have rates, no
    rates are returned. Raises InputError for a table of published rates that cannot be read.
    """
    rows = [*_measured(inputs, profiles), *_published(inputs.catalogue, profiles)]
    for table in (listed for listed in inputs.catalogue.observations.values() if listed.cpus):
        named = Devices(cpu_device(make, vcpus) for make, vcpus in table.cpus.items())
        rows += placed_table(inputs.catalogue, table, named)
    devices = Devices({row.device.id: row.device for row in rows}.values())
    enough = len({device.chip for device in devices.all}) >= _LEAST_MAKES
    return tuple(rows) if enough else (), devices


def gpu_rates(
    inputs: Inputs,
    devices: Mapping[str, Device],
    profiles: Mapping[str, Profile],
    published: Sequence[Placed],
) -> Iterator[Placed]:
    """Yield the rates that we measured on a single GPU; ``devices`` has it by the machine's id.

    Recurrent models are left out, and models whose graph is unlike the graphs of all rates in
    ``published``. The precision may be any; all other settings must be the defaults.
    """
    for result in _usable_results(inputs, "cuda"):
        trial, profile = result.trial, profiles.get(result.trial.model)
        if result.hardware not in devices or profile is None:
            continue
        if profile.recurrent_flops or not has_kin(profile, published):
            continue
        if trial.variant in ("", trial.precision) and trial.session.threads == 0:
            device, precision = devices[result.hardware], precision_of(trial.precision)
            seconds = statistics.median(result.measurement.samples_seconds)
            yield _measured_rate(result, profile, device, precision, seconds)


def _usable_results(inputs: Inputs, provider: Provider) -> Iterator[Result]:
    """Yield undisturbed results of whole steps that do not contradict the machine's spec."""
    for stored in representatives(inputs.stored):
        result, trial = stored.result, stored.result.trial
        whole = is_whole_pass(inputs.catalogue.models[trial.model], trial.mode)
        valid = is_of_steps(result) and not result.contradictions and whole
        if trial.provider != provider or not valid:
            continue
        # A single sample has no interval.
        several = len(result.measurement.samples_seconds) > 1
        if several and not disturbances_of(result):
            yield result


def _default_cpu_results(inputs: Inputs) -> Iterator[Result]:
    """Results on CPUs in default settings, except that the number of vCPUs may be limited."""
    for result in _usable_results(inputs, "cpu"):
        trial = result.trial
        pinned = f"{trial.vcpus} vCPU" if trial.vcpus else ""
        if trial.variant == pinned and trial.session.threads == (trial.vcpus or 0):
            yield result


def _measured(inputs: Inputs, profiles: Mapping[str, Profile]) -> Iterator[Placed]:
    for result in _default_cpu_results(inputs):
        trial, hardware = result.trial, inputs.catalogue.hardware[result.hardware]
        vcpus = trial.vcpus or result.environment.logical_cpus
        if trial.model in profiles and vcpus:
            device = cpu_device(hardware.cpu or cpu_name(result.environment), vcpus)
            seconds = statistics.fmean(result.measurement.samples_seconds)
            yield _measured_rate(result, profiles[trial.model], device, "fp32", seconds)


def _measured_rate(
    result: Result, profile: Profile, device: Device, precision: Precision, step_seconds: float
) -> Placed:
    trial, batch = result.trial, result.trial.batch_size
    work = Question(trial.model, profile, trial.mode, precision, batch, device, count=1)
    uncertainty = summary_of(result).relative_half_width / _INTERVAL_ENDS
    return replace(as_rate(work, batch / step_seconds), uncertainty=uncertainty)


def _published_cpu_timings(catalogue: Catalogue) -> Iterator[tuple[Published, Timing, Device]]:
    for source in catalogue.published.values():
        for timing in source.timings if source.model in catalogue.models else ():
            hardware = catalogue.hardware[timing.hardware]
            device = cpu_of(hardware)
            plain = timing.count == 1 and timing.batch_size and timing.total_steps
            if plain and not hardware.accelerators and isinstance(device, Device):
                yield source, timing, device


def _published(catalogue: Catalogue, profiles: Mapping[str, Profile]) -> Iterator[Placed]:
    for source, timing, device in _published_cpu_timings(catalogue):
        model, batch, steps = str(source.model), timing.batch_size, timing.total_steps
        if model in profiles and batch and steps:
            software = f"{source.page} {timing.framework}"
            work = Question(
                model, profiles[model], "training", "fp32", batch, device, 1, software=software
            )
            yield as_rate(work, float(batch * steps / timing.total_seconds))
