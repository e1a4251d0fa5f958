"""Collect our own rates on GPUs, and all rates on CPUs, from which predictions learn.

A rate is a number of examples a second. Rates on CPUs come from our results, from specs/published
and from specs/observations. `predict.learnt` reads published rates on GPUs.
"""

from __future__ import annotations

import hashlib
import re
import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from statistics import NormalDist

import numpy as np
from pydantic import TypeAdapter

from epochcost.analysis.arithmetic import is_whole_pass
from epochcost.analysis.inputs import Inputs
from epochcost.analysis.machines import cpu_name
from epochcost.analysis.representatives import is_of_steps, representatives
from epochcost.graphs.profile import Profile
from epochcost.predict.design import Devices, Placed, precision_of
from epochcost.predict.forecast import Question, as_rate, has_kin
from epochcost.predict.learnt import placed_table
from epochcost.results.kept import Keep
from epochcost.results.records import Result
from epochcost.results.rounds import summary_of
from epochcost.results.stability import disturbances_of, watched_cpus
from epochcost.specs.catalogue import Catalogue
from epochcost.specs.hardware import Device, Hardware
from epochcost.specs.published import Published, Timing
from epochcost.specs.study import Provider
from epochcost.statistics.quantiles import LEVEL

# No vCPU does more: 64 operations a cycle (two units of AVX-512) at 4 GHz. It bounds rates only.
_MOST_TFLOPS = Decimal("0.256")
# Ends of a confidence interval, in standard deviations of a normal distribution.
_INTERVAL_ENDS = NormalDist().inv_cdf((1 + LEVEL) / 2)
_KEPT = Keep(
    "half-widths",
    TypeAdapter(tuple[str, tuple[float, ...]]),
    ("analysis/rates.py", "results"),
)
# With fewer makes, nothing can be inferred for another one.
_LEAST_MAKES = 3


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
    hardware: Hardware,
    device: Device,
    profiles: Mapping[str, Profile],
    published: Sequence[Placed],
) -> Iterator[Placed]:
    """Yield the rates that we measured on a single GPU (``device``) of the machine ``hardware``.

    Recurrent models are left out, and models whose graph is unlike the graphs of all rates in
    ``published``. The precision may be any; all other settings must be the defaults.
    """
    measured = _usable_results(inputs, "cuda")
    results = [result for result in measured if result.hardware == hardware.id]
    for result, half_width in zip(results, _half_widths(results, inputs.cache), strict=True):
        trial, profile = result.trial, profiles.get(result.trial.model)
        if profile is None or profile.recurrent_flops or not has_kin(profile, published):
            continue
        if trial.variant in ("", trial.precision) and trial.session.threads == 0:
            seconds = statistics.median(result.measurement.samples_seconds)
            precision, batch = precision_of(trial.precision), trial.batch_size
            work = Question(trial.model, profile, trial.mode, precision, batch, device, count=1)
            yield _measured_rate(work, seconds, half_width)


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
    results = tuple(_default_cpu_results(inputs))
    for result, half_width in zip(results, _half_widths(results, inputs.cache), strict=True):
        trial, hardware = result.trial, inputs.catalogue.hardware[result.hardware]
        vcpus = trial.vcpus or result.environment.logical_cpus
        if trial.model in profiles and vcpus:
            device = cpu_device(hardware.cpu or cpu_name(result.environment), vcpus)
            seconds = statistics.fmean(result.measurement.samples_seconds)
            profile, batch = profiles[trial.model], trial.batch_size
            work = Question(trial.model, profile, trial.mode, "fp32", batch, device, count=1)
            yield _measured_rate(work, seconds, half_width)


def _measured_rate(work: Question, step_seconds: float, half_width: float) -> Placed:
    uncertainty = half_width / _INTERVAL_ENDS
    return replace(as_rate(work, work.batch / step_seconds), uncertainty=uncertainty)


def _half_widths(results: Sequence[Result], cache: Path | None) -> tuple[float, ...]:
    """Half the width of the interval of each result's mean step time, relative to the mean."""
    content = [_summarised_content(result) for result in results] if cache else None

    def compute() -> tuple[float, ...]:
        return tuple(summary_of(result).relative_half_width for result in results)

    return _KEPT.value(cache, content, compute)


def _summarised_content(result: Result) -> tuple[object, ...]:
    measured = result.measurement
    samples = hashlib.sha256(np.array(measured.samples_seconds).tobytes()).hexdigest()
    cpus = watched_cpus(result)
    return samples, measured.samples_by_round, measured.conditions, cpus


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
