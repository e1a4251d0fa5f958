"""Requests to a language model: lengths of prompts and answers, and latency bounds.

All numbers are integers, so equal requests are always written alike and give the same trial.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, field_validator, model_validator

from epochcost.specs.base import (
    RELEASE,
    Array,
    Choices,
    PositiveInt,
    Source,
    Spec,
    key,
    matching,
    optional,
)

ENGINE = "onnxruntime-genai"
# The time between two tokens can only be measured with at least two tokens.
_SHORTEST_ANSWER = 2
EngineName = Annotated[
    str, matching(f"{ENGINE}=={RELEASE}", f"an engine and its release, such as {ENGINE}==0.18.0")
]


class Lengths(Spec):
    """Lengths of texts in tokens: a log-normal distribution, or a table of lengths with counts.

    Half of the lengths are below ``median`` and nine in ten below ``p90``. A length above ``most``
    becomes ``most``.
    """

    tokens: Choices[PositiveInt] | None = optional(
        "Possible lengths, in tokens; with a single length, all texts are equally long.", [64, 256]
    )
    counts: Array[PositiveInt] | None = optional(
        "How often each length occurs; equally often by default.", [3, 1]
    )
    source: Source | None = optional("Source of the counts, with their licence.", "assumed")
    median: PositiveInt | None = optional("Median of the lengths, in tokens.", 128)
    p90: PositiveInt | None = optional("90th percentile of the lengths, in tokens.", 400)
    most: PositiveInt | None = optional("Greatest length, in tokens.", 1024)

    @model_validator(mode="after")
    def _one_form(self) -> Lengths:
        any_of_curve = any((self.median, self.p90, self.most))
        if (self.tokens is None) == (self.curve is None) or (self.tokens and any_of_curve):
            raise ValueError("should have either tokens, or all of median, p90 and most")
        if self.counts is not None and len(self.counts) != len(self.tokens or ()):
            raise ValueError("should have as many counts as tokens")
        if self.curve is not None and not self.curve[0] < self.curve[1] <= self.curve[2]:
            raise ValueError("should have median below p90, and p90 not above most")
        return self

    @property
    def curve(self) -> tuple[int, int, int] | None:
        """Median, 90th percentile and maximum of the log-normal distribution; None for a table."""
        if self.median is None or self.p90 is None or self.most is None:
            return None
        return self.median, self.p90, self.most

    @property
    def longest(self) -> int:
        """The longest possible length in tokens."""
        lengths: tuple[int, ...] = (*(self.tokens or ()), *(self.curve or ()))
        return max(lengths)

    @property
    def summary(self) -> str:
        """The lengths as text for people: median and 90th percentile, or all lengths of a table."""
        if self.tokens is None:
            return f"about {self.median} (90 % below {self.p90})"
        return " or ".join(map(str, self.tokens))


class Requests(Spec):
    """Requests that arrive at random times at an engine that serves a language model.

    The trial searches for the highest rate at which the latencies of the first token and of further
    tokens keep their bounds. The trial then measures the latencies at several shares of this rate.
    The engine of onnxruntime-genai runs waiting sequences together, in batches.
    """

    prompt: Lengths = key("Lengths of the prompts, in tokens.")
    answer: Lengths = key("Lengths of the answers, in tokens; at least two.")
    first_token_ms: PositiveInt = key("Latency bound of the first token, in milliseconds.", 1000)
    token_ms: PositiveInt = key("Latency bound of each further token, in milliseconds.", 100)
    percentile: Literal[50, 90, 99] = key("Percent of requests that keep both bounds.", default=90)
    load_percents: Choices[Annotated[int, Field(ge=1, le=100)]] = key(
        "Rates to measure, as percents of the highest rate that keeps the bounds.",
        [50, 100],
        default=(20, 40, 60, 80, 100),
    )
    engine: EngineName = key(
        "The engine's package and version; `epochcost engine` fetches it.",
        default=f"{ENGINE}==0.18.0",
    )

    @field_validator("answer")
    @classmethod
    def _has_time_between(cls, answer: Lengths) -> Lengths:
        if answer.tokens is not None and min(answer.tokens) < _SHORTEST_ANSWER:
            raise ValueError(f"should have answers of at least {_SHORTEST_ANSWER} tokens")
        return answer

    @property
    def length(self) -> int:
        """Number of tokens of the longest possible prompt and answer together."""
        return self.prompt.longest + self.answer.longest

    @property
    def lengths_text(self) -> str:
        """The lengths of prompts and answers as text for people."""
        return f"prompts of {self.prompt.summary} tokens and answers of {self.answer.summary}"
