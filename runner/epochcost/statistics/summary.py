"""Summarise a series of times: mean with its interval, median, percentiles and outliers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from epochcost.statistics.interval import Interval, mean_interval
from epochcost.statistics.quantiles import quantiles


@dataclass(frozen=True)
class Summary:
    """Statistics of a series of times, in the unit of the samples."""

    count: int
    mean: float
    interval: Interval
    median: float
    p90: float
    p99: float

    @property
    def relative_half_width(self) -> float:
        """Half the width of the mean's interval, divided by the mean."""
        return (self.interval.high - self.interval.low) / 2 / self.mean

    @property
    def relative_margin(self) -> float:
        """Distance from the mean to the farther end of its interval, divided by the mean."""
        return max(self.interval.high - self.mean, self.mean - self.interval.low) / self.mean


def summarise(samples: Sequence[float], rounds: Sequence[int] = ()) -> Summary:
    """Compute the statistics of at least one positive sample.

    ``rounds`` has the number of consecutive samples of each process; empty for a single process.
    """
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


# Tukey's outer fences (Exploratory Data Analysis, 1977), in interquartile ranges; one in 400,000
# values of a normal distribution lies outside.
_FENCE = 3.0
# Quartiles of fewer samples are too uncertain.
_FEWEST_FOR_FENCES = 10
# An outlier exceeds the median by at least this share.
_LEAST_GAP = 0.1


@dataclass(frozen=True)
class Outliers:
    """The slow outliers in a series of samples: ``count`` outliers among ``of`` samples.

    ``longest`` is in multiples of the median. ``time_share`` is the sum of the outliers' excess
    over the median, as a share of the total time.
    """

    count: int
    of: int
    time_share: float
    longest: float


def outliers(samples: Sequence[float]) -> Outliers | None:
    """The slow outliers of a series; None without outliers, and for a series of under ten samples.

    An outlier exceeds the third quartile by more than three interquartile ranges, and the median by
    more than a tenth. All other statistics include the outliers.
    """
    if len(samples) < _FEWEST_FOR_FENCES:
        return None
    times = np.asarray(samples, dtype=np.float64)
    first, median, third = quantiles(times, (0.25, 0.5, 0.75))
    fence = max(third + _FENCE * (third - first), median * (1 + _LEAST_GAP))
    slow = times[times > fence]
    if not len(slow):
        return None
    excess = float((slow - median).sum() / times.sum())
    return Outliers(len(slow), len(times), excess, float(slow.max() / median))
