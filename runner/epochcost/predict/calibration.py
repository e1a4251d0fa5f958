"""How wide an interval must be to hold the truth as often as it says.

What the process says of its own certainty is checked against rows that it has not seen: each group
is predicted from the others, and the errors, in standard deviations, give the factor by which
intervals are widened or narrowed (cross-conformal prediction: Vovk 2015, "Cross-conformal
predictors"). Groups like the one that is asked about count for more, and none for many rows.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from epochcost.predict.process import (
    Design,
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


def errors(design: Design, scales: Scales, groups: Labels, inverse: Matrix | None = None) -> Errors:
    """The errors of all groups, each predicted from the others; ``inverse`` as for ``held_out``.

    Rows are left out whose level nothing says.
    """
    deviations, weights, rows = [], [], []
    held_groups = held_out(design, scales, groups, inverse=inverse)
    for held in held_groups:
        known = predictable(design, held.rows)
        spread = np.sqrt(np.diag(held.covariance))
        rows += [int(held.rows[at]) for at in known]
        deviations += [abs(held.departure[at]) / spread[at] for at in known]
        weights += [min(1.0, _ROWS_THAT_COUNT / len(held.rows)) / len(known)] * len(known)
    features = design.device_features[rows]
    return Errors(np.array(deviations), np.array(weights), features, len(held_groups))
