"""How wide an interval must be to hold the truth as often as it says.

What the process says of its own certainty is checked against rows that it has not seen: each group
is predicted from the others, and the errors, in standard deviations, give the factor by which
intervals are widened or narrowed (cross-conformal prediction: Vovk 2015, "Cross-conformal
predictors"). Groups like the one that is asked about count for more, and none for many rows.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from epochcost.predict.process import (
    Design,
    Held,
    Labels,
    Matrix,
    Scales,
    Vector,
    held_out,
    predictable,
)

LEVEL = 0.9
# Of few groups, a new one lies outside of the quantile at LEVEL more often than LEVEL says: the
# quantile is taken higher by the share of one group, but not so high that one row decides.
_HIGHEST_QUANTILE = 0.97
# Anchors are chosen anew so often where errors are collected to calibrate by.
_CHOICES = 4
# However unlike, a group says something; and a device with 250 rows is one device.
_LEAST_LIKENESS = 0.2
_ROWS_THAT_COUNT = 25
_LIKENESS_LENGTH = 1.5


@dataclass(frozen=True, slots=True)
class Errors:
    """Of rows that were left out: ``deviations`` in standard deviations, and how much each counts.

    ``features`` [n, 4] are those of the rows' devices; ``groups`` of them were left out.
    """

    deviations: Vector
    weights: Vector
    features: Matrix
    groups: int

    def factor(self, features: Vector) -> float:
        """Standard deviations that hold the truth as often as ``LEVEL`` says, on such a device.

        Infinite where there are no errors to go by.
        """
        if not len(self.deviations):
            return math.inf
        apart = ((self.features - features) ** 2).sum(axis=1)
        likeness = np.exp(-apart / (2 * _LIKENESS_LENGTH**2))
        weights = self.weights * (_LEAST_LIKENESS + likeness)
        order = np.argsort(self.deviations)
        share = np.cumsum(weights[order]) / weights.sum()
        quantile = min(_HIGHEST_QUANTILE, LEVEL * (1 + 1 / self.groups))
        at = min(int(np.searchsorted(share, quantile)), len(order) - 1)
        return float(self.deviations[order][at])


def errors(
    design: Design,
    scales: Scales,
    groups: Labels,
    apart: Labels,
    anchors: int,
    inverse: Matrix | None = None,
) -> Errors:
    """The errors of all groups, each predicted from the others and so many anchors of its own.

    ``inverse`` as ``held_out`` takes it.
    """
    deviations, weights, rows = [], [], []
    held_groups = held_out(design, scales, groups, inverse=inverse)
    for held in held_groups:
        found = list(_deviations(design, held, apart, anchors))
        for row, deviation in found:
            rows.append(row)
            deviations.append(deviation)
            weights.append(min(1.0, _ROWS_THAT_COUNT / len(held.rows)) / len(found))
    features = design.device_features[rows]
    return Errors(np.array(deviations), np.array(weights), features, len(held_groups))


def _deviations(
    design: Design, held: Held, apart: Labels, anchors: int
) -> Iterator[tuple[int, float]]:
    for seed in range(_CHOICES if anchors else 1):
        for one in anchored(design, held, apart, anchors, seed):
            yield one.row, abs(one.departure) / one.deviation


@dataclass(frozen=True, slots=True)
class Anchored:
    """A row that was left out: truth less prediction, and the prediction's standard deviation."""

    row: int
    departure: float
    deviation: float


def anchored(
    design: Design, held: Held, apart: Labels, anchors: int, seed: int
) -> tuple[Anchored, ...]:
    """The rows of a group, predicted from other groups and from so many rows of its own.

    ``seed`` chooses these anchors; no two of them share a label of ``apart`` (models, where a
    machine was left out), nor does a predicted row with any. Rows are left out whose level nothing
    says. Empty where the group has too few labels.
    """
    scored = predictable(design, held.rows)
    chosen = _chosen(apart[held.rows], scored, anchors, seed)
    if len(chosen) < anchors:
        return ()
    taken = set(apart[held.rows[chosen]])
    rest = [at for at in scored if apart[held.rows[at]] not in taken]
    departure, variance = held.departure, np.diag(held.covariance)
    if chosen:
        among = held.covariance[np.ix_(chosen, chosen)]
        between = held.covariance[:, chosen]
        gain = np.linalg.solve(among, between.T).T
        departure = departure - gain @ held.departure[chosen]
        variance = variance - (gain * between).sum(axis=1)
    return tuple(
        Anchored(int(held.rows[at]), float(departure[at]), float(np.sqrt(variance[at])))
        for at in rest
    )


def _chosen(labels: Labels, places: Sequence[int], count: int, seed: int) -> list[int]:
    shuffled = list(places)
    random.Random(f"{seed} {count}").shuffle(shuffled)  # noqa: S311
    first = {int(labels[at]): at for at in reversed(shuffled)}
    return list(first.values())[:count] if count else []
