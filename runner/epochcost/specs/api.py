"""Token prices of language-model APIs, as single specs or as rows of a source's table."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Annotated

from pydantic import Field, ValidationInfo, field_validator, model_validator

from epochcost.specs.base import (
    Identifier,
    NamedSpec,
    NonNegative,
    Notes,
    PositiveInt,
    PricedSpec,
    Source,
    Spec,
    TableName,
    Text,
    Unconfirmed,
)
from epochcost.specs.reference_data import Currency

MILLION = 1_000_000


class LongPrompts(Spec):
    """Prices of all tokens of a request whose prompt is longer than a bound."""

    above_tokens: PositiveInt = Field(
        description="Longest prompt at the usual prices, in tokens.", examples=[200000]
    )
    input_per_million: NonNegative = Field(
        description="Price of a million tokens of prompts.", examples=[2.5]
    )
    cached_input_per_million: NonNegative | None = Field(
        None, description="Price of a million cached tokens of prompts.", examples=[0.25]
    )
    cache_write_per_million: NonNegative | None = Field(
        None, description="Price of writing a million tokens into the cache.", examples=[3.125]
    )
    output_per_million: NonNegative = Field(
        description="Price of a million tokens of answers.", examples=[15]
    )


class ApiPrice(PricedSpec):
    """A provider's prices of a model, per million tokens of prompts and of answers."""

    name: Text = Field(description="Name of the model at the provider.", examples=["gpt-4o-mini"])
    provider: Text = Field(description="Company that serves the model.", examples=["OpenAI"])
    model: Identifier | None = Field(
        None,
        description="The catalogue's model of the same size, by id.",
        examples=["llama-3.1-8b"],
    )
    currency: Currency = Field(
        "USD", description="Code of the currency in ISO 4217.", examples=["USD"]
    )
    input_per_million: NonNegative = Field(
        description="Price of a million tokens of prompts.", examples=[0.15]
    )
    cached_input_per_million: NonNegative | None = Field(
        None, description="Price of a million cached tokens of prompts.", examples=[0.075]
    )
    cache_write_per_million: NonNegative | None = Field(
        None,
        description=(
            "For a million tokens of prompts that are kept for later ones; without it as the input."
        ),
        examples=[0.1875],
    )
    output_per_million: NonNegative = Field(
        description="Price of a million tokens of answers.", examples=[0.60]
    )
    batch_percent: Annotated[NonNegative, Field(lt=100)] = Field(
        Decimal(0),
        description="Discount for requests that are answered within a day, in percent.",
        examples=[50],
    )
    long: LongPrompts | None = None
    as_of: dt.date = Field(description="The day of the source.", examples=["2025-10-20"])
    valid_until: dt.date | None = Field(None, description="The day on which the offer ended.")
    source: Source
    notes: Notes | None = None
    unconfirmed: Unconfirmed = ()

    @field_validator("cached_input_per_million")
    @classmethod
    def _no_dearer(cls, cached: Decimal | None, info: ValidationInfo) -> Decimal | None:
        full = info.data.get("input_per_million")
        if cached is not None and full is not None and cached > full:
            raise ValueError(f"should be at most the input's price, {full}")
        return cached

    @model_validator(mode="after")
    def _long_no_cheaper(self) -> ApiPrice:
        for name in ("input_per_million", "output_per_million"):
            least = getattr(self, name)
            if self.long is not None and getattr(self.long, name) < least:
                raise ValueError(f"should have long.{name} at least as the usual one, {least}")
        return self

    def request(
        self,
        prompt: Decimal | int,
        output: Decimal | int,
        cached_share: Decimal = Decimal(0),
        written_share: Decimal = Decimal(0),
        *,
        batch: bool = False,
    ) -> Decimal:
        """The cost of a request with ``prompt`` and ``output`` tokens.

        The provider reads ``cached_share`` of the prompt from its cache and writes
        ``written_share`` to it. If ``prompt`` is a symbolic variable of a formula, prices for long
        prompts are not applied.
        """
        number = isinstance(prompt, int | Decimal)
        long = self.long if number and self.long and prompt > self.long.above_tokens else None
        cost = _request(long or self, prompt, output, cached_share, written_share)
        return cost * (1 - self.batch_percent / 100) if batch and self.batch_percent else cost


class ApiTable(NamedSpec):
    """The source of a CSV table of token prices, with a row for each API."""

    name: Text = Field(description="Name of the source.", examples=["models.dev"])
    table: TableName = Field(
        description="The CSV file with the rows, in this folder; its columns are keys of apis/.",
        examples=["models-dev.csv"],
    )
    licence: Text = Field(
        description="Licence of the rows, as an SPDX identifier.", examples=["MIT"]
    )
    source: Source
    notes: Notes | None = None


def _request(
    prices: ApiPrice | LongPrompts,
    prompt: Decimal | int,
    output: Decimal | int,
    cached_share: Decimal,
    written_share: Decimal,
) -> Decimal:
    full = read = prices.input_per_million
    for share, price in (
        (cached_share, prices.cached_input_per_million),
        (written_share, prices.cache_write_per_million),
    ):
        if price is not None and share:
            read -= share * (full - price)
    return (prompt * read + output * prices.output_per_million) / MILLION
