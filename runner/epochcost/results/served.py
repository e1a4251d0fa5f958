"""Records of a scenario of LoadGen: its runs, with summaries and raw latencies.

Percentiles are defined as in LoadGen (mlcommons/inference, loadgen/results.cc).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal

from pydantic import Field, model_validator

from epochcost.results.fields import Count, NonNegative, NonNegativeInt, PositiveNumber, Record
from epochcost.specs.requests import Requests

_NANOSECONDS_A_MS = 1_000_000

# "capacity": find the highest rate without a bound of latency. "search": test whether a rate keeps
# the bound. "scored": give the result. "share": measure at a share of the result's rate.
Purpose = Literal["capacity", "search", "scored", "share"]


class Latency(Record):
    """LoadGen's statistics of the latencies in a run."""

    minimum_nanoseconds: NonNegativeInt
    mean_nanoseconds: NonNegativeInt
    p50_nanoseconds: NonNegativeInt
    p90_nanoseconds: NonNegativeInt
    p99_nanoseconds: NonNegativeInt
    maximum_nanoseconds: NonNegativeInt

    def percentile(self, percent: Literal[50, 90, 99]) -> int:
        """The 50th, 90th or 99th percentile, in nanoseconds."""
        return int(getattr(self, f"p{percent}_nanoseconds"))

    def require_of(self, latencies: Sequence[int]) -> None:
        """Raise ValueError if ``latencies`` are given and contradict the stored percentiles."""
        if not latencies:
            return
        stated = (self.p50_nanoseconds, self.p90_nanoseconds, self.p99_nanoseconds)
        ordered = sorted(latencies)
        ours = tuple(latency_percentile(ordered, share) for share in (0.5, 0.9, 0.99))
        if ours != stated:
            raise ValueError(f"latencies should have LoadGen's percentiles {stated}, not {ours}")


class TokenRun(Record):
    """LoadGen's statistics of tokens, for a run in which a decoder answers requests.

    ``first`` summarises the times to a request's first token, ``further`` each answer's mean time
    per later token. ``read`` and ``written`` count the tokens of all prompts and answers. The lists
    have one time for each request, in the order of LoadGen's log. They are empty if the run only
    tested whether a rate keeps the bounds.
    """

    first: Latency
    further: Latency
    read: Count
    written: Count
    first_nanoseconds: tuple[NonNegativeInt, ...] = ()
    further_nanoseconds: tuple[NonNegativeInt, ...] = ()

    def keeps(self, requests: Requests) -> bool:
        """Whether the latencies at the percentile of ``requests`` keep both of its bounds."""
        return all(
            latency.percentile(requests.percentile) <= bound_ms * _NANOSECONDS_A_MS
            for latency, bound_ms in (
                (self.first, requests.first_token_ms),
                (self.further, requests.token_ms),
            )
        )

    def good_share(self, requests: Requests) -> float | None:
        """The share of requests that keep both bounds; None without times of single requests."""
        pairs = list(zip(self.first_nanoseconds, self.further_nanoseconds, strict=True))
        if not pairs:
            return None
        good = sum(
            first <= requests.first_token_ms * _NANOSECONDS_A_MS
            and further <= requests.token_ms * _NANOSECONDS_A_MS
            for first, further in pairs
        )
        return good / len(pairs)

    @model_validator(mode="after")
    def _raw_gives_the_percentiles(self) -> TokenRun:
        first, further = len(self.first_nanoseconds), len(self.further_nanoseconds)
        if first != further:
            raise ValueError(f"further_nanoseconds should have {first} times, not {further}")
        self.first.require_of(self.first_nanoseconds)
        self.further.require_of(self.further_nanoseconds)
        return self


class LoadGenRun(Record):
    """A run of LoadGen.

    Samples arrive at the rate ``asked_samples_per_second``. ``kept_bound`` says whether latencies
    stayed within their bound. Both are None in scenarios other than "server". ``valid`` says
    whether LoadGen accepts the run.
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
    tokens: TokenRun | None = None


class ServingRecord(Record):
    """All runs of a trial under LoadGen, in order.

    ``reported`` is the index of the run that gives the result, None if latencies exceeded their
    bound at every rate. ``latencies_nanoseconds`` are that run's, empty if there are more than
    50,000. ``detail_log`` is LoadGen's log of that run, or else of the last, in gzip and base64.
    ``start_seconds`` is a serving engine's time to become ready.
    """

    loadgen: str
    runs: Annotated[tuple[LoadGenRun, ...], Field(min_length=1)]
    reported: NonNegativeInt | None
    latencies_nanoseconds: tuple[NonNegativeInt, ...] = ()
    detail_log: str
    start_seconds: NonNegative | None = None

    @property
    def run(self) -> LoadGenRun | None:
        """The run that gives the result; None if latencies exceeded their bound at every rate."""
        return None if self.reported is None else self.runs[self.reported]

    @model_validator(mode="after")
    def _latencies_are_of_the_run(self) -> ServingRecord:
        if self.reported is not None and self.reported >= len(self.runs):
            raise ValueError(f"reported should be the index of one of {len(self.runs)} runs")
        if self.run is not None:
            self.run.latency.require_of(self.latencies_nanoseconds)
        return self


def latency_percentile(ordered: Sequence[int], share: float) -> int:
    """Percentile of the ascending latencies ``ordered``, as in LoadGen; ``share`` is below 1."""
    return ordered[int(len(ordered) * share)]
