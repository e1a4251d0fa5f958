"""Half width of the confidence interval of a mean of step times that may drift slowly.

A short series cannot show how long its drift lasts. Therefore, this module tries several durations
and weights each duration by how well it explains the series.

The means of K blocks of consecutive times are normal with the covariance s² V. For blocks i and j
of the same round, V[i, j] = share exp(-|i - j| / memory) + between, plus 1 - share if i = j. For
blocks of different rounds, V[i, j] = 0. ``share`` is the drift's share of a block's variance s²
within its round. The rest of s² is independent noise. ``memory`` is the duration of the drift, in
blocks. ``between`` is the variance from one round to another, in multiples of s².

The prior is flat for the mean, and 1/s for s. The marginal likelihood of the three parameters is
|V|^-1/2 (1'V^-1 1)^-1/2 Q^-(K-1)/2. Here, 1 is the vector of ones, and Q is the residual sum of
squares of the block means, weighted by V^-1. For given parameters, the mean's error follows
Student's t distribution with K - 1 degrees of freedom (Zellner 1971, An Introduction to Bayesian
Inference in Econometrics, chapter 4).
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

from epochcost.statistics.quantiles import student_quantile

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
class _NoiseModels:
    """Precomputed arrays for all tried choices of the parameters (share, memory, between).

    Axis 0 of each array is the choice. ``whitening`` has an array (choices, b, b) for each round of
    b blocks: the inverse Cholesky factor of the round's part of V. For a single round, the columns
    of ``whitening`` are made orthogonal to ``unit``. ``unit`` (choices, K) is the whitened vector
    of ones, scaled to length 1. ``log_weight`` (choices,) is the logarithm of the prior times the
    likelihood's first two factors. ``mean_variance`` (choices,) is the variance of the plain mean
    for s = 1.
    """

    whitening: tuple[Series, ...]
    unit: Series
    log_weight: Series
    mean_variance: Series

    def residual_sum_of_squares(self, block_means: Series) -> Series:
        """The residual sum of squares Q of ``block_means``, one value for each choice."""
        # Subtracting the plain mean first saves digits; the best mean subtracts it as well.
        centred, parts, begin = block_means - block_means.sum() / len(block_means), [], 0
        for square in self.whitening:
            end = begin + square.shape[-1]
            parts.append(square @ centred[begin:end])
            begin = end
        if len(parts) == 1:
            return _squares(parts[0])
        whitened = np.concatenate(parts, axis=1)
        whitened -= np.einsum("cj,cj->c", whitened, self.unit)[:, None] * self.unit
        return _squares(whitened)


def _squares(rows: Series) -> Series:
    return np.asarray((rows * rows).sum(axis=1), np.float64)


def half_width(times: Series, rounds: Sequence[int], level: float) -> float:
    """Half the width of the mean's interval at the confidence ``level``, for two or more times.

    ``rounds`` has the number of consecutive samples of each process.
    """
    begins, counts = _block_starts_and_sizes(tuple(rounds))
    choices = _noise_models(_blocks_per_round(tuple(rounds)))
    residual = choices.residual_sum_of_squares(np.add.reduceat(times, begins) / counts)
    # If all means are equal, the residual is 0; the smallest number keeps the logarithm finite.
    residual = np.maximum(residual, np.finfo(np.float64).tiny)
    likelihood = choices.log_weight - (len(counts) - 1) / 2 * np.log(residual)
    # The likelihood of each choice relative to the best.
    weights = np.exp(likelihood - likelihood.max())
    plausible = weights > _NEGLIGIBLE
    degrees = choices.unit.shape[1] - 1
    spreads = np.sqrt(residual[plausible] / degrees * choices.mean_variance[plausible])
    return _quantile_of_student_mixture(
        weights[plausible] / weights[plausible].sum(), spreads, degrees, level
    )


@lru_cache(maxsize=4096)
def _blocks_per_round(rounds: tuple[int, ...]) -> tuple[int, ...]:
    """The number of blocks, at least one, for each round; ``rounds`` has the numbers of samples."""
    total = sum(rounds)
    return tuple(min(count, max(1, round(_BLOCKS * count / total))) for count in rounds)


@lru_cache(maxsize=4096)
def _block_starts_and_sizes(rounds: tuple[int, ...]) -> tuple[NDArray[np.intp], Series]:
    bounds, begin = [0], 0
    for count, number in zip(rounds, _blocks_per_round(rounds), strict=True):
        bounds += [begin + count * part // number for part in range(1, number + 1)]
        begin += count
    return np.array(bounds[:-1]), np.diff(bounds).astype(np.float64)


# A cached result takes some hundred kilobytes, without its cached squares.
@lru_cache(maxsize=64)
def _noise_models(blocks_per_round: tuple[int, ...]) -> _NoiseModels:
    rounds, total = len(blocks_per_round), sum(blocks_per_round)
    # A single product for all rounds would make BLAS start a second, slower thread.
    squares = [_round_matrices(blocks, total, rounds) for blocks in blocks_per_round]
    whitened_ones = np.concatenate([square.whitened_ones for square in squares], axis=1)
    information = np.einsum("cj,cj->c", whitened_ones, whitened_ones)
    unit = whitened_ones / np.sqrt(information)[:, None]
    priors = [
        wander * between
        for (_, wander), (_, between) in product(
            _drifts_to_try(total), _round_variances_to_try(rounds)
        )
    ]
    half_log_determinant = np.sum([square.half_log_determinant for square in squares], axis=0)
    return _NoiseModels(
        (_remove_component(squares[0].whitening, unit),)
        if len(squares) == 1
        else tuple(square.whitening for square in squares),
        unit,
        np.log(priors) - half_log_determinant - np.log(information) / 2,
        np.sum([square.covariance_sum for square in squares], axis=0) / total**2,
    )


@dataclass(frozen=True)
class _RoundMatrices:
    """Matrices for a round of b blocks, for each tried choice of (share, memory, between).

    Axis 0 of each array is the choice. The round's part of V is the covariance of its b blocks.
    ``whitening`` (choices, b, b) is the inverse of the Cholesky factor of the round's part of V,
    and ``whitened_ones`` (choices, b) its row sums. ``half_log_determinant`` (choices,) is
    half the logarithm of the determinant of that part of V. ``covariance_sum`` (choices,) is the
    sum of that part's elements.
    """

    whitening: Series
    whitened_ones: Series
    half_log_determinant: Series
    covariance_sum: Series


def _remove_component(whitening: Series, unit: Series) -> Series:
    """Make the columns of ``whitening`` [b, b] orthogonal to ``unit`` [b], for each choice."""
    along = np.einsum("ci,cij->cj", unit, whitening)
    rest = whitening - unit[:, :, None] * along[:, None, :]
    return np.asarray(rest, np.float64)


# A cached result takes from some kilobytes to six megabytes.
@lru_cache(maxsize=64)
def _round_matrices(blocks: int, total: int, rounds: int) -> _RoundMatrices:
    lags = np.abs(np.subtract.outer(np.arange(blocks), np.arange(blocks)))
    shares, memories = np.array([drift for drift, _ in _drifts_to_try(total)]).T[..., None, None]
    drifts = shares * np.exp(-lags / memories) + (1 - shares) * np.eye(blocks)
    variances = np.array([variance for variance, _ in _round_variances_to_try(rounds)])
    covariances = (drifts[:, None] + variances[:, None, None]).reshape(-1, blocks, blocks)
    factors = np.linalg.cholesky(covariances)
    whitening = np.linalg.inv(factors)
    return _RoundMatrices(
        whitening,
        whitening.sum(axis=2),
        np.log(np.diagonal(factors, axis1=1, axis2=2)).sum(axis=1),
        covariances.sum(axis=(1, 2)),
    )


def _drifts_to_try(count: int) -> list[tuple[tuple[float, float], float]]:
    """The drifts to try, each as ((share, memory), prior probability).

    ``share`` is the drift's share of a block's variance, and ``memory`` its duration in blocks.
    """
    longest = max(1.0, _LONGEST_MEMORY * count)
    memories = np.geomspace(_SHORTEST_MEMORY, longest, _MEMORIES).tolist()
    pairs = list(product(_SHARES, memories))
    return [((0.0, 1.0), _PLAIN), *((pair, (1 - _PLAIN) / len(pairs)) for pair in pairs)]


def _round_variances_to_try(rounds: int) -> list[tuple[float, float]]:
    """Variances between rounds, each with its prior probability; only 0 for a single round."""
    if rounds == 1:
        return [(0.0, 1.0)]
    return [(0.0, _PLAIN), *((variance, (1 - _PLAIN) / len(_BETWEEN)) for variance in _BETWEEN)]


def _quantile_of_student_mixture(
    weights: Series, spreads: Series, degrees: int, level: float
) -> float:
    """Find the x for which a draw from a mixture lies within ±x with the probability ``level``.

    The mixture has Student's t distributions with these ``spreads`` and ``weights``. The result is
    approximate: a normal distribution with the same quantile at ``level`` replaces each t
    distribution. Newton's method solves √(-log p) = √(-log(1 - level)) for x, where p is the
    probability of a draw outside ±x. The left side is almost linear in x.
    """
    z = NormalDist().inv_cdf((1 + level) / 2)
    widening = student_quantile((1 + level) / 2, degrees) / z
    narrowness = 1 / (spreads * (widening * math.sqrt(2)))
    slopes = weights * narrowness * (2 / math.sqrt(math.pi))
    least = float(spreads.min()) * widening * z
    quantile = math.sqrt(float(weights @ (spreads * spreads))) * widening * z
    target_root = math.sqrt(-math.log(1 - level))
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
