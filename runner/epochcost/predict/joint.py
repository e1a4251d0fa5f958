"""Draws of times that are predicted together, so that what machines share cancels between them.

The process knows the covariance of all that it predicts. Draws of one job on all machines are split
into their mean, which the job and its software are unsure of on every machine alike, and the
departures from it. The departures are scaled so that ratios between machines hold the truth as
often as they claim, the mean so that each rate still does.

Draws are sums of standard normals that a seed gives, so that the site publishes the weights and not
the draws: ``site_templates/assets/odds.js`` makes the same ones.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from epochcost.predict.process import Matrix, Vector
from epochcost.results.kept import KeptArray

# Enough for a share of 5 % to be known to a percent or two.
DRAWS = 256
# Standard deviations that nine of ten normal draws stay within.
NINE_OF_TEN = 1.645
# Ratios between two accelerators that were left out at a time spread by so much of what the
# process says: benchmarks/ratio_calibration.py.
RATIO_SCALE = 0.9
# Of the diagonal, so that rows that are known to be equal still have a root.
_JITTER = 1e-9
# Decimals of a weight: what the site publishes is what is drawn from here.
_DIGITS = 3


@dataclass(frozen=True, slots=True, eq=False)
class Draws:
    """Draws of a time's logarithm in units of the time's mean: ``values`` [DRAWS].

    They are ``shift`` plus ``weights`` times the first standard normals of ``seed``, and ``least``
    where that is more: no time is shorter than at the peak of the devices.
    """

    seed: int
    weights: tuple[float, ...]
    values: KeptArray = field(repr=False)
    shift: float = 0.0
    least: float = -np.inf

    def bounded(self, shift: float, least: float) -> Draws:
        """The draws so much later, none before ``least``."""
        shift, least = round(shift, _DIGITS), round(least, _DIGITS)
        values = np.maximum(self.values + shift, least)
        return replace(self, values=values, shift=shift, least=least)


def joint_draws(covariance: Matrix, factors: Vector, seed: str) -> Iterator[Draws]:
    """Draws of departures from the prediction of each of n rows; equal rows have equal draws.

    ``covariance`` [n, n] is that of their logarithms, ``factors`` [n] the standard deviations that
    nine of ten truths stay within.
    """
    variances, count = np.diag(covariance), len(covariance)
    of_mean = covariance.mean()
    variance = ((factors / NINE_OF_TEN) ** 2 * variances).mean()
    of_departures = RATIO_SCALE**2 * (variances - of_mean).mean()
    of_shared = np.sqrt(max(variance - of_departures, 0.0) / of_mean)
    scaling = RATIO_SCALE * np.eye(count) + (of_shared - RATIO_SCALE) / count
    scaled = scaling @ covariance @ scaling.T
    root = np.linalg.cholesky(scaled + _JITTER * np.diag(np.diag(scaled))).round(_DIGITS)
    start = seed_of(seed)
    drawn = standard_normals(start, count) @ root.T
    for at in range(count):
        weights = np.trim_zeros(root[at], "b")
        yield Draws(start, tuple(weights.tolist()), drawn[:, at])


def seed_of(text: str) -> int:
    """A seed that follows from a text alone."""
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:4])


def standard_normals(seed: int, count: int) -> Matrix:
    """Independent standard normals [DRAWS, count]; the first columns are those of a lower count.

    By Box and Muller's transform (1958) of a counter that MurmurHash3's last step mixes.
    """
    counter = np.arange(2 * DRAWS * count, dtype=np.uint32) + np.uint32(seed)
    uniform = (_mixed(counter).astype(np.float64) + 0.5) / 2**32
    radius, angle = uniform.reshape(count, DRAWS, 2).T
    drawn: Matrix = np.sqrt(-2 * np.log(radius)) * np.cos(2 * np.pi * angle)
    return drawn


def _mixed(values: NDArray[np.uint32]) -> NDArray[np.uint32]:
    half, part = np.uint32(16), np.uint32(13)
    values = (values ^ (values >> half)) * np.uint32(0x85EBCA6B)
    values = (values ^ (values >> part)) * np.uint32(0xC2B2AE35)
    return values ^ (values >> half)
