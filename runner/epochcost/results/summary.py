"""The one place where a measurement becomes mean, interval and percentiles.

Cost, report and command line all take them from here, so that every interval that is shown knows of
the rounds in which the samples were taken. The statistics themselves are ``statistics``'.
"""

from __future__ import annotations

from epochcost.results.records import Measurement
from epochcost.statistics import Summary, summarise


def summary_of(measurement: Measurement) -> Summary:
    """Summarise the samples, of which there must be some: none under LoadGen."""
    return summarise(measurement.samples_seconds, measurement.samples_by_round)
