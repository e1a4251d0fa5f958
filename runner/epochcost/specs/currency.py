"""Exchange rates: what one unit of a currency was worth in another, on a day."""

from __future__ import annotations

import datetime as dt
from typing import Annotated

from pydantic import model_validator

from epochcost.specs.base import NamedSpec, Positive, Source, Text, Unconfirmed, matching

Currency = Annotated[str, matching(r"[A-Z]{3}", "a currency of three capitals, such as USD")]


class ExchangeRate(NamedSpec):
    """One unit of ``base`` is worth ``rate`` units of ``quote`` on the day ``as_of``."""

    base: Currency
    quote: Currency
    rate: Positive
    assumed: bool = False
    source: Source
    as_of: dt.date
    notes: Text | None = None
    unconfirmed: Unconfirmed = ()

    @model_validator(mode="after")
    def _two_currencies(self) -> ExchangeRate:
        if self.base == self.quote:
            raise ValueError("should have two different currencies")
        return self
