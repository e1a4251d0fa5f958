"""Statistics of step times: mean with its interval, median and percentiles. Only NumPy is needed.

The interval allows for bursts of slow steps, slow drift and differences between processes.
"""

from epochcost.statistics.groups import first_by, group_by
from epochcost.statistics.interval import (
    Bounded,
    Interval,
    mean_interval,
    ratio,
    relative_half_width,
)
from epochcost.statistics.quantiles import LEVEL, percentile_holds, quantiles, student_quantile
from epochcost.statistics.summary import Outliers, Summary, outliers, summarise

__all__ = [
    "LEVEL",
    "Bounded",
    "Interval",
    "Outliers",
    "Summary",
    "first_by",
    "group_by",
    "mean_interval",
    "outliers",
    "percentile_holds",
    "quantiles",
    "ratio",
    "relative_half_width",
    "student_quantile",
    "summarise",
]
