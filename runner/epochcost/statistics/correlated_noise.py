"""Half width of the confidence interval of a mean of step times that may drift slowly.

A short series cannot show how long its drift lasts. Therefore, this module tries several durations
and weights each duration by how well it explains the series.

Each round (the times from one process) is divided into blocks of consecutive times, K blocks in
all. The blocks' means are normal with the covariance s² V. For blocks i and j of the same round,
V[i, j] = share exp(-|i - j| / memory) + between, plus 1 - share if i = j. For blocks of different
rounds, V[i, j] = 0. ``share`` is the part of a block's variance s² that comes from the drift,
``memory`` the duration of the drift in blocks, and ``between`` the variance from one round to
another, in multiples of s².

The prior is flat for the mean, and 1/s for s. For the three parameters, a few values are tried,
each with a prior probability. Their marginal likelihood is |V|^-1/2 (1'V^-1 1)^-1/2 Q^-(K-1)/2.
Here, 1 is the vector of ones, and Q is the residual sum of squares of the block means, weighted by
V^-1. For given parameters, the mean's error follows Student's t distribution with K - 1 degrees of
freedom (Zellner 1971, An Introduction to Bayesian Inference in Econometrics, chapter 4).

A round's best mean is the weighted mean of its blocks with the least variance. Q is the sum of two
parts: the residual sum of squares of the blocks around the best means of their rounds, and that of
these best means around the mean of the series. The first part does not depend on ``between``.
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

from epochcost.statistics.quantiles import LEVEL, student_quantile

Series = NDArray[np.float64]

# Enough blocks to tell noise from a drift that lasts a tenth of the series; more change nothing.
_BLOCKS = 48
# The prior: with probability one half there is no drift. A drift's memory is between half a block
# and twice the series, and its share of a block's variance is one of these.
_PLAIN = 0.5
_SHARES = (0.05, 0.2, 0.5, 0.8, 0.95)
_MEMORIES = 6
_SHORTEST_MEMORY, _LONGEST_MEMORY = 0.5, 2.0
# Equally probable variances between rounds, in multiples of a block's variance.
_BETWEEN = tuple(4.0**power for power in range(-3, 6))
# Choices with a lower likelihood, relative to the best choice, change no digit of the result.
_NEGLIGIBLE = 1e-6
# Newton's method squares the error in each step: after a step this small it is below 1e-9.
_SMALLEST_STEP = 1e-5
_MOST_STEPS = 100


@dataclass(frozen=True)
class _Round:
    """The terms of the likelihood from a round of b blocks, for each tried drift.

    Axis 0 of every array is the drift, a pair (share, memory). Within the round, the blocks' means
    have the covariance s² D. ``mean_weights`` (drifts, b) are the weights of the round's best mean,
    whose variance is s² / ``information`` (drifts,) without ``between``. The squares of
    ``whitening`` (drifts, b, b) times the blocks' means sum to the residual sum of squares around
    the best mean, weighted by D^-1. ``half_log_determinant`` (drifts,) is half of log|D|.
    ``variance`` (drifts,) is the sum of D's elements.
    """

    blocks: int
    mean_weights: Series
    information: Series
    whitening: Series
    half_log_determinant: Series
    variance: Series


@dataclass(frozen=True)
class NoiseModels:
    """The terms of the likelihood that do not depend on the measured times, for all tried models.

    A model has a drift (axis 0) and a variance ``between`` rounds (axis 1). Variances are in
    multiples of s². ``precision`` (drifts, variances, rounds) is the inverse variance of each
    round's best mean, ``between`` included. ``log_weight`` (drifts, variances) is the logarithm of
    the prior · |V|^-1/2 · (1'V^-1 1)^-1/2. ``mean_variance`` (drifts, variances) is the variance of
    the unweighted mean of all blocks.
    """

    rounds: tuple[_Round, ...]
    precision: Series
    log_weight: Series
    mean_variance: Series

    def residual_sum_of_squares(self, block_means: Series) -> Series:
        """The residual sum of squares Q (drifts, variances) of the block means under each model."""
        # Subtracting the plain mean first saves digits; the best mean subtracts it as well.
        centred, begin = block_means - block_means.sum() / len(block_means), 0
        within, means = list[Series](), list[Series]()
        for matrices in self.rounds:
            part = centred[begin : begin + matrices.blocks]
            within.append(((matrices.whitening @ part) ** 2).sum(axis=1))
            means.append(matrices.mean_weights @ part)
            begin += matrices.blocks
        of_rounds = np.stack(means, axis=1)[:, None]
        mean = (self.precision * of_rounds).sum(axis=2) / self.precision.sum(axis=2)
        between = (self.precision * (of_rounds - mean[..., None]) ** 2).sum(axis=2)
        return np.asarray(np.sum(within, axis=0)[:, None] + between, np.float64)


def half_width(times: Series, rounds: Sequence[int]) -> float:
    """Half the width of the mean's interval at ``LEVEL``, for two or more times.

    ``rounds`` has the number of ``times`` that each round (a process) measured, in order.
    """
    begins, counts = _block_starts_and_sizes(tuple(rounds))
    choices = noise_models(_blocks_per_round(tuple(rounds)))
    residual = choices.residual_sum_of_squares(np.add.reduceat(times, begins) / counts)
    # If all means are equal, the residual is 0; the smallest number keeps the logarithm finite.
    residual = np.maximum(residual, np.finfo(np.float64).tiny)
    degrees = len(counts) - 1
    likelihood = choices.log_weight - degrees / 2 * np.log(residual)
    # The likelihood of each choice relative to the best.
    weights = np.exp(likelihood - likelihood.max())
    plausible = weights > _NEGLIGIBLE
    spreads = np.sqrt(residual[plausible] / degrees * choices.mean_variance[plausible])
    likely = weights[plausible] / weights[plausible].sum()
    return _quantile_of_student_mixture(likely, spreads, degrees)


def _blocks_per_round(rounds: tuple[int, ...]) -> tuple[int, ...]:
    """Blocks of each round, at least one: about ``_BLOCKS`` in all, in proportion to samples."""
    total = sum(rounds)
    return tuple(min(count, max(1, round(_BLOCKS * count / total))) for count in rounds)


def _block_starts_and_sizes(rounds: tuple[int, ...]) -> tuple[NDArray[np.intp], Series]:
    bounds, begin = [0], 0
    for count, number in zip(rounds, _blocks_per_round(rounds), strict=True):
        bounds += [begin + count * part // number for part in range(1, number + 1)]
        begin += count
    return np.array(bounds[:-1]), np.diff(bounds).astype(np.float64)


@lru_cache(maxsize=256)
def noise_models(blocks_per_round: tuple[int, ...]) -> NoiseModels:
    """Compute what the likelihoods of all noise models need besides the measured times."""
    total = sum(blocks_per_round)
    rounds = tuple(_round_matrices(blocks, total) for blocks in blocks_per_round)
    information = np.stack([matrices.information for matrices in rounds], axis=1)[:, None]
    variances, priors = np.array(round_variances_to_try(len(rounds))).T
    # The determinant of D + between 11' is |D| (1 + between 1'D^-1 1).
    growth = 1 + variances[:, None] * information
    precision = information / growth
    half_log_determinant = np.sum([matrices.half_log_determinant for matrices in rounds], axis=0)
    drift_priors = np.array([prior for _, prior in drifts_to_try(total)])
    log_weight = np.log(np.outer(drift_priors, priors)) - half_log_determinant[:, None]
    log_weight -= (np.log(growth).sum(axis=2) + np.log(precision.sum(axis=2))) / 2
    sums = np.sum([matrices.variance for matrices in rounds], axis=0)
    of_rounds = variances * sum(blocks**2 for blocks in blocks_per_round)
    return NoiseModels(rounds, precision, log_weight, (sums[:, None] + of_rounds) / total**2)


# A cached result takes from some kilobytes to 600 kilobytes.
@lru_cache(maxsize=256)
def _round_matrices(blocks: int, total: int) -> _Round:
    lags = np.abs(np.subtract.outer(np.arange(blocks), np.arange(blocks)))
    shares, memories = np.array([drift for drift, _ in drifts_to_try(total)]).T[..., None, None]
    covariances = shares * np.exp(-lags / memories) + (1 - shares) * np.eye(blocks)
    factors = np.linalg.cholesky(covariances)
    whitening = np.linalg.inv(factors)
    ones = whitening.sum(axis=2)
    information = (ones * ones).sum(axis=1)
    mean_weights = np.einsum("ci,cij->cj", ones, whitening) / information[:, None]
    return _Round(
        blocks,
        mean_weights,
        information,
        whitening - ones[:, :, None] * mean_weights[:, None, :],
        np.log(np.diagonal(factors, axis1=1, axis2=2)).sum(axis=1),
        covariances.sum(axis=(1, 2)),
    )


def drifts_to_try(count: int) -> list[tuple[tuple[float, float], float]]:
    """The drifts whose likelihood is computed: pairs (share, memory), with prior probabilities.

    A share of 0 means no drift. ``count`` is the number of blocks in all rounds together.
    """
    longest = max(1.0, _LONGEST_MEMORY * count)
    memories = np.geomspace(_SHORTEST_MEMORY, longest, _MEMORIES).tolist()
    pairs = list(product(_SHARES, memories))
    return [((0.0, 1.0), _PLAIN), *((pair, (1 - _PLAIN) / len(pairs)) for pair in pairs)]


def round_variances_to_try(rounds: int) -> list[tuple[float, float]]:
    """Tried variances between rounds, in multiples of s², with priors; only 0 for one round."""
    if rounds == 1:
        return [(0.0, 1.0)]
    return [(0.0, _PLAIN), *((variance, (1 - _PLAIN) / len(_BETWEEN)) for variance in _BETWEEN)]


def _quantile_of_student_mixture(weights: Series, spreads: Series, degrees: int) -> float:
    """The x for which a draw from Student's t mixture is within ±x with the probability ``LEVEL``.

    The result is approximate: a normal distribution with the same quantile at ``LEVEL`` replaces
    each t distribution. Newton's method solves √(-log p) = √(-log(1 - LEVEL)) for x, where p is the
    probability of a draw outside ±x. The left side is almost linear in x.
    """
    z = NormalDist().inv_cdf((1 + LEVEL) / 2)
    widening = student_quantile((1 + LEVEL) / 2, degrees) / z
    narrowness = 1 / (spreads * (widening * math.sqrt(2)))
    slopes = weights * narrowness * (2 / math.sqrt(math.pi))
    least = float(spreads.min()) * widening * z
    quantile = math.sqrt(float(weights @ (spreads * spreads))) * widening * z
    target_root = math.sqrt(-math.log(1 - LEVEL))
    for _ in range(_MOST_STEPS):
        places = quantile * narrowness
        # NumPy has no erfc, and a polynomial by arrays takes longer.
        outside = float(weights @ np.array(list(map(math.erfc, places.tolist()))))
        slope = float(slopes @ np.exp(-places * places))
        root = math.sqrt(-math.log(outside))
        step = (target_root - root) * 2 * root * outside / slope
        quantile = max(quantile + step, least)
        if abs(step) <= _SMALLEST_STEP * quantile:
            break
    return quantile
