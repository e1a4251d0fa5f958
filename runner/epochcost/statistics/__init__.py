"""Pure statistics of step times: mean with its interval, median, percentiles. NumPy only.

Money follows the mean; runs of slow steps, slow wander and differences between rounds widen its
interval as they should. ``measure.sampling`` decides when to stop.
"""

from epochcost.statistics.interval import (
    Bounded,
    Interval,
    autocorrelation_time,
    block_length,
    mean_interval,
    ratio,
    relative_half_width,
)
from epochcost.statistics.quantiles import (
    LEVEL,
    percentile_holds,
    quantiles,
    student_quantile,
    wilson_interval,
)
from epochcost.statistics.summary import Outliers, Summary, outliers, summarise

__all__ = [
    "LEVEL",
    "Bounded",
    "Interval",
    "Outliers",
    "Summary",
    "autocorrelation_time",
    "block_length",
    "mean_interval",
    "outliers",
    "percentile_holds",
    "quantiles",
    "ratio",
    "relative_half_width",
    "student_quantile",
    "summarise",
    "wilson_interval",
]
