"""Pure statistics of step times: mean with its interval, median, percentiles. NumPy only.

Money follows the mean; the interval of the mean is a circular block bootstrap, so that runs of slow
steps (autocorrelation) widen it as they should. Deciding when to stop sampling is left to
``measure.sampling``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

Series = NDArray[np.float64]

LEVEL = 0.95
RESAMPLES = 1000
# Fixed, so that the same samples always show the same interval.
_SEED = 20161121
# Blocks of three autocorrelation times: shorter ones lose too much of the dependence between
# blocks, longer ones leave too few blocks (simulated coverage: docs/method/measurement.md).
_BLOCK_PER_AUTOCORRELATION_TIME = 3
# Fewer than four blocks leave Student's t no degrees of freedom worth having.
_FEWEST_BLOCKS = 4
# More blocks than this add cost and no accuracy.
_MOST_BLOCKS = 1000
# Fewer samples than this show neither a drift nor two modes that could be told from chance.
_FEWEST_FOR_SHAPE = 30
# A drift or a gap below this is within what the interval of the mean already tells.
_LEAST_DRIFT = 0.05
_LEAST_GAP = 0.1
# One value that comes less often is an outlier and no mode.
_LEAST_MODE_SHARE = 0.1
# The share of the variance that the best split in two explains: 0.64 of a normal distribution, 0.75
# of a uniform one, and 0.85 of two equal normal ones that are 4.8 deviations apart.
_LEAST_EXPLAINED = 0.85
# The bias correction below is first order; beyond a doubling of the width it is not to be trusted.
_LEAST_VARIANCE_SHARE = 0.25


@dataclass(frozen=True)
class Interval:
    """A confidence interval at ``LEVEL``."""

    low: float
    high: float


@dataclass(frozen=True)
class Summary:
    """What a reader is shown of a series of times, all in the unit of the samples."""

    count: int
    mean: float
    interval: Interval
    median: float
    p90: float
    p99: float

    @property
    def relative_half_width(self) -> float:
        """Half the interval's width over the mean."""
        return (self.interval.high - self.interval.low) / 2 / self.mean


@dataclass(frozen=True)
class Modes:
    """Two clusters of samples: the means of both, and the share of the slower one."""

    fast: float
    slow: float
    slow_share: float


def summarise(samples: Sequence[float]) -> Summary:
    """Summarise at least one positive sample."""
    times = np.asarray(samples, dtype=np.float64)
    median, p90, p99 = np.percentile(times, [50, 90, 99])
    return Summary(
        count=len(times),
        mean=float(times.mean()),
        interval=mean_interval(samples),
        median=float(median),
        p90=float(p90),
        p99=float(p99),
    )


def mean_interval(samples: Sequence[float], level: float = LEVEL) -> Interval:
    """Bound the mean of an ordered series of positive numbers, by circular block bootstrap.

    The percentile interval of bootstrapped means (Politis & Romano 1992) is widened for what
    resampling blocks of a finite series cannot see: see ``_widening``. One sample says nothing
    about its spread: the interval is then all positive numbers, [0, inf].
    """
    times = np.asarray(samples, dtype=np.float64)
    if len(times) < 2:
        return Interval(0.0, math.inf)
    tau = autocorrelation_time(times)
    length = block_length(len(times), tau)
    mean = float(times.mean())
    tail = (1 - level) / 2
    low, high = np.quantile(_bootstrap_means(times, length), [tail, 1 - tail])
    widening = _widening(len(times), length, tau, level)
    return Interval(float(mean - (mean - low) * widening), float(mean + (high - mean) * widening))


def autocorrelation_time(times: Series) -> float:
    """Estimate the integrated autocorrelation time in samples, at least 1 (independent samples).

    One plus twice the sum of autocorrelations, cut where the sums of adjacent pairs turn negative
    and made monotone: the initial monotone sequence estimator of Geyer (1992), which needs no
    tuning and errs to the long side.
    """
    correlations = _autocorrelations(times)
    even = len(correlations) // 2 * 2
    pairs = correlations[0:even:2] + correlations[1:even:2]
    negative = np.flatnonzero(pairs <= 0)
    kept = pairs[: negative[0]] if len(negative) else pairs
    return max(1.0, float(2 * np.minimum.accumulate(kept).sum() - 1)) if len(kept) else 1.0


def block_length(count: int, tau: float) -> int:
    """How many neighbouring samples to keep together, given the autocorrelation time ``tau``.

    At least count^(1/3), the rate at which the best length grows (Künsch 1989).
    """
    wanted = max(math.cbrt(count), _BLOCK_PER_AUTOCORRELATION_TIME * tau)
    bounded = min(math.ceil(wanted), count // _FEWEST_BLOCKS)
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


def _bootstrap_means(times: Series, length: int) -> Series:
    """Means of ``RESAMPLES`` series joined from blocks that start anywhere and wrap around."""
    count = len(times)
    totals = np.concatenate(([0.0], np.cumsum(np.concatenate((times, times[:length])))))
    block_sums = totals[length : length + count] - totals[:count]
    starts = np.random.default_rng(_SEED).integers(0, count, (RESAMPLES, count // length))
    return np.asarray(block_sums[starts].mean(axis=1) / length, dtype=np.float64)


def _widening(count: int, length: int, tau: float, level: float) -> float:
    """The factor by which the bootstrap's half widths are too small.

    Four causes: resamples hold whole blocks only, fewer samples than the series; the variance of m
    blocks about their own mean lacks m / (m - 1); a normal tail stands where Student's t with
    m - 1 degrees of freedom belongs; and blocks forget the dependence between blocks, which for
    the autocorrelation of a first-order process is (tau - 1/tau) / 2 samples' worth per block.
    """
    blocks = count / length
    upper = (1 + level) / 2
    whole_blocks = count // length * length / count
    few = blocks / (blocks - 1)
    tails = student_quantile(upper, int(blocks - 1)) / NormalDist().inv_cdf(upper)
    between = max(_LEAST_VARIANCE_SHARE, 1 - (tau - 1 / tau) / (2 * length))
    return tails * math.sqrt(whole_blocks * few / between)


def student_quantile(probability: float, degrees: int) -> float:
    """The quantile of Student's t for a probability above one half, to 1 % up to 0.995.

    Exact for 1 and 2 degrees of freedom; beyond, the expansion of Abramowitz & Stegun 26.7.5.
    """
    if degrees == 1:
        return math.tan(math.pi * (probability - 0.5))
    if degrees == 2:
        return (2 * probability - 1) / math.sqrt(2 * probability * (1 - probability))
    z = NormalDist().inv_cdf(probability)
    terms = (
        z,
        (z**3 + z) / 4,
        (5 * z**5 + 16 * z**3 + 3 * z) / 96,
        (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384,
        (79 * z**9 + 776 * z**7 + 1482 * z**5 - 1920 * z**3 - 945 * z) / 92160,
    )
    return sum(term / float(degrees) ** power for power, term in enumerate(terms))


def drift(samples: Sequence[float]) -> float | None:
    """By how much the last third of a series is above the first, relative to the first.

    None where the series is short, the change small, or the intervals of both means overlap.
    """
    if len(samples) < _FEWEST_FOR_SHAPE:
        return None
    third = len(samples) // 3
    first, last = samples[:third], samples[-third:]
    change = float(np.mean(last) / np.mean(first)) - 1
    if abs(change) < _LEAST_DRIFT:
        return None
    before, after = mean_interval(first), mean_interval(last)
    return None if before.low <= after.high and after.low <= before.high else change


def two_modes(samples: Sequence[float]) -> Modes | None:
    """The two clusters of a bimodal sample, whatever its order; None where it has one.

    The split of the sorted samples that explains most of their variance (Otsu 1979) counts if it
    explains enough of it, the rarer cluster is no outlier, and the clusters are well apart.
    """
    if len(samples) < _FEWEST_FOR_SHAPE:
        return None
    times = np.sort(np.asarray(samples, dtype=np.float64))
    counts = np.arange(1, len(times))
    sums = np.cumsum(times)
    lower, upper = sums[:-1] / counts, (sums[-1] - sums[:-1]) / (len(times) - counts)
    shares = counts / len(times)
    between = shares * (1 - shares) * (upper - lower) ** 2
    best = int(between.argmax())
    modes = Modes(float(lower[best]), float(upper[best]), float(1 - shares[best]))
    rarer = min(modes.slow_share, 1 - modes.slow_share)
    apart = modes.slow >= modes.fast * (1 + _LEAST_GAP)
    explained = between[best] >= _LEAST_EXPLAINED * times.var()
    return modes if apart and explained and rarer >= _LEAST_MODE_SHARE else None


def wilson_interval(hits: int, trials: int, level: float = LEVEL) -> tuple[float, float]:
    """Bound the share of ``hits`` in at least one trial (Wilson 1927, JASA 22)."""
    z = NormalDist().inv_cdf((1 + level) / 2)
    share, spread = hits / trials, z * z / trials
    middle = (share + spread / 2) / (1 + spread)
    half = z / (1 + spread) * math.sqrt(share * (1 - share) / trials + spread / (4 * trials))
    return max(0.0, middle - half), min(1.0, middle + half)
