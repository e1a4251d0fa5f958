"""Intervals of the mean of dependent step times, and of the ratio of two means.

A circular block bootstrap gives the interval of the mean its shape: runs of slow steps and rare
long steps make it uneven about the mean. ``correlated_noise`` gives its width, with wander that no
resampling can see. Two measurements of the same work on a host differ if the interval of their
ratio excludes 1 and the change is large enough to matter.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from epochcost.statistics.correlated_noise import half_width
from epochcost.statistics.quantiles import LEVEL

Series = NDArray[np.float64]

# Blocks of three autocorrelation times: shorter ones lose too much of the dependence between
# blocks, longer ones leave too few blocks (simulated coverage: docs/explanation/measurement.md).
_BLOCK_PER_AUTOCORRELATION_TIME = 3
# Fewer than four blocks leave Student's t no degrees of freedom worth having.
_FEWEST_BLOCKS = 4
# More blocks than this add nothing.
_MOST_BLOCKS = 1000
# Pairs of lags that are computed singly, before a transform computes all: most series forget within
# a few steps, and the transform takes ten times as long.
_FIRST_PAIRS = 6
# One deviation, as a share of the mean, of what another process or hour of the same machine takes:
# few rounds show it by chance only. The smallest of two digits with which the interval of 2, 3 and
# 4 rounds keeps its level (`benchmarks/coverage_rounds.py --rounds 2 3 4`, 26 November 2026).
_BETWEEN_ROUNDS = 0.08


@dataclass(frozen=True)
class Interval:
    """A confidence interval at ``LEVEL``."""

    low: float
    high: float


def mean_interval(
    samples: Sequence[float] | Series, level: float = LEVEL, rounds: Sequence[int] = ()
) -> Interval:
    """Bound the mean of an ordered series of positive numbers.

    The percentile interval of the block bootstrap's means (Politis & Romano 1992), scaled to the
    width of ``correlated_noise.half_width``. ``rounds`` are the counts of consecutive samples from
    a process each; empty is one round. A single sample has no spread: its interval is all positive
    numbers, [0, inf].

    No resample is drawn. The quantiles of the means of all resamples are z + s (z² - 1) / 6 of
    their deviations from the mean (Cornish & Fisher 1938), where their skewness s is known.
    """
    times = np.asarray(samples, dtype=np.float64)
    if len(times) < 2:
        return Interval(0.0, math.inf)
    mean = float(times.sum()) / len(times)
    half = half_width(times, rounds or (len(times),), level)
    length = block_length(len(times), autocorrelation_time(times))
    z = NormalDist().inv_cdf((1 + level) / 2)
    uneven = _skewness_of_means(times, length) * (z * z - 1) / (6 * z)
    deviation = _BETWEEN_ROUNDS * mean / math.sqrt(len(rounds)) if len(rounds) > 1 else 0.0
    below, above = (math.hypot(half * part, z * deviation) for part in (1 - uneven, 1 + uneven))
    return Interval(max(0.0, mean - below), mean + above)


def relative_half_width(samples: Sequence[float] | Series, rounds: Sequence[int] = ()) -> float:
    """Half the width that the samples alone give the interval at ``LEVEL``, over the mean; cheap.

    More samples narrow it as far as a study demands, whatever another hour would add.
    """
    times = np.asarray(samples, dtype=np.float64)
    if len(times) < 2:
        return math.inf
    return half_width(times, rounds or (len(times),), LEVEL) / float(times.mean())


def autocorrelation_time(times: Series) -> float:
    """Estimate the integrated autocorrelation time in samples, at least 1 (independent samples).

    One plus twice the sum of autocorrelations, cut where the sums of adjacent pairs turn negative
    and made monotone: the initial monotone sequence estimator of Geyer (1992), which needs no
    tuning and errs to the long side.
    """
    pairs = _first_pairs(times)
    if pairs is None:
        correlations = _autocorrelations(times)
        even = len(correlations) // 2 * 2
        pairs = correlations[0:even:2] + correlations[1:even:2]
        negative = np.flatnonzero(pairs <= 0)
        pairs = pairs[: negative[0]] if len(negative) else pairs
    return max(1.0, float(2 * np.minimum.accumulate(pairs).sum() - 1)) if len(pairs) else 1.0


def _first_pairs(times: Series) -> Series | None:
    """The positive sums of adjacent autocorrelations; None if there are more than a few."""
    deviations = times - times.sum() / len(times)
    variance = float(deviations @ deviations)
    pairs: list[float] = []
    for lag in range(0, 2 * _FIRST_PAIRS, 2):
        together = sum(float(deviations[at:] @ deviations[: -at or None]) for at in (lag, lag + 1))
        if together <= 0 or lag + 1 >= len(times):
            return np.array(pairs)
        pairs.append(together / variance)
    return None


def block_length(count: int, tau: float) -> int:
    """Number of neighbouring samples in a block, given the autocorrelation time ``tau``.

    At least count^(1/3), the rate at which the best length grows (Künsch 1989).
    """
    length = max(math.cbrt(count), _BLOCK_PER_AUTOCORRELATION_TIME * tau)
    bounded = min(math.ceil(length), count // _FEWEST_BLOCKS)
    return max(1, bounded, math.ceil(count / _MOST_BLOCKS))


def _autocorrelations(times: Series) -> Series:
    """Biased sample autocorrelations at lags 0 to n - 1; zeros for a constant series."""
    deviations = times - times.mean()
    padded = 1 << (2 * len(times) - 1).bit_length()
    spectrum = np.fft.rfft(deviations, padded)
    covariances = np.fft.irfft(spectrum * spectrum.conj(), padded)[: len(times)]
    if covariances[0] <= 0:
        return np.zeros(len(times))
    return np.asarray(covariances / covariances[0], dtype=np.float64)


def _skewness_of_means(times: Series, length: int) -> float:
    """The skewness of the means of all series joined from blocks that start anywhere and wrap.

    The skewness of a block over the root of the number of blocks; -1 to 1, and 0 for equal times.
    """
    count = len(times)
    totals = np.concatenate((times, times[: length - 1])).cumsum()
    sums = totals[length - 1 :].copy()
    sums[1:] -= totals[: count - 1]
    deviations = sums - sums.sum() / count
    squares = deviations * deviations
    variance = float(squares.sum()) / count
    # Rounding alone leaves this much of a series of equal times.
    if variance <= (np.finfo(np.float64).eps * float(totals[-1])) ** 2:
        return 0.0
    third = float(squares @ deviations) / count
    return third / math.sqrt(variance**3 * (count // length))


@dataclass(frozen=True, slots=True)
class Bounded:
    """A positive estimate between the ends of its interval in its unit; the low end may be 0."""

    low: float
    mean: float
    high: float


def ratio(above: Bounded, below: Bounded) -> Bounded:
    """``above`` over ``below``, which were measured independently.

    The ends recover each side's variance from its own interval (MOVER, Zou & Donner 2008), on the
    logarithmic scale, where a ratio is a difference and no end is negative. With an end at 0 the
    ratio is unbounded: 0, or infinity.
    """
    middle = above.mean / below.mean
    shorter = math.hypot(_log(above.mean, above.low), _log(below.high, below.mean))
    longer = math.hypot(_log(above.high, above.mean), _log(below.mean, below.low))
    return Bounded(middle * math.exp(-shorter), middle, middle * math.exp(longer))


def _log(larger: float, smaller: float) -> float:
    return math.log(larger / smaller) if smaller > 0 else math.inf


# Smaller changes matter for no bill, and repeated measurements drift by a few percent.
LEAST_EFFECT = 0.05
# A process does not show how another would have been placed: its interval covers itself alone.
FEWEST_ROUNDS = 2


@dataclass(frozen=True, slots=True)
class TimeChange:
    """The later time over the earlier time, and whether the change is significant."""

    factor: Bounded
    significant: bool


def time_change(before: Bounded, after: Bounded, *, rounds: int) -> TimeChange:
    """Compare two means with their intervals; ``rounds`` are those of the side with fewer.

    A change is significant if its interval excludes 1, it is at least ``LEAST_EFFECT``, and both
    sides have at least ``FEWEST_ROUNDS`` rounds.
    """
    factor = ratio(after, before)
    distinct = factor.low > 1 or factor.high < 1
    large = abs(factor.mean - 1) >= LEAST_EFFECT
    return TimeChange(factor, distinct and large and rounds >= FEWEST_ROUNDS)
