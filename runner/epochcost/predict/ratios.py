"""Withhold accelerators or a source, and compare predicted with published ratios of rates.

A ratio compares the rates of one workload on two accelerators. Three tests predict both without the
rates on the two accelerators, on their generations, or of the ratio's source. In averages, every
pair of accelerators (within a source, if sources are withheld) has the same weight.
"""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from epochcost.predict.design import Devices, Placed, designed
from epochcost.predict.joint import NINE_OF_TEN, RATIO_SCALE
from epochcost.predict.process import (
    POOLED,
    Design,
    Labels,
    Matrix,
    Vector,
    centred_departures,
    held_out,
    inverted,
    numbered,
    with_noise,
)

TwoWithheld = Literal["two accelerators", "two generations", "one source"]
_BINS = 10


@dataclass(frozen=True, slots=True)
class Stated:
    """A group of choices of the cheaper accelerator, with similar stated probabilities.

    ``ratios`` is the number of choices, ``right`` the share of right choices, and ``probability``
    the mean of the stated probabilities that a choice is right.
    """

    probability: float
    right: float
    ratios: int


@dataclass(frozen=True, slots=True)
class RatioErrors:
    """Errors of ``ratios`` predicted ratios between the rates of a workload on two accelerators.

    ``coverage`` is the share of predicted 90 % ranges that contain the published ratio. All other
    fields cover the ``priced`` ratios between accelerators with prices. For each, the accelerator
    with the lower predicted cost is chosen. ``brier`` is the mean squared error of the predicted
    probability that the choice is right, ``base_rate_brier`` that of always predicting the share of
    right choices. A regret is the percent by which the true cost of the choice exceeds the lower
    true cost. ``reliability`` groups the choices by predicted probability.
    """

    ratios: int
    coverage: float
    priced: int
    brier: float
    base_rate_brier: float
    mean_regret_percent: float
    p90_regret_percent: float
    reliability: tuple[Stated, ...]


def ratio_errors(
    learnt: Sequence[Placed], devices: Devices, hourly: Mapping[str, float]
) -> Mapping[TwoWithheld, RatioErrors]:
    """Errors of predicted ratios, by test; ``hourly`` has prices per hour by device id.

    A test is omitted if no ratio in it has prices for both devices.
    """
    design = designed(learnt, devices)
    log_prices = np.log([hourly.get(row.device.id, math.nan) for row in learnt])
    withheld: Mapping[TwoWithheld, tuple[Labels, int]] = {
        "two accelerators": (design.group, 2),
        "two generations": (design.generation, 2),
        "one source": (numbered(row.rate.source for row in learnt), 1),
    }
    inverse = inverted(with_noise(design, POOLED))
    errors = {}
    for kind, (labels, withheld_at_once) in withheld.items():
        ratios = [*_ratio_tables(design, inverse, log_prices, labels, withheld_at_once)]
        if ratios and np.isfinite((table := np.concatenate(ratios))[:, 3]).any():
            errors[kind] = _summary(*table.T)
    return errors


def _ratio_tables(
    design: Design, inverse: Matrix, log_prices: Vector, labels: Labels, withheld_at_once: int
) -> Iterator[Matrix]:
    """Yield, for each pair of accelerators, an array [k, 4] with a row for each shared workload.

    The columns are the ratio's weight 1 / k, the error of its logarithm (published − predicted),
    the error's predicted standard deviation, and log(predicted ratio of costs), NaN without prices.
    """
    withheld = itertools.combinations(np.unique(labels), withheld_at_once)
    groups = (np.flatnonzero(np.isin(labels, names)) for names in withheld)
    for rows, departures, spread in held_out(inverse, centred_departures(design)[0], groups):
        costs = log_prices[rows] - design.rate[rows] + departures
        for pair in _rows_of_pairs(design.rows(rows), labels[rows], withheld_at_once):
            first, second = pair.T
            variance = spread[first, first] + spread[second, second] - 2 * spread[first, second]
            errors, advantages = (values[first] - values[second] for values in (departures, costs))
            weights, deviations = np.full(len(pair), 1 / len(pair)), RATIO_SCALE * np.sqrt(variance)
            yield np.column_stack((weights, errors, deviations, advantages))


def _rows_of_pairs(design: Design, labels: Labels, withheld_at_once: int) -> Iterator[Labels]:
    """Yield, for each pair of accelerators, row indices [k, 2] of the k workloads that both ran.

    The two rows of a workload have ``withheld_at_once`` (1 or 2) different ``labels`` [n].
    """
    works: dict[tuple[int, int], dict[tuple[int, float], int]] = defaultdict(dict)
    for row, work in enumerate(zip(design.work.tolist(), design.count.tolist(), strict=True)):
        works[int(labels[row]), int(design.group[row])].setdefault(work, row)
    for (one, first), (other, second) in itertools.combinations(works.items(), 2):
        shared = [(first[work], second[work]) for work in first if work in second]
        # Two withheld labels are those of the two accelerators; a single one is that of both.
        if shared and len({one[0], other[0]}) == withheld_at_once:
            yield np.array(shared)


def _summary(weights: Vector, errors: Vector, deviations: Vector, costs: Vector) -> RatioErrors:
    within = np.abs(errors) <= NINE_OF_TEN * deviations
    priced = np.isfinite(costs)
    weight, cost, true = weights[priced], costs[priced], (costs - errors)[priced]
    scores = np.abs(cost) / deviations[priced]
    stated = np.array([1 - 0.5 * math.erfc(score / math.sqrt(2)) for score in scores])
    right = (cost < 0) == (true < 0)
    regret = 100 * np.where(right, 0.0, np.expm1(np.abs(true)))
    base = np.average(right, weights=weight)
    order = np.argsort(regret)
    reached = np.cumsum(weight[order]) / weight.sum()
    return RatioErrors(
        ratios=len(errors),
        coverage=round(float(np.average(within, weights=weights)), 3),
        priced=len(cost),
        brier=round(float(np.average((stated - right) ** 2, weights=weight)), 3),
        base_rate_brier=round(float(base * (1 - base)), 3),
        mean_regret_percent=round(float(np.average(regret, weights=weight)), 1),
        p90_regret_percent=round(float(regret[order][np.searchsorted(reached, 0.9)]), 1),
        reliability=tuple(_choices_by_probability(stated, right.astype(float), weight)),
    )


def _choices_by_probability(
    probabilities: Vector, right: Vector, weights: Vector
) -> Iterator[Stated]:
    bins = np.minimum((2 * _BINS * (probabilities - 0.5)).astype(int), _BINS - 1)
    for inside in (bins == at for at in np.unique(bins)):
        means = np.average(
            np.stack((probabilities, right))[:, inside], axis=1, weights=weights[inside]
        )
        yield Stated(round(float(means[0]), 3), round(float(means[1]), 3), int(inside.sum()))
