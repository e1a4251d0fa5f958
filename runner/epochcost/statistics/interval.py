"""Intervals for the mean of dependent step times, and for the ratio of two means."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from epochcost.statistics.correlated_noise import Series, half_width
from epochcost.statistics.quantiles import LEVEL

# Blocks of three autocorrelation times: shorter ones lose too much of the dependence between
# blocks, longer ones leave too few blocks (simulated coverage: docs/explanation/measurement.md).
_BLOCK_PER_AUTOCORRELATION_TIME = 3
# Fewer than four blocks leave Student's t too few degrees of freedom.
_FEWEST_BLOCKS = 4
# Further blocks do not change the interval.
_MOST_BLOCKS = 1000
# Standard deviation between processes and hours on a machine, as a share of the mean; few rounds do
# not show it. The smallest value of two digits for which intervals of 2, 3 and 4 rounds reach their
# confidence level (`benchmarks/coverage_rounds.py --rounds 2 3 4`, 26 November 2026).
_BETWEEN_ROUNDS = 0.08


@dataclass(frozen=True)
class Interval:
    """A confidence interval at the confidence level ``LEVEL``."""

    low: float
    high: float


def mean_interval(samples: Sequence[float] | Series, rounds: Sequence[int] = ()) -> Interval:
    """The ``LEVEL`` confidence interval of the mean of an ordered series of positive numbers.

    A model of slow drift (``correlated_noise``) gives the interval's width. The circular block
    bootstrap (Politis & Romano 1992; quantiles by Cornish & Fisher 1938) divides this width into a
    part below and a part above the mean. The interval of a single sample is [0, inf].

    ``rounds`` has the number of consecutive samples of each process; empty for a single process.
    Between processes, the interval covers the measured differences and an assumed deviation
    (``_BETWEEN_ROUNDS``), because a few processes do not show all differences.
    """
    times = np.asarray(samples, dtype=np.float64)
    if len(times) < 2:
        return Interval(0.0, math.inf)
    mean = float(times.sum()) / len(times)
    half = half_width(times, rounds or (len(times),))
    length = block_length(len(times), autocorrelation_time(times))
    z = NormalDist().inv_cdf((1 + LEVEL) / 2)
    # No resample is drawn: a quantile z of the normal distribution becomes z + s (z² - 1) / 6, with
    # s the skewness of the means of all resamples.
    uneven = _skewness_of_resampled_means(times, length) * (z * z - 1) / (6 * z)
    deviation = _BETWEEN_ROUNDS * mean / math.sqrt(len(rounds)) if len(rounds) > 1 else 0.0
    below, above = (math.hypot(half * part, z * deviation) for part in (1 - uneven, 1 + uneven))
    return Interval(max(0.0, mean - below), mean + above)


def relative_half_width(samples: Sequence[float] | Series, rounds: Sequence[int] = ()) -> float:
    """Half the mean's interval at ``LEVEL``, divided by the mean; infinite below two samples.

    Unlike `mean_interval`, it leaves out ``_BETWEEN_ROUNDS``, which more samples cannot reduce.
    """
    times = np.asarray(samples, dtype=np.float64)
    if len(times) < 2:
        return math.inf
    return half_width(times, rounds or (len(times),)) / float(times.mean())


def autocorrelation_time(times: Series) -> float:
    """Estimate the integrated autocorrelation time in samples; 1 means independent samples.

    The initial monotone sequence estimator of Geyer (1992) tends to overestimate.
    """
    correlations = _autocorrelations(times)
    even = len(correlations) // 2 * 2
    pairs = correlations[0:even:2] + correlations[1:even:2]
    negative = np.flatnonzero(pairs <= 0)
    pairs = pairs[: negative[0]] if len(negative) else pairs
    return max(1.0, float(2 * np.minimum.accumulate(pairs).sum() - 1)) if len(pairs) else 1.0


def block_length(count: int, tau: float) -> int:
    """Number of consecutive samples in a bootstrap block, for an autocorrelation time ``tau``.

    The best length grows like the cube root of ``count`` (Künsch 1989).
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


def _skewness_of_resampled_means(times: Series, length: int) -> float:
    """Skewness of the mean of a resample in the block bootstrap; 0 if all times are equal.

    It is the skewness of the sums of all circular blocks / √(number of blocks in a resample).
    """
    count = len(times)
    totals = np.concatenate((times, times[: length - 1])).cumsum()
    sums = totals[length - 1 :].copy()
    sums[1:] -= totals[: count - 1]
    deviations = sums - sums.sum() / count
    squares = deviations * deviations
    variance = float(squares.sum()) / count
    # Rounding errors alone give a series of equal times this variance.
    if variance <= (np.finfo(np.float64).eps * float(totals[-1])) ** 2:
        return 0.0
    third = float(squares @ deviations) / count
    return third / math.sqrt(variance**3 * (count // length))


@dataclass(frozen=True, slots=True)
class Bounded:
    """A positive estimate and its interval, in the same unit; the low end may be 0."""

    low: float
    mean: float
    high: float


def ratio(above: Bounded, below: Bounded) -> Bounded:
    """The ratio ``above / below`` of two independent estimates, with its interval.

    Method: MOVER (Zou & Donner 2008) on logarithms. For a ``low`` of 0, an end is 0 or infinite.
    """
    middle = above.mean / below.mean
    shorter = math.hypot(_log(above.mean, above.low), _log(below.high, below.mean))
    longer = math.hypot(_log(above.high, above.mean), _log(below.mean, below.low))
    return Bounded(middle * math.exp(-shorter), middle, middle * math.exp(longer))


def _log(larger: float, smaller: float) -> float:
    return math.log(larger / smaller) if smaller > 0 else math.inf


# Smaller changes hardly change a bill, and repeated measurements drift by a few percent.
LEAST_EFFECT = 0.05
# Another process may get other places in memory; the interval of a single process ignores this.
FEWEST_ROUNDS = 2


@dataclass(frozen=True, slots=True)
class TimeChange:
    """The ratio of the later time to the earlier time, and whether the change is significant."""

    factor: Bounded
    significant: bool


def time_change(before: Bounded, after: Bounded, *, rounds: int) -> TimeChange:
    """Compare the mean times before and after a change.

    The change is significant if the ratio's interval excludes 1, the ratio differs from 1 by at
    least ``LEAST_EFFECT``, and the smaller number of ``rounds`` is at least ``FEWEST_ROUNDS``.
    """
    factor = ratio(after, before)
    distinct = factor.low > 1 or factor.high < 1
    large = abs(factor.mean - 1) >= LEAST_EFFECT
    return TimeChange(factor, distinct and large and rounds >= FEWEST_ROUNDS)
