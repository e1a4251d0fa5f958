"""What a reader is shown of a series of times: mean with its interval, median, percentiles."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from epochcost.statistics.interval import Interval, mean_interval
from epochcost.statistics.tails import quantiles


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
