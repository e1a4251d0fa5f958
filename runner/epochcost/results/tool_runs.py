"""Runs of a serving benchmark as the benchmark tool reports them, and reasons to doubt them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Literal

from pydantic import Field, model_validator

from epochcost.results.fields import Count, NonNegativeInt, PositiveNumber, Record
from epochcost.units import rounded

# Tolerance when a value of a file is recomputed from its other values.
AGREEING = 0.02
LONGEST_TEXT = 200
# The mean number of requests in progress may exceed the stated number by this factor.
_MOST_OVERLAP = 1.1
# A latency computed from means is inexact by up to this factor; a wrong unit gives a factor of
# 1,000.
_OTHER_UNIT = 3
_LEAST_OF_RATE = 0.9
Text = Annotated[str, Field(max_length=LONGEST_TEXT)]


class Latency(Record):
    """Mean and percentiles in seconds; None if not stated, or if the run has too few requests."""

    mean: PositiveNumber | None = None
    p50: PositiveNumber | None = None
    p90: PositiveNumber | None = None
    p95: PositiveNumber | None = None
    p99: PositiveNumber | None = None
    p99_9: PositiveNumber | None = None


class ToolRun(Record):
    """A run of a benchmark: the load on a server, and measured values for all GPUs together.

    Requests arrive at the rate ``offered_per_second``. If it is None, ``at_once`` requests are
    always in progress. If both are None, all arrive at the start. ``requests`` and ``failed`` count
    answered and failed requests, ``read`` and ``written`` the tokens of prompts and answers. These
    counts and ``seconds`` are None if the file has only rates. ``first`` is the time to first
    token, ``token`` the time between tokens, ``whole`` the time of a request.
    """

    tool: Literal["vLLM bench serve", "GuideLLM", "AIPerf", "InferenceX"]
    served_model: Text = ""
    software: Text = ""
    precision: Text = ""
    gpus: Count | None = None
    offered_per_second: PositiveNumber | None = None
    at_once: Count | None = None
    requests: Count | None = None
    failed: NonNegativeInt | None = None
    seconds: PositiveNumber | None = None
    read: NonNegativeInt | None = None
    written: Count | None = None
    requests_per_second: PositiveNumber | None = None
    written_per_second: PositiveNumber | None = None
    tokens_per_second: PositiveNumber | None = None
    first: Latency = Latency()
    token: Latency = Latency()
    whole: Latency = Latency()
    remarks: tuple[Text, ...] = ()

    @property
    def load_text(self) -> str:
        """The load on the server as a phrase."""
        if self.offered_per_second is not None:
            return f"{rounded(self.offered_per_second)} requests/s"
        return "all at once" if self.at_once is None else f"{self.at_once:,} at once"

    @property
    def doubts(self) -> tuple[str, ...]:
        """Reasons to doubt the values: ``remarks``, failed requests and contradictions."""
        return (*self.remarks, *_failure_doubts(self), *_rate_doubts(self), *_latency_doubts(self))

    @model_validator(mode="after")
    def _has_tokens(self) -> ToolRun:
        counted = None not in (self.seconds, self.read, self.written)
        if not counted and None in (self.written_per_second, self.tokens_per_second):
            raise ValueError("no tokens of answered requests with their seconds or rates")
        return self


def _failure_doubts(run: ToolRun) -> Iterator[str]:
    if run.failed:
        sent = run.failed + (run.requests or 0)
        yield f"{run.failed:,} of {sent:,} requests failed: their time counts, their tokens do not"


def _rate_doubts(run: ToolRun) -> Iterator[str]:
    if run.seconds is None:
        return
    for noun, count, stated in (
        ("requests", run.requests, run.requests_per_second),
        ("tokens written", run.written, run.written_per_second),
        ("tokens", (run.read or 0) + (run.written or 0), run.tokens_per_second),
    ):
        counted = (count or 0) / run.seconds
        if count and stated and abs(stated / counted - 1) > AGREEING:
            yield (
                f"{count:,} {noun} in {run.seconds:.6g} s are {counted:.4g} a second, and the file "
                f"says {stated:.4g}"
            )
    offered, reached = run.offered_per_second, (run.requests or 0) / run.seconds
    if offered and reached < offered * _LEAST_OF_RATE:
        yield (
            f"of {offered:.3g} requests a second only {reached:.3g} were answered: the server was "
            "overloaded, and latencies grow with the length of the run"
        )


def _latency_doubts(run: ToolRun) -> Iterator[str]:
    whole, first, token = run.whole.mean, run.first.mean, run.token.mean
    if run.requests is None or run.seconds is None or whole is None:
        return
    at_once = run.requests * whole / run.seconds
    if run.at_once and at_once > run.at_once * _MOST_OVERLAP:
        yield (
            f"{run.requests:,} requests of {whole:.4g} s in {run.seconds:.6g} s are {at_once:.4g} "
            f"at once, and at most {run.at_once:,} were"
        )
    if first and token and run.written:
        summed = first + token * (run.written / run.requests - 1)
        if not 1 / _OTHER_UNIT <= summed / whole <= _OTHER_UNIT:
            yield (
                f"a request takes {whole:.4g} s, and its first token and the others {summed:.4g} s:"
                " a unit is wrong"
            )
