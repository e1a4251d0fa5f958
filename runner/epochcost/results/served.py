"""What a scenario of LoadGen leaves behind: its runs, its own words, and raw latencies.

Percentiles are LoadGen's: the latency at rank ``floor(count × share)``, counted from zero, of the
sorted latencies (mlcommons/inference, loadgen/results.cc).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal

from pydantic import Field, model_validator

from epochcost.results.fields import Count, NonNegative, NonNegativeInt, PositiveNumber, Record

# How fast it can be at all, whether a rate keeps the bound, and the run that counts.
Purpose = Literal["capacity", "search", "scored"]


class Latency(Record):
    """LoadGen's statistics of the latencies of one run, as it logs them.

    Of queries in the scenario multi-stream, of samples in all others.
    """

    minimum_nanoseconds: NonNegativeInt
    mean_nanoseconds: NonNegativeInt
    p50_nanoseconds: NonNegativeInt
    p90_nanoseconds: NonNegativeInt
    p99_nanoseconds: NonNegativeInt
    maximum_nanoseconds: NonNegativeInt


class LoadGenRun(Record):
    """One run of LoadGen; one for the capacity asks for all samples at once, as offline does.

    ``asked_samples_per_second`` is the rate of arrivals of the scenario server and None elsewhere,
    as is ``kept_bound``. ``samples_per_second`` are those completed. ``valid`` is LoadGen's verdict
    on the run, ``summary`` its own words.
    """

    purpose: Purpose
    asked_samples_per_second: PositiveNumber | None = None
    samples_per_second: PositiveNumber
    queries: Count
    samples: Count
    minimum_seconds: NonNegative
    valid: bool
    kept_bound: bool | None = None
    latency: Latency
    summary: str


class ServingRecord(Record):
    """All runs of one trial under LoadGen, in order.

    ``reported`` is the index of the run whose figures count; None: no rate kept the bound.
    ``latencies_nanoseconds`` are that run's, in LoadGen's order, empty where there are more than a
    result file holds: LoadGen's statistics then stand alone. ``detail_log`` is LoadGen's log of
    that run (else of the last), gzip in base64.
    """

    loadgen: str
    runs: Annotated[tuple[LoadGenRun, ...], Field(min_length=1)]
    reported: NonNegativeInt | None
    latencies_nanoseconds: tuple[NonNegativeInt, ...] = ()
    detail_log: str

    @property
    def run(self) -> LoadGenRun | None:
        """The run whose figures count."""
        return None if self.reported is None else self.runs[self.reported]

    @model_validator(mode="after")
    def _latencies_are_of_the_run(self) -> ServingRecord:
        """Raw latencies give the percentiles that LoadGen computed from them."""
        if self.reported is not None and self.reported >= len(self.runs):
            raise ValueError(f"reported should be the index of one of {len(self.runs)} runs")
        if self.run is None or not self.latencies_nanoseconds:
            return self
        latency = self.run.latency
        stated = (latency.p50_nanoseconds, latency.p90_nanoseconds, latency.p99_nanoseconds)
        ordered = sorted(self.latencies_nanoseconds)
        ours = tuple(latency_percentile(ordered, share) for share in (0.5, 0.9, 0.99))
        if ours != stated:
            raise ValueError(f"latencies should have LoadGen's percentiles {stated}, not {ours}")
        return self


def latency_percentile(ordered: Sequence[int], share: float) -> int:
    """The percentile of ascending latencies as LoadGen takes it; ``share`` is below 1."""
    return ordered[int(len(ordered) * share)]
