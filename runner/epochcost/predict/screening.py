"""Rows and devices that cannot be right: judged by what all others say, and by each other.

A unit mixed up, tokens called samples, a row entered twice, a machine under two names, a peak typed
ten times too large. What is found is listed and not learnt from; nothing is corrected.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal

import numpy as np

from epochcost.predict.design import Devices, Placed, designed
from epochcost.predict.process import (
    Design,
    Matrix,
    Scales,
    Vector,
    centred_departures,
    inverted,
    with_noise,
)
from epochcost.specs.device import Device

# A row is doubted that is off by so much and by so many standard deviations of what it can be.
_LEAST_FACTOR = 2.0
_LEAST_DEVIATIONS = 4.5
# So many equal figures of two names are no chance.
_EQUAL_FIGURES = 3
# Operations in fp32 for each byte that the memory moves: 16 for a V100, 106 for an L40S.
_OPERATIONS_PER_BYTE = (4, 140)
# Tensor cores in 16 bits are 8 to 16 times as fast as fp32 on the parts that have them.
_MOST_TENSOR_GAIN = 32
# Of operands of half the size: two, four on the first parts.
_MOST_HALVING_GAIN = 4


@dataclass(frozen=True, slots=True)
class Doubt:
    """Why a row, or a device (``where`` is its id), is not learnt from."""

    where: str
    reason: str


def doubted_rows(placed: Sequence[Placed], devices: Devices) -> dict[int, Doubt]:
    """By place among the rows, those that cannot be right."""
    doubts = dict(_repeated(placed))
    doubts |= {at: doubt for at, doubt in _twice_named(placed) if at not in doubts}
    sound = [at for at in range(len(placed)) if at not in doubts]
    design = designed([placed[at] for at in sound], devices)
    for at, factor in _improbable(design):
        one = placed[sound[at]].rate
        doubts[sound[at]] = Doubt(
            one.where,
            f"{one.per_second:.4g} a second of {one.model} on {one.accelerator}: other rows say "
            f"{one.per_second / factor:.4g}",
        )
    return doubts


def doubted_devices(devices: Sequence[Device]) -> tuple[Doubt, ...]:
    """Devices whose facts contradict each other."""
    return tuple(doubt for one in devices for doubt in _contradictions(one))


def _contradictions(device: Device) -> Iterator[Doubt]:
    least, most = _OPERATIONS_PER_BYTE
    peak = float(device.peak_fp32_tflops)
    balance = 1000 * peak / float(device.memory_gb_per_second)
    if not least <= balance <= most:
        yield Doubt(
            device.id,
            f"{balance:.0f} operations in fp32 for a byte of memory; known are {least} to {most}",
        )
    tf32, fp16 = (_or_none(one) for one in (device.peak_tf32_tflops, device.peak_fp16_tflops))
    for name, fast in (("peak_tf32_tflops", tf32), ("peak_fp16_tflops", fp16)):
        if fast is not None and not peak <= fast <= _MOST_TENSOR_GAIN * peak:
            yield Doubt(device.id, f"{name} is {fast / peak:.2g} times the peak in fp32")
    if tf32 is not None and fp16 is not None and not tf32 <= fp16 <= _MOST_HALVING_GAIN * tf32:
        yield Doubt(device.id, f"peak_fp16_tflops is {fp16 / tf32:.2g} times the peak in TF32")


def _or_none(value: Decimal | None) -> float | None:
    return None if value is None else float(value)


def _repeated(placed: Sequence[Placed]) -> Iterator[tuple[int, Doubt]]:
    """Rows that say the same as an earlier one to the last digit, its machine included."""
    seen: dict[tuple[object, ...], str] = {}
    for at, one in enumerate(placed):
        rate = one.rate
        row = (rate.work, rate.accelerator, rate.count, rate.machine, rate.per_second, rate.file)
        if row in seen:
            yield at, Doubt(rate.where, f"the same as {seen[row]}")
        seen.setdefault(row, rate.where)


def _twice_named(placed: Sequence[Placed]) -> Iterator[tuple[int, Doubt]]:
    """Rows of a device whose figures are all those of another device's."""
    figures: dict[str, dict[tuple[object, ...], int]] = defaultdict(dict)
    for at, one in enumerate(placed):
        figure = (one.rate.work, one.rate.count, one.rate.per_second)
        figures[one.device.id].setdefault(figure, at)
    names = sorted(figures, key=lambda name: min(figures[name].values()))
    for number, name in enumerate(names):
        for earlier in names[:number]:
            shared = figures[name].keys() & figures[earlier].keys()
            if len(shared) >= max(_EQUAL_FIGURES, len(figures[name]) / 2):
                for key in shared:
                    at = figures[name][key]
                    yield at, Doubt(placed[at].rate.where, f"the figure of {earlier} under {name}")


def _improbable(design: Design) -> Iterator[tuple[int, float]]:
    """Rows that all others contradict, the worst first, and by which factor.

    One at a time: a row that is far off pulls at what is expected of its neighbours.
    """
    departures, _ = centred_departures(design)
    inverse = inverted(with_noise(design, Scales()))
    left = np.ones(len(departures), bool)
    while left.sum() > _EQUAL_FIGURES:
        worst, factor = _worst(inverse, np.where(left, departures - departures[left].mean(), 0))
        if worst is None:
            return
        yield worst, factor
        # The inverse of the covariance without the row, whose own row and column become 0.
        column = inverse[worst].copy()
        inverse -= np.outer(column, column / column[worst])
        inverse[worst] = inverse[:, worst] = 0
        left[worst] = False


def _worst(inverse: Matrix, departures: Vector) -> tuple[int | None, float]:
    """The row that lies farthest from what the others say of it, if any is too far.

    Rows that are left out have zeros in both.
    """
    own = np.diag(inverse)
    off = np.divide(inverse @ departures, own, out=np.zeros_like(own), where=own > 0)
    deviations = np.abs(off) * np.sqrt(own)
    deviations[np.abs(off) < math.log(_LEAST_FACTOR)] = 0
    at = int(np.argmax(deviations))
    if deviations[at] < _LEAST_DEVIATIONS:
        return None, 1.0
    return at, math.exp(float(off[at]))
