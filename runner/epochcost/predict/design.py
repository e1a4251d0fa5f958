"""Turn published rates into arrays for the Gaussian process; look up devices and peak rates."""

from __future__ import annotations

import math
import re
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cache
from operator import attrgetter
from typing import Literal

import numpy as np

from epochcost.graphs.profile import PASSES_PER_STEP, Profile
from epochcost.predict.process import Design, Matrix, Vector, numbered
from epochcost.predict.rates import Rate
from epochcost.specs.hardware import Device

# Texts of sources that mean products on tensor cores in 16 bits (of quantised weights, too), in
# TF32, or products in fp32.
_SIXTEEN_BITS = (
    "fp16", "bf16", "amp", "mixed", "int8", "int4", "fp8", "fp4", "half", "gptq", "bnb",
)  # fmt: skip
_TF32 = "tf32"
_FP32 = ("fp32", "float32")
_WITHOUT_TENSOR_CORES = frozenset({"Kepler", "Maxwell", "Pascal", "CPU"})
Precision = Literal["mixed", "tf32", "fp32"]
_WORK_FEATURES = 7
# The path of a table changes neither rates nor doubts.
_FIELDS = attrgetter(*(field.name for field in fields(Rate) if field.name != "path"))
# Shares of a GPU's peak rate and bandwidth that programs reach.
_PEAK_SHARE, _BANDWIDTH_SHARE = 0.65, 0.75
# ResNet-50 and a batch, for workloads whose graph or batch is unknown.
_USUAL_PROFILE, _USUAL_BATCH = Profile(8.2e9, 4e6, 22e6, 0, 18e6, 25_500_000, 54), 64.0
# A host's time to start the kernels of one matrix product: about four kernels of 5 us. In NVIDIA's
# tables, ResNet-50 at a batch of 1 takes 13 us a product (MXNet on A100) to 240 us (PyTorch, V100).
_HOST_SECONDS = 20e-6
_ACCURACY = re.compile(r"-99(\.9)?$")


@dataclass(frozen=True, slots=True)
class Placed:
    """A rate in examples a second, with its device and its model's profile (None if unknown).

    ``uncertainty`` is the standard deviation of a measured rate's logarithm; 0 for published rates.
    """

    rate: Rate
    device: Device
    profile: Profile | None
    uncertainty: float = 0.0


class Devices:
    """Look up devices by every name that sources use for them."""

    def __init__(self, devices: Iterable[Device]) -> None:
        self.all = tuple(devices)
        self._named: Mapping[str, Device] = {
            name: device for device in self.all for name in device.names
        }
        self._typical = {
            generation: self._medians([gpu for gpu in self.all if gpu.generation == generation])
            for generation in {gpu.generation for gpu in self.all}
        }
        self._median = self._medians(self.all)

    def named(self, name: str) -> Device | None:
        """The device that a source means by ``name``, or None if unknown."""
        return self._named.get(" ".join(name.casefold().split()))

    def features(self, device: Device, precision: str) -> Vector:
        """Logarithms [4] of peak rate, bandwidth, cache and power; medians replace unknown ones."""
        typical = self._typical.get(device.generation, self._median)
        cache = float(device.cache_mib) if device.cache_mib else typical[0]
        power = float(device.power_watts) if device.power_watts else typical[1]
        peak = float(peak_of(device, precision))
        return np.log([peak, float(device.memory_gb_per_second), cache, power])

    def _medians(self, devices: Sequence[Device]) -> tuple[float, float]:
        return self._median_of(devices, "cache_mib"), self._median_of(devices, "power_watts")

    def _median_of(self, devices: Sequence[Device], field: str) -> float:
        for group in (devices, self.all):
            if values := [float(value) for device in group if (value := getattr(device, field))]:
                return statistics.median(values)
        return 1.0


@cache
def precision_of(text: str) -> Precision:
    """The precision that ``text`` names; ``mixed`` for no text, ``fp32`` for an unknown name."""
    label = text.casefold()
    if not label or any(word in label for word in _SIXTEEN_BITS):
        return "mixed"
    return "tf32" if _TF32 in label else "fp32"


def names_precision(text: str) -> bool:
    """Whether ``text`` is empty or has the name of a precision."""
    return not text or any(word in text.casefold() for word in (*_SIXTEEN_BITS, _TF32, *_FP32))


def usual_precision(device: Device) -> Precision:
    """The precision in which a device normally computes: mixed on tensor cores, else fp32."""
    tensor_cores = device.peak_fp16_tflops and device.generation not in _WITHOUT_TENSOR_CORES
    return "mixed" if tensor_cores else "fp32"


def computes_in(device: Device, precision: Precision) -> bool:
    """Whether a device's hardware supports a precision; otherwise programs run in fp32."""
    if precision == "mixed":
        return usual_precision(device) == "mixed"
    return precision == "fp32" or device.peak_tf32_tflops is not None


def peak_of(device: Device, precision: str) -> float:
    """The peak TFLOP/s of a device at the precision that the text ``precision`` names."""
    peaks = {"mixed": device.peak_fp16_tflops, "tf32": device.peak_tf32_tflops, "fp32": None}
    peak = peaks[precision_of(precision)] or device.peak_fp32_tflops or device.peak_fp16_tflops
    assert peak is not None, "a device has a peak"
    return float(peak)


def group_of(device: Device) -> tuple[str, str]:
    """The chip and the memory size in GiB; devices for which both are equal form a group."""
    return device.chip, f"{device.memory_gib:g}"


def designed(learnt: Sequence[Placed], devices: Devices, queries: Sequence[Placed] = ()) -> Design:
    """Arrays for the Gaussian process: the rows of ``learnt``, then those of ``queries``."""
    placed = (*learnt, *queries)
    rates = [row.rate for row in placed]
    features = np.array([devices.features(row.device, row.rate.precision) for row in placed])
    # Only devices with rates: one more in the catalogue changes no forecast.
    rated = {row.device.id: row.device for row in learnt or queries}.values()
    centre = np.median([devices.features(device, "fp32") for device in rated], axis=0)
    return Design(
        rate=np.log([rate.per_second / rate.count for rate in rates]),
        roofline=np.array([_log_roofline_rate(row) for row in placed]),
        device_features=features - centre,
        work_features=_centred_work_features(
            [work_features(row.profile) for row in placed], len(learnt)
        ),
        work=numbered(rate.work for rate in rates),
        setting=numbered((*rate.setting, rate.task, rate.unit) for rate in rates),
        edition=numbered(rate.edition for rate in rates),
        model_mode=numbered((rate.family, rate.model, rate.mode) for rate in rates),
        model=numbered(model_family(rate.model) for rate in rates),
        stack=numbered((rate.source, rate.mode) for rate in rates),
        software=numbered(
            (rate.source, rate.software, rate.precision, rate.mode) for rate in rates
        ),
        device=numbered(row.device.id for row in placed),
        group=numbered(group_of(row.device) for row in placed),
        generation=numbered(row.device.generation for row in placed),
        count=np.log([float(rate.count) for rate in rates]),
        batch=np.log([rate.batch or _USUAL_BATCH for rate in rates]),
        uncertainty=np.array([row.uncertainty for row in placed]),
        is_mixed=np.array([precision_of(rate.precision) == "mixed" for rate in rates]),
        is_host_bound=np.array([_is_host_bound(row) for row in placed]),
    )


def _log_roofline_rate(row: Placed) -> float:
    """Log of one device's examples a second by a roofline; ResNet-50's for an unknown graph."""
    profile = row.profile or _USUAL_PROFILE
    computing = seconds_at_peak(row, profile)
    number_bytes = 2 if precision_of(row.rate.precision) == "mixed" else 4
    bandwidth = float(row.device.memory_gb_per_second) * 1e9
    moving = _passes(row) * number_bytes * (profile.moved + profile.moved_by_others) / bandwidth
    if row.device.generation == "CPU":
        # The geometric mean of both times, since the bandwidth is unknown.
        return -math.log(computing * moving) / 2
    return -math.log(computing / _PEAK_SHARE + moving / _BANDWIDTH_SHARE)


def _is_host_bound(row: Placed) -> bool:
    """Whether starting kernels may take longer than computing them; False for an unknown graph."""
    if row.profile is None or row.device.generation == "CPU":
        return False
    seconds = math.exp(-_log_roofline_rate(row)) * (row.rate.batch or _USUAL_BATCH)
    return seconds < _HOST_SECONDS * _passes(row) * row.profile.products


def seconds_at_peak(row: Placed, profile: Profile) -> float:
    """Seconds that one device needs for an example if it always computes at its peak rate."""
    return _passes(row) * profile.flops / (peak_of(row.device, row.rate.precision) * 1e12)


def _passes(row: Placed) -> int:
    return PASSES_PER_STEP if row.rate.mode == "training" else 1


def content_of(placed: Iterable[Placed], devices: Devices) -> object:
    """Facts about rates and devices that decide a forecast: a cache's key for its results."""
    rows = [(_FIELDS(row.rate), row.device.id, row.profile, row.uncertainty) for row in placed]
    return devices.all, rows


def model_family(model: str) -> str:
    """A model's name in lower case, without the target accuracy that MLPerf appends."""
    return _ACCURACY.sub("", model.casefold())


def graph_distance(one: Profile, other: Profile) -> float:
    """Distance of the `work_features` of two graphs; infinite if only one graph is recurrent."""
    if (one.recurrent_flops > 0) != (other.recurrent_flops > 0):
        return math.inf
    return float(np.linalg.norm(work_features(one) - work_features(other)))


@cache
def work_features(profile: Profile | None) -> Vector:
    """Features [7] of a workload: five logarithms and two shares; NaN if ``profile`` is None."""
    if profile is None:
        return np.full(_WORK_FEATURES, math.nan)
    return np.array(
        [
            math.log(profile.flops),
            math.log(profile.moved + profile.moved_by_others),
            math.log(profile.parameters),
            math.log(profile.products),
            math.log1p(profile.moved_by_others / profile.moved),
            profile.matrix_flops / profile.flops,
            profile.moved_by_grouped / profile.moved,
        ]
    )


def _centred_work_features(features: Sequence[Vector], learnt_count: int) -> Matrix:
    """Subtract the mean of the first ``learnt_count`` rows; NaN rows do not count and stay NaN."""
    rows = np.array(features)
    counted = rows[:learnt_count][np.isfinite(rows[:learnt_count, 0])]
    centred: Matrix = rows - counted.mean(axis=0) if len(counted) else rows
    return centred
