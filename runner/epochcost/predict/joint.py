"""Draws of rates that are predicted together, so that what machines share cancels between them.

The process knows the covariance of all that it predicts. Draws of one job on all machines are split
into their mean, which the job and its software are unsure of on every machine alike, and the
departures from it. The departures are scaled so that ratios between machines hold the truth as
often as they claim, the mean so that each rate still does.
"""

from __future__ import annotations

import hashlib

import numpy as np

from epochcost.predict.process import Matrix, Vector

# Enough for a share of 5 % to be known to a percent or two.
DRAWS = 256
# Standard deviations that nine of ten normal draws stay within.
NINE_OF_TEN = 1.645
# Ratios between two accelerators that were left out at a time spread by so much of what the
# process says: benchmarks/ratio_calibration.py.
RATIO_SCALE = 0.9
# Of the diagonal, so that rows that are known to be equal still have a root.
_JITTER = 1e-9


def joint_draws(covariance: Matrix, factors: Vector, seed: str) -> Matrix:
    """Draws of departures from the prediction of each of n rows [DRAWS, n].

    ``covariance`` [n, n] is that of their logarithms, ``factors`` [n] the standard deviations that
    nine of ten truths stay within. Equal rows have equal draws.
    """
    variances = np.diag(covariance)
    root = np.linalg.cholesky(covariance + _JITTER * np.diag(variances))
    digest = hashlib.sha256(seed.encode()).digest()
    normal = np.random.default_rng(int.from_bytes(digest[:8])).standard_normal
    drawn = normal((DRAWS, len(variances))) @ root.T
    shared = drawn.mean(axis=1, keepdims=True)
    departures = (drawn - shared) * RATIO_SCALE
    wanted = ((factors / NINE_OF_TEN) ** 2 * variances).mean()
    of_shared = covariance.mean()
    of_departures = RATIO_SCALE**2 * (variances - 2 * covariance.mean(axis=1) + of_shared).mean()
    scale = np.sqrt(max(wanted - of_departures, 0.0) / of_shared)
    result: Matrix = scale * shared + departures
    return result
