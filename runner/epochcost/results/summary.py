"""The one place where a measurement becomes mean, interval and percentiles.

Cost, report and command line all take them from here, so that every interval that is shown knows of
the rounds in which the samples were taken. The statistics themselves are ``statistics``'.
"""

from __future__ import annotations

import weakref

from epochcost.results.records import Measurement
from epochcost.statistics import Summary, summarise

# Of the measurements that are alive, by their ids: many pages show one, and each takes
# milliseconds. A measurement never changes, and a copy of it is another.
_summaries: dict[int, Summary] = {}


def summary_of(measurement: Measurement) -> Summary:
    """Summarise the samples, of which there must be some: none under LoadGen."""
    known = _summaries.get(id(measurement))
    if known is None:
        known = summarise(measurement.samples_seconds, measurement.samples_by_round)
        _summaries[id(measurement)] = known
        weakref.finalize(measurement, _summaries.pop, id(measurement)).atexit = False
    return known
