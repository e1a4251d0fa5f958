"""Draw samples of the predicted times on several machines, so that shared errors cancel in ratios.

An error is log(true time / predicted time). Departures from a job's mean error over its machines
are scaled so that nine of ten 90 % intervals contain the true ratio of two machines' times. Then
the mean error is scaled so that nine of ten contain the true time of one machine.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from epochcost.predict.process import Matrix, Vector
from epochcost.results.kept import KeptArray

# Enough to estimate a share of 5 % to a percent or two.
DRAWS = 256
# Nine of ten normal draws lie within this number of standard deviations.
NINE_OF_TEN = 1.645
# Spread of ratios between two accelerators, relative to the spread that the process predicts. With
# this value, `epochcost trust` of 2026-11-28 had 93, 91 and 87 % of the published ratios in their
# 90 % ranges, without two accelerators, two generations or one source.
RATIO_SCALE = 1.0
# Added to the diagonal, relative to it, so that equal rows still have a Cholesky root.
_JITTER = 1e-9
# Decimals of a weight: the site publishes the rounded weights, so draws use them too.
_DIGITS = 3


@dataclass(frozen=True, slots=True, eq=False)
class Draws:
    """Random draws, ``values`` [DRAWS], of log(time / predicted time).

    Each value is ``shift`` plus the sum of ``weights`` times standard normals from ``seed``, and at
    least ``least``, which is log(shortest possible time / predicted time).
    """

    seed: int
    weights: tuple[float, ...]
    values: KeptArray = field(repr=False)
    shift: float = 0.0
    least: float = -np.inf

    def bounded(self, shift: float, least: float) -> Draws:
        """Add ``shift`` to the draws, then raise draws below ``least``; both are logarithms."""
        shift, least = round(shift, _DIGITS), round(least, _DIGITS)
        return replace(
            self,
            values=np.maximum(self.values + shift, least),
            shift=self.shift + shift,
            least=max(self.least + shift, least),
        )


@dataclass(frozen=True, slots=True)
class Forecast:
    """Predicted seconds; 90 % of true times lie between ``low`` and ``high``.

    Draws of log(time / ``seconds``) of one model are correlated between machines.
    """

    seconds: float
    low: float
    high: float
    draws: Draws = field(compare=False, repr=False)

    def at_least(self, least: float) -> Forecast:
        """Raise the forecast, its interval and its draws to at least ``least`` seconds."""
        if not least:
            return self
        seconds = max(self.seconds, least)
        draws = self.draws.bounded(math.log(self.seconds / seconds), math.log(least / seconds))
        return Forecast(seconds, max(self.low, least), max(self.high, seconds), draws)


def forecasts_of(
    levels: Vector, cells: NDArray[np.int64], covariance: Matrix, factors: Vector, seed: str
) -> list[Forecast]:
    """Make m forecasts of times from their predicted logarithms ``levels`` [m].

    ``cells`` [m] has the index of each forecast's error; several forecasts may share an error. The
    n errors have the ``covariance`` [n, n]. Half the width of a 90 % interval is the error's
    standard deviation times its factor in ``factors`` [n]. ``seed`` is a text that fixes the draws.
    """
    spread = factors * np.sqrt(np.diag(covariance))
    draws = list(joint_draws(covariance, factors, seed))
    forecasts = []
    for level, at in zip(levels, cells, strict=True):
        seconds, ratio = math.exp(level), math.exp(spread[at])
        forecasts.append(Forecast(seconds, seconds / ratio, seconds * ratio, draws[at]))
    return forecasts


def joint_draws(covariance: Matrix, factors: Vector, seed: str) -> Iterator[Draws]:
    """Yield, for each of n predictions, random draws of its error log(time / predicted time).

    The arguments are those of `forecasts_of`. Predictions with equal rows in ``covariance`` have
    equal draws. The mean of the draws' n variances agrees with the intervals.
    """
    count = len(covariance)
    scaling = scaling_of(covariance, factors)
    scaled = scaling @ covariance @ scaling.T
    root = np.linalg.cholesky(scaled + _JITTER * np.diag(np.diag(scaled))).round(_DIGITS)
    start = seed_of(seed)
    drawn = standard_normals(start, count) @ root.T
    for at in range(count):
        weights = np.trim_zeros(root[at], "b")
        yield Draws(start, tuple(weights.tolist()), drawn[:, at])


def scaling_of(covariance: Matrix, factors: Vector) -> Matrix:
    """Matrix [n, n] that turns the errors [n] of one job on n machines into calibrated errors.

    It multiplies departures from the mean error by ``RATIO_SCALE``, and the mean error by a factor
    for which the average variance agrees with the 90 % intervals (see `forecasts_of`). An infinite
    factor leaves the variance of its error as it is.
    """
    variances, count = np.diag(covariance), len(covariance)
    factors = np.where(np.isfinite(factors), factors, NINE_OF_TEN)
    of_mean = covariance.mean()
    variance = ((factors / NINE_OF_TEN) ** 2 * variances).mean()
    of_departures = RATIO_SCALE**2 * (variances - of_mean).mean()
    of_shared = np.sqrt(max(variance - of_departures, 0.0) / of_mean)
    scaling: Matrix = RATIO_SCALE * np.eye(count) + (of_shared - RATIO_SCALE) / count
    return scaling


def seed_of(text: str) -> int:
    """Compute a seed from a text; equal texts have equal seeds."""
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:4])


def standard_normals(seed: int, count: int) -> Matrix:
    """Independent standard normals [DRAWS, count]; column i is the same for every ``count``.

    Method: Box and Muller's transform (1958) of a counter, mixed by MurmurHash3's last step.
    """
    # `site_templates/assets/odds.js` computes the same draws.
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
