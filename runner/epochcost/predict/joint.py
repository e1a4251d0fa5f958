"""Draw samples of the predicted times on several machines, so that shared errors cancel in ratios.

An error is log(true time / predicted time). One job on n machines has n errors. Each error is the
sum of two parts: the mean of the n errors, and the machine's departure from this mean.

The departures are scaled so that about nine of ten 90 % intervals contain the true ratio of two
machines' times. Then the mean error is scaled so that about nine of ten 90 % intervals of one
machine's time contain the true time.
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

    The other fields suffice to compute ``values`` again. Each value is ``shift`` plus the sum of
    ``weights`` times standard normals from ``seed``. If this is below ``least``, the value is
    ``least``, which is log(shortest possible time / predicted time).
    """

    seed: int
    weights: tuple[float, ...]
    values: KeptArray = field(repr=False)
    shift: float = 0.0
    least: float = -np.inf

    def bounded(self, shift: float, least: float) -> Draws:
        """Add ``shift`` to the draws, then raise draws below ``least`` to ``least``.

        Like the draws, both arguments are logarithms of ratios of times.
        """
        shift, least = round(shift, _DIGITS), round(least, _DIGITS)
        values = np.maximum(self.values + shift, least)
        return replace(self, values=values, shift=shift, least=least)


@dataclass(frozen=True, slots=True)
class Forecast:
    """Predicted seconds; 90 % of true times lie between ``low`` and ``high``.

    ``draws`` are samples of the time's logarithm, relative to ``seconds``. Draws of one model on
    several machines are correlated.
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

    The m logarithms have n different errors, with the covariance ``covariance`` [n, n]. ``cells``
    [m] has the index of each forecast's error; several forecasts may share one error. Half the
    width of a logarithm's 90 % interval is the standard deviation of its error times a factor in
    ``factors`` [n]. ``seed`` is a text that fixes the draws.
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

    ``covariance`` [n, n] is the predicted covariance of the errors. Predictions with equal rows in
    it have equal draws. ``factors`` [n] are half the widths of the predictions' 90 % intervals, in
    predicted standard deviations. The draws of a prediction have a variance; the mean of the n
    variances agrees with the intervals. ``seed`` is any text.
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

    The matrix multiplies each error's departure from the mean of the n errors by ``RATIO_SCALE``.
    It multiplies this mean by a factor for which the average variance of the n errors agrees with
    the 90 % intervals. Half the width of interval i is ``factors[i]`` times the standard deviation
    of error i, the root of ``covariance[i, i]``.
    """
    variances, count = np.diag(covariance), len(covariance)
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

    Method: the last step of MurmurHash3 mixes the bits of a counter. Box and Muller's transform
    (1958) makes normals from the mixed bits.
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
