"""How far the mean of a series may be from that of a process which slow wander is part of.

Resampling a series shows only what the series has seen. A clock that wanders for seconds and a
process that was placed well or badly move the mean by more than its samples tell; how much more
depends on a memory that a short series cannot estimate. So nothing is estimated: all memories are
tried, each counts by how well it explains the series, and the half width is that of the mixture.

Means y of equal blocks are taken as normal, with the covariance s² (R + between · S):
R = (1 - share) I + share exp(-lag / memory) within a round, and S, which is 1 within a round and 0
across, the part that a fresh process draws anew. With a flat prior of the mean and 1/s of the
scale, a choice of (share, memory, between) has the marginal likelihood
|V|^-1/2 (1'V^-1 1)^-1/2 Q^-(K-1)/2, Q the residual sum of squares, and the error of the plain mean
is Student's t with K - 1 degrees of freedom (Zellner 1971, An Introduction to Bayesian Inference in
Econometrics, chapter 4).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from epochcost.statistics.tails import student_quantile

Series = NDArray[np.float64]

# Blocks enough to tell a wander of a tenth of the series from noise; more change nothing.
_BLOCKS = 48
# The prior: as likely as not there is no wander; if there is, its memory is anything from half a
# block to twice the series, and its share of the variance of a block anything.
_PLAIN = 0.5
_SHARES = (0.05, 0.2, 0.5, 0.8, 0.95)
_MEMORIES = 6
_SHORTEST_MEMORY, _LONGEST_MEMORY = 0.5, 2.0
# Likewise for what differs between rounds, in variances of a block.
_BETWEEN = tuple(4.0**power for power in range(-3, 6))
# Choices this much less likely than the best one move no digit.
_NEGLIGIBLE = 1e-6
# Newton's steps square the error; a handful is enough.
_MOST_STEPS = 100
_SMALLEST_STEP = 1e-9


@dataclass(frozen=True)
class _Choices:
    """All choices of the parameters for blocks of some rounds, by position in each array.

    ``whitening`` (choices, K, K) is the inverse of the Cholesky factor of V, ``ones`` (choices, K)
    what it makes of a vector of ones, ``weight`` the logarithm of prior and determinants,
    ``variance`` that of the plain mean where s is 1.
    """

    whitening: Series
    ones: Series
    weight: Series
    variance: Series


def half_width(times: Series, rounds: Sequence[int], level: float) -> float:
    """Half the width of the interval of the mean of at least two times.

    ``rounds`` are the counts of consecutive samples that each came from a process of its own.
    """
    blocks = _blocks(tuple(rounds))
    means = _block_means(times, rounds, blocks)
    choices = _choices(blocks)
    degrees = len(means) - 1
    whitened = choices.whitening @ (means - means.mean())
    information = (choices.ones**2).sum(axis=1)
    explained = (choices.ones * whitened).sum(axis=1) ** 2 / information
    residual = (whitened**2).sum(axis=1) - explained
    # Equal means fit every choice alike; the smallest number keeps the logarithm finite.
    residual = np.maximum(residual, np.finfo(np.float64).tiny)
    likelihood = choices.weight - degrees / 2 * np.log(residual)
    weights = np.exp(likelihood - likelihood.max())
    spreads = np.sqrt(residual / degrees * choices.variance)
    kept = weights > _NEGLIGIBLE
    return _mixture_quantile(weights[kept] / weights[kept].sum(), spreads[kept], degrees, level)


def _blocks(rounds: tuple[int, ...]) -> tuple[int, ...]:
    """How many blocks each round is cut into: in proportion to its samples, at least one."""
    total = sum(rounds)
    return tuple(min(count, max(1, round(_BLOCKS * count / total))) for count in rounds)


def _block_means(times: Series, rounds: Sequence[int], blocks: Sequence[int]) -> Series:
    bounds, begin = [0], 0
    for count, number in zip(rounds, blocks, strict=True):
        bounds += [begin + count * part // number for part in range(1, number + 1)]
        begin += count
    totals = np.concatenate(([0.0], np.cumsum(times)))
    return np.asarray(np.diff(totals[bounds]) / np.diff(bounds), dtype=np.float64)


@lru_cache(maxsize=16)
def _choices(blocks: tuple[int, ...]) -> _Choices:
    """Everything that does not depend on the times."""
    number = np.repeat(np.arange(len(blocks)), blocks)
    together = number[:, None] == number[None, :]
    lags = np.abs(np.subtract.outer(np.arange(len(number)), np.arange(len(number))))
    every = list(product(_wanders(len(number)), _betweens(len(blocks))))
    covariances = np.array(
        [
            np.where(together, share * np.exp(-lags / memory) + between, 0.0)
            + (1 - share) * np.eye(len(number))
            for ((share, memory), _), (between, _) in every
        ]
    )
    factors = np.linalg.cholesky(covariances)
    whitening = np.linalg.inv(factors)
    ones = whitening.sum(axis=2)
    prior = np.log([wander * between for (_, wander), (_, between) in every])
    determinant = np.log(np.diagonal(factors, axis1=1, axis2=2)).sum(axis=1)
    return _Choices(
        whitening=whitening,
        ones=ones,
        weight=prior - determinant - np.log((ones**2).sum(axis=1)) / 2,
        variance=covariances.mean(axis=(1, 2)),
    )


def _wanders(count: int) -> list[tuple[tuple[float, float], float]]:
    """Shares and memories in blocks, each pair with its prior probability."""
    longest = max(1.0, _LONGEST_MEMORY * count)
    memories = np.geomspace(_SHORTEST_MEMORY, longest, _MEMORIES).tolist()
    pairs = list(product(_SHARES, memories))
    return [((0.0, 1.0), _PLAIN), *((pair, (1 - _PLAIN) / len(pairs)) for pair in pairs)]


def _betweens(rounds: int) -> list[tuple[float, float]]:
    """Variances between rounds with their prior probability; one round shows none."""
    if rounds == 1:
        return [(0.0, 1.0)]
    return [(0.0, _PLAIN), *((one, (1 - _PLAIN) / len(_BETWEEN)) for one in _BETWEEN)]


def _mixture_quantile(weights: Series, spreads: Series, degrees: int, level: float) -> float:
    """Where a mixture of Student's t leaves ``1 - level`` outside, by Newton's method.

    The tail of each is taken as the normal one, stretched to meet Student's at the level. The
    tails are convex, so that steps from the narrowest one's quantile never go too far.
    """
    z = NormalDist().inv_cdf((1 + level) / 2)
    stretched = spreads * student_quantile((1 + level) / 2, degrees) / z * math.sqrt(2)
    found = float(stretched.min()) * z / math.sqrt(2)
    for _ in range(_MOST_STEPS):
        places = found / stretched
        densities = weights * np.exp(-(places**2))
        outside = float(densities @ _tail_over_density(places))
        slope = float((densities / stretched).sum())
        step = (outside - (1 - level)) / (slope * 2 / math.sqrt(math.pi))
        found += step
        if step <= _SMALLEST_STEP * found:
            break
    return found


def _tail_over_density(places: Series) -> Series:
    """erfc(x) over exp(-x²) for x of 0 or more, to 1.5e-7 (Abramowitz & Stegun 7.1.26)."""
    t = 1 / (1 + 0.3275911 * places)
    inner = t * (1.421413741 + t * (-1.453152027 + t * 1.061405429))
    return np.asarray(t * (0.254829592 + t * (-0.284496736 + inner)))
