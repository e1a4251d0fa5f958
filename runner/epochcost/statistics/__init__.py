"""Pure statistics of step times: mean with its interval, median, percentiles. NumPy only.

Money follows the mean; runs of slow steps, slow wander and differences between rounds widen its
interval as they should. Deciding when to stop sampling is left to ``measure.sampling``.
"""

from epochcost.statistics.interval import (
    Interval,
    autocorrelation_time,
    block_length,
    mean_interval,
    relative_half_width,
)
from epochcost.statistics.ratio import Bounded, ratio
from epochcost.statistics.shape import Modes, Outliers, drift, outliers, two_modes
from epochcost.statistics.summary import Summary, summarise
from epochcost.statistics.tails import LEVEL, quantiles, student_quantile, wilson_interval
from epochcost.statistics.wander import chance_of_differing

__all__ = [
    "LEVEL",
    "Bounded",
    "Interval",
    "Modes",
    "Outliers",
    "Summary",
    "autocorrelation_time",
    "block_length",
    "chance_of_differing",
    "drift",
    "mean_interval",
    "outliers",
    "quantiles",
    "ratio",
    "relative_half_width",
    "student_quantile",
    "summarise",
    "two_modes",
    "wilson_interval",
]
