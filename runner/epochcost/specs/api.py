"""Token prices of language-model APIs, as single specs or as rows of a CSV table."""

from __future__ import annotations

from decimal import Decimal
from typing import Annotated

from pydantic import Field, ValidationInfo, field_validator

from epochcost.specs.base import (
    Identifier,
    NonNegative,
    Percentage,
    PositiveInt,
    PricedSpec,
    SourcedSpec,
    Spec,
    TableName,
    Text,
    key,
    optional,
)

MILLION = 1_000_000


class TokenPrices(Spec):
    """Prices of a million tokens, for prompts and for answers."""

    input_per_million: NonNegative = key("Price of a million tokens of prompts.", 0.15)
    cached_input_per_million: NonNegative | None = optional(
        "Price of a million tokens read from the cache.", 0.075
    )
    cache_write_per_million: NonNegative | None = optional(
        "Price of a million tokens written to the cache; by default, `input_per_million`.", 0.1875
    )
    output_per_million: NonNegative = key("Price of a million tokens of answers.", 0.60)

    @field_validator("cached_input_per_million")
    @classmethod
    def _at_most_input(cls, cached: Decimal | None, info: ValidationInfo) -> Decimal | None:
        full = info.data.get("input_per_million")
        if cached is not None and full is not None and cached > full:
            raise ValueError(f"should be at most the input's price, {full}")
        return cached

    def undiscounted(
        self, prompt: Decimal, output: Decimal, cached_share: Decimal, written_share: Decimal
    ) -> Decimal:
        """Cost of a request without the batch discount; arguments as in ``ApiPrice.request``."""
        full = read = self.input_per_million
        for share, price in (
            (cached_share, self.cached_input_per_million),
            (written_share, self.cache_write_per_million),
        ):
            if price is not None and share != 0:
                read -= share * (full - price)
        return (prompt * read + output * self.output_per_million) / MILLION


class LongPrompts(TokenPrices):
    """The token prices of requests whose prompt is longer than ``above_tokens``.

    For such requests, these prices apply to all tokens of the request.
    """

    above_tokens: PositiveInt = key("Longest prompt at the usual prices, in tokens.", 200000)


class ApiPrice(TokenPrices, PricedSpec):
    """A provider's prices of a model, per million tokens of prompts and of answers."""

    name: Text = key("Name of the model at the provider.", "gpt-4o-mini")
    model: Identifier | None = optional("The same model in specs/models, by id.", "llama-3.1-8b")
    batch_percent: Annotated[Percentage, Field(lt=100)] = key(
        "Discount for requests that are answered within a day, in percent.", 50, default=Decimal(0)
    )
    long: LongPrompts | None = None

    @field_validator("long")
    @classmethod
    def _long_no_cheaper(cls, long: LongPrompts | None, info: ValidationInfo) -> LongPrompts | None:
        for name in ("input_per_million", "output_per_million"):
            least = info.data.get(name)
            if long is not None and least is not None and getattr(long, name) < least:
                raise ValueError(f"should have {name} at least as the usual one, {least}")
        return long

    @property
    def reservation(self) -> str:
        """Why lists put this price last: an ended offer or an implausible price; else empty."""
        return self.flaw

    def request(
        self,
        prompt: int,
        output: int,
        cached_share: Decimal = Decimal(0),
        written_share: Decimal = Decimal(0),
        *,
        batch: bool = False,
    ) -> Decimal:
        """The cost of a request with ``prompt`` and ``output`` tokens.

        ``cached_share`` of the prompt is read from the cache, ``written_share`` is written to it.
        """
        prices = self.long if self.long and prompt > self.long.above_tokens else self
        tokens = Decimal(prompt), Decimal(output)
        cost = prices.undiscounted(*tokens, cached_share, written_share)
        return cost * (1 - self.batch_percent / 100) if batch and self.batch_percent else cost


class ApiTable(SourcedSpec):
    """The source of a CSV table of token prices, in which each row is the price of one API."""

    name: Text = key("Name of the source.", "models.dev")
    table: TableName = key(
        "CSV file in this folder; its columns are keys of specs/apis.", "models-dev.csv"
    )
    licence: Text = key("Licence of the rows, as an SPDX identifier.", "MIT")
