"""Prices of language models behind an API: for a million tokens that go in, or come out."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

from pydantic import Field

from epochcost.specs.base import (
    Identifier,
    NamedSpec,
    NonNegative,
    Notes,
    Source,
    Text,
    Unconfirmed,
)
from epochcost.specs.reference_data import Currency

MILLION = 1_000_000


class ApiPrice(NamedSpec):
    """A provider's price of a million tokens of a model."""

    name: Text = Field(description="What the provider calls the model.", examples=["gpt-4o-mini"])
    provider: Text = Field(description="Who serves it.", examples=["OpenAI"])
    model: Identifier | None = Field(
        None, description="Our model of the same shape, by its id.", examples=["llama-3.1-8b"]
    )
    currency: Currency = Field("USD", description="By its three letters.", examples=["USD"])
    input_per_million: NonNegative = Field(
        description="For a million tokens of prompts.", examples=[0.15]
    )
    cached_input_per_million: NonNegative | None = Field(
        None, description="For a million tokens of prompts seen before.", examples=[0.075]
    )
    output_per_million: NonNegative = Field(
        description="For a million tokens of answers.", examples=[0.60]
    )
    as_of: dt.date = Field(
        description="The day on which the source said so.", examples=["2025-10-20"]
    )
    valid_until: dt.date | None = Field(None, description="The day on which the offer ended.")
    source: Source
    notes: Notes | None = None
    unconfirmed: Unconfirmed = ()

    def request(self, prompt: Decimal | int, output: Decimal | int) -> Decimal:
        """The cost of a request without cached input."""
        cost = prompt * self.input_per_million + output * self.output_per_million
        return cost / MILLION
