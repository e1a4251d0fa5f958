"""From published rates to the arrays that the process knows: features of devices and works.

Which name means which device is looked up here, and which of a device's peaks a precision can
reach. What graphs ask for comes from ``graphs.profile``.
"""

from __future__ import annotations

import math
import re
import statistics
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from operator import attrgetter
from typing import Literal

import numpy as np

from epochcost.graphs.profile import Profile
from epochcost.predict.process import Design, Labels, Matrix, Vector
from epochcost.predict.rates import Rate
from epochcost.specs.hardware import Device

# Texts of sources that mean products on tensor cores in 16 bits, or in TF32.
_SIXTEEN_BITS = ("fp16", "bf16", "amp", "mixed", "int8", "int4", "fp8", "fp4", "half")
_TF32 = "tf32"
_WITHOUT_TENSOR_CORES = frozenset({"Kepler", "Maxwell", "Pascal", "CPU"})
Precision = Literal["mixed", "tf32", "fp32"]
# By what a feature of a device is filled in where its maker does not say: as its generation has it.
_WORK_FEATURES = 7
_FIELDS = attrgetter(*(field.name for field in fields(Rate)))
_ACCURACY = re.compile(r"-99(\.9)?$")


@dataclass(frozen=True, slots=True)
class Placed:
    """A rate on a device that is known, with what its work asks for where its graph is known."""

    rate: Rate
    device: Device
    profile: Profile | None


class Devices:
    """Devices by every name that sources give them."""

    def __init__(self, devices: Iterable[Device]) -> None:
        self.all = tuple(devices)
        self._named: Mapping[str, Device] = {
            name: device for device in self.all for name in device.names
        }
        self._typical = {
            generation: self._medians([one for one in self.all if one.generation == generation])
            for generation in {one.generation for one in self.all}
        }
        self._median = self._medians(self.all)

    def named(self, name: str) -> Device | None:
        """The device that a source's spelling means, if any."""
        return self._named.get(" ".join(name.casefold().split()))

    def features(self, device: Device, precision: str) -> Vector:
        """Logarithms of peak at a precision, bandwidth, cache and power [4]."""
        typical = self._typical.get(device.generation, self._median)
        cache = float(device.cache_mib) if device.cache_mib else typical[0]
        power = float(device.power_watts) if device.power_watts else typical[1]
        peak = float(peak_of(device, precision))
        return np.log([peak, float(device.memory_gb_per_second), cache, power])

    def _medians(self, devices: Sequence[Device]) -> tuple[float, float]:
        caches = [float(one.cache_mib) for one in devices if one.cache_mib]
        powers = [float(one.power_watts) for one in devices if one.power_watts]
        return (
            statistics.median(caches) if caches else self._fallback(lambda one: one.cache_mib),
            statistics.median(powers) if powers else self._fallback(lambda one: one.power_watts),
        )

    def _fallback(self, of: Callable[[Device], object]) -> float:
        known = [float(str(of(one))) for one in self.all if of(one)]
        return statistics.median(known) if known else 1.0


def precision_of(text: str) -> Precision:
    """The precision that a source's words mean; where it says nothing, the fastest."""
    said = text.casefold()
    if not said or any(word in said for word in _SIXTEEN_BITS):
        return "mixed"
    return "tf32" if _TF32 in said else "fp32"


def usual_precision(device: Device) -> Precision:
    """What people train and serve in: mixed precision on tensor cores, fp32 elsewhere."""
    tensor_cores = device.peak_fp16_tflops and device.generation not in _WITHOUT_TENSOR_CORES
    return "mixed" if tensor_cores else "fp32"


def computes_in(device: Device, precision: Precision) -> bool:
    """Whether a precision is one of its own on a device, and not just another name of fp32."""
    if precision == "mixed":
        return usual_precision(device) == "mixed"
    return precision == "fp32" or device.peak_tf32_tflops is not None


def peak_of(device: Device, precision: str) -> float:
    """TFLOP/s that a precision, in a source's words, can reach at most on a device."""
    peaks = {"mixed": device.peak_fp16_tflops, "tf32": device.peak_tf32_tflops, "fp32": None}
    return float(peaks[precision_of(precision)] or device.peak_fp32_tflops)


def group_of(device: Device) -> tuple[str, str]:
    """The accelerator: one chip and memory size under every form."""
    return device.chip, f"{device.memory_gib:g}"


def designed(known: Sequence[Placed], devices: Devices, asked: Sequence[Placed] = ()) -> Design:
    """The rows as arrays, those that are asked about last; ``rate`` is per device."""
    placed = (*known, *asked)
    rates = [one.rate for one in placed]
    features = np.array([devices.features(one.device, one.rate.precision) for one in placed])
    return Design(
        rate=np.log([one.per_second / one.count for one in rates]),
        device_features=features - np.median(_all_features(devices), axis=0),
        work_features=_centred([work_features(one.profile) for one in placed], len(known)),
        work=_labels(one.work for one in rates),
        setting=_labels((*one.setting, one.task, one.unit) for one in rates),
        edition=_labels(one.edition for one in rates),
        model_mode=_labels((one.family, one.model, one.mode) for one in rates),
        model=_labels(model_family(one.model) for one in rates),
        stack=_labels((one.source, one.mode) for one in rates),
        software=_labels((one.source, one.software, one.precision, one.mode) for one in rates),
        device=_labels(one.device.id for one in placed),
        group=_labels(group_of(one.device) for one in placed),
        generation=_labels(one.device.generation for one in placed),
        count=np.log([float(one.count) for one in rates]),
        batch=np.log([one.batch or 1.0 for one in rates]),
        training=np.array([float(one.mode == "training") for one in rates]),
    )


def content_of(placed: Iterable[Placed], devices: Devices) -> object:
    """All that follows from rows follows from this, and from ``devices``; its repr says it all."""
    return devices.all, [(_FIELDS(one.rate), one.device.id, one.profile) for one in placed]


def model_family(model: str) -> str:
    """A model's name under every demand of accuracy that MLPerf writes behind its name."""
    return _ACCURACY.sub("", model.casefold())


def _all_features(devices: Devices) -> Matrix:
    return np.array([devices.features(one, "fp32") for one in devices.all])


def work_features(profile: Profile | None) -> Vector:
    """Logarithms of what an example asks for [7]; NaN where it is not known."""
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


def _centred(features: Sequence[Vector], learnt: int) -> Matrix:
    """About the mean of the works that are learnt from, the first, whose graphs are known."""
    rows = np.array(features)
    known = rows[:learnt][np.isfinite(rows[:learnt, 0])]
    centred: Matrix = rows - known.mean(axis=0) if len(known) else rows
    return centred


def _labels(values: Iterable[Hashable]) -> Labels:
    numbers: dict[Hashable, int] = {}
    return np.array([numbers.setdefault(value, len(numbers)) for value in values], dtype=np.int64)
