"""How far predictions are off where the truth is known, and how often their intervals hold it.

Whole accelerators, generations or models are left out of the rows that others published, predicted
from the rest, and compared. What a prediction costs who follows it needs prices and is left to
``analysis``.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from epochcost.predict.calibration import anchored, errors
from epochcost.predict.design import Devices, Placed, designed
from epochcost.predict.process import (
    PROFILES,
    Design,
    Labels,
    Scales,
    Vector,
    held_out,
    likeliest,
    predictable,
    roofline,
)

Left = Literal["accelerator", "generation", "machine", "model"]
LEFT: tuple[Left, ...] = get_args(Left)
_SEEDS = 20
_FEW = 30


@dataclass(frozen=True, slots=True)
class Case:
    """A row that was left out: logarithms of true over predicted rate, and of half the interval."""

    row: int
    error: float
    half_width: float

    @property
    def held(self) -> bool:
        """Whether the interval holds the truth."""
        return abs(self.error) <= self.half_width


@dataclass(frozen=True, slots=True)
class Score:
    """Errors in percent of time (the larger over the smaller, less one), shares from 0 to 1.

    A row's error is the mean over all choices of anchors. ``refused`` rows have no prediction: no
    other row says their model's level; each counts as an error above all others. ``coverage`` is by
    generation too, where one has enough rows.
    """

    rows: int
    refused: int
    median_percent: float
    p90_percent: float
    coverage: float
    coverage_by_generation: Mapping[str, float]
    half_width: float
    roofline_median_percent: float
    roofline_p90_percent: float


def percent(logarithm: float) -> float:
    """By how many percent the larger of two times exceeds the smaller."""
    return 100 * (math.exp(abs(logarithm)) - 1)


def score(
    placed: Sequence[Placed],
    devices: Devices,
    left: Left,
    anchors: int,
    among: Sequence[Scales] = PROFILES,
) -> Score:
    """Leave out one group after the other, and compare; of the scales the likeliest are taken."""
    design = designed(placed, devices)
    groups = groups_of(design, left)
    cases: dict[int, list[Case]] = defaultdict(list)
    apart = design.group if left == "model" else design.model
    for case in left_out(design, groups, apart, anchors, among):
        cases[case.row].append(case)
    refused = _refused(design, groups)
    means = [float(np.mean([percent(one.error) for one in found])) for found in cases.values()]
    means += [math.inf] * refused
    constants = design.device if left == "model" else design.edition
    roofs = roofline_errors(design, groups, constants)
    roof = [math.inf if math.isnan(error) else percent(error) for error in roofs]
    every = [one for found in cases.values() for one in found]
    return Score(
        rows=len(means),
        refused=refused,
        median_percent=quantile(means, 0.5),
        p90_percent=quantile(means, 0.9),
        coverage=_mean([one.held for one in every]),
        coverage_by_generation=_coverage(placed, cases),
        half_width=math.exp(quantile([one.half_width for one in every] or [math.inf], 0.5)),
        roofline_median_percent=quantile(roof, 0.5),
        roofline_p90_percent=quantile(roof, 0.9),
    )


def groups_of(design: Design, left: Left) -> Labels:
    """Which rows are left out together."""
    return {
        "accelerator": design.group,
        "generation": design.generation,
        "machine": design.device,
        "model": design.model,
    }[left]


def left_out(
    design: Design,
    groups: Labels,
    apart: Labels,
    anchors: int,
    among: Sequence[Scales] = PROFILES,
) -> Iterator[Case]:
    """Every row predicted without its group, with an interval calibrated on the other groups.

    Anchors and predicted rows do not share labels of ``apart``.
    """
    for group in np.unique(groups):
        inside = groups == group
        known, others = design.rows(~inside), groups[~inside]
        scales = likeliest(known, others, among)
        calibration = errors(known, scales, others, apart[~inside], anchors)
        held = held_out(design, scales, groups, (group,))[0]
        for seed in range(_SEEDS if anchors else 1):
            for one in anchored(design, held, apart, anchors, seed):
                factor = calibration.factor(design.device_features[one.row])
                yield Case(one.row, one.departure, factor * one.deviation)


def _refused(design: Design, groups: Labels) -> int:
    rows = (np.flatnonzero(groups == group) for group in np.unique(groups))
    return sum(len(one) - len(predictable(design, one)) for one in rows)


def roofline_errors(design: Design, groups: Labels, same: Labels) -> Vector:
    """Of the rows by √(peak · bandwidth) and a constant of the rows of one label of ``same`` [n].

    NaN where no other row tells of the work, infinite where none has that label.
    """
    departures = design.rate - roofline(design)
    result: Vector = np.full(len(departures), math.nan)
    for group in np.unique(groups):
        rows = np.flatnonzero(groups == group)
        for row in rows[predictable(design, rows)]:
            others = (same == same[row]) & (groups != group)
            result[row] = departures[row] - departures[others].mean() if others.any() else math.inf
    return result


def _coverage(placed: Sequence[Placed], cases: Mapping[int, list[Case]]) -> dict[str, float]:
    held: dict[str, list[list[Case]]] = defaultdict(list)
    for row, found in cases.items():
        held[placed[row].device.generation].append(found)
    return {
        generation: _mean([one.held for found in rows for one in found])
        for generation, rows in sorted(held.items())
        if len(rows) >= _FEW
    }


def _mean(held: Sequence[bool]) -> float:
    """The share of true values; 0 of none."""
    return sum(held) / max(1, len(held))


def quantile(values: Sequence[float], share: float) -> float:
    """The least of the values that so large a share of them does not exceed."""
    return sorted(values)[math.ceil(share * len(values)) - 1]
