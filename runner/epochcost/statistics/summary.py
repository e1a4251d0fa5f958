"""What a reader is shown of a series of times: mean with its interval, median, percentiles.

And what their order and spread show: drift, two modes, outliers. None of that changes a figure:
whoever shows one says what was seen beside it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from epochcost.statistics.correlated_noise import Series, half_width
from epochcost.statistics.interval import Interval, mean_interval
from epochcost.statistics.quantiles import LEVEL, quantiles


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

    def less_sure(self, relative_error: float) -> Summary:
        """The same times, whose mean has a further standard error, relative to it."""
        return replace(self, interval=self.interval.widened(self.mean, relative_error * self.mean))


def summarise(samples: Sequence[float], rounds: Sequence[int] = ()) -> Summary:
    """Summarise at least one positive sample; ``rounds`` as ``mean_interval`` takes them."""
    times = np.asarray(samples, dtype=np.float64)
    median, p90, p99 = quantiles(times, (0.5, 0.9, 0.99))
    return Summary(
        count=len(times),
        mean=float(times.sum()) / len(times),
        interval=mean_interval(times, rounds=rounds),
        median=median,
        p90=p90,
        p99=p99,
    )


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
# Tukey's outer fences (Exploratory Data Analysis, 1977): one in 400,000 of a normal distribution.
_FENCE = 3.0
# Quartiles of fewer samples than these fence nothing.
_FEWEST_FOR_FENCES = 10


@dataclass(frozen=True)
class Modes:
    """Two clusters of samples: the means of both, and the share of the slower one."""

    fast: float
    slow: float
    slow_share: float


@dataclass(frozen=True)
class Outliers:
    """Samples beyond the upper fence: how many of how many, and the longest over the median.

    ``time_share`` is the part of all time by which they exceed the median: what the mean would
    fall by without them.
    """

    count: int
    of: int
    time_share: float
    longest: float


def outliers(samples: Sequence[float]) -> Outliers | None:
    """The slow samples that stand apart; None where there is none. They stay in every figure.

    Beyond the third quartile by three times the distance of the quartiles, and by a tenth of the
    median, so that steps as regular as the timer have none.
    """
    if len(samples) < _FEWEST_FOR_FENCES:
        return None
    times = np.asarray(samples, dtype=np.float64)
    first, median, third = quantiles(times, (0.25, 0.5, 0.75))
    fence = max(third + _FENCE * (third - first), median * (1 + _LEAST_GAP))
    beyond = times[times > fence]
    if not len(beyond):
        return None
    excess = float((beyond - median).sum() / times.sum())
    return Outliers(len(beyond), len(times), excess, float(beyond.max() / median))


def drift(samples: Sequence[float]) -> float | None:
    """By how much the last third of a series is above the first, relative to the first.

    None where the series is short, the change small, or the intervals of both means overlap. Those
    are of thirds without their own trends, which would widen what a drift is to be seen by.
    """
    if len(samples) < _FEWEST_FOR_SHAPE:
        return None
    third = len(samples) // 3
    times = np.asarray(samples, np.float64)
    first, last = times[:third], times[-third:]
    level = float(first.sum()) / third
    change = float(last.sum()) / third - level
    if abs(change) < _LEAST_DRIFT * level:
        return None
    left = abs(change)
    for part in (first, last):
        left -= half_width(_flat(part), (third,), LEVEL)
        if left <= 0:
            return None
    return change / level


def _flat(times: Series) -> Series:
    """A series less its straight line."""
    steps = np.arange(len(times)) - (len(times) - 1) / 2
    level, slope = times.sum() / len(times), steps @ times / (steps @ steps)
    return np.asarray(times - level - slope * steps, np.float64)


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
    if modes.slow < modes.fast * (1 + _LEAST_GAP) or rarer < _LEAST_MODE_SHARE:
        return None
    return modes if between[best] >= _LEAST_EXPLAINED * times.var() else None
