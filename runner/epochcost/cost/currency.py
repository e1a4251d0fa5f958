"""Amounts in another currency, by a dated rate that the answer names.

A rate serves both ways, but never two rates in a row: what one rate's day and source say of a pair
holds for that pair only.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal

from epochcost.cost.estimate import Estimate
from epochcost.cost.money import exact_arithmetic, quantized, require_currency
from epochcost.errors import InputError
from epochcost.specs.reference_data import ExchangeRate


@dataclass(frozen=True, slots=True)
class Conversion:
    """One unit of ``base`` is worth ``factor`` of ``quote`` by ``rate``, None where they are one.

    ``inverse`` says that the rate was divided by and not multiplied with.
    """

    base: str
    quote: str
    rate: ExchangeRate | None = None
    inverse: bool = False

    @property
    def words(self) -> str:
        """The rate with its day, for people."""
        if self.rate is None:
            return f"no conversion: amounts are in {self.base}"
        one = f"1 {self.rate.base} = {self.rate.rate.normalize():f} {self.rate.quote}"
        assumed = ", assumed" if self.rate.assumed else ""
        return f"{one} on {self.rate.as_of}{assumed} ({self.rate.id})"

    def amount(self, amount: Decimal) -> Decimal:
        """An amount of ``base`` in ``quote``, kept to 18 decimals."""
        with exact_arithmetic():
            if self.rate is None:
                return quantized(amount)
            rate = self.rate.rate
            return quantized(amount / rate if self.inverse else amount * rate)

    def estimate(self, cost: Estimate) -> Estimate:
        """An estimate in ``quote``; raises InputError where it is not in ``base``.

        It is assumed where its price or the rate is.
        """
        if cost.currency != self.base:
            raise InputError(
                f"conversion: expected a cost in {self.base}, got one in {cost.currency}"
            )
        low, mean, high = map(self.amount, (cost.low, cost.mean, cost.high))
        assumed = cost.assumed or (self.rate is not None and self.rate.assumed)
        return Estimate(low, mean, high, self.quote, cost.price_id, assumed)


def conversion(base: str, quote: str, rates: Iterable[ExchangeRate], day: dt.date) -> Conversion:
    """The newest rate between two currencies on or before a day; of one day the direct one.

    Raises InputError where a currency is unknown, and where there is no such rate.
    """
    for code in (base, quote):
        require_currency(code)
    if base == quote:
        return Conversion(base, quote)
    between = [rate for rate in rates if {rate.base, rate.quote} == {base, quote}]
    known = [rate for rate in between if rate.as_of <= day]
    if not known:
        raise InputError(_missing(base, quote, between, day))
    newest = max(known, key=lambda rate: (rate.as_of, rate.base == base, rate.id))
    return Conversion(base, quote, newest, inverse=newest.base != base)


def _missing(base: str, quote: str, between: list[ExchangeRate], day: dt.date) -> str:
    expected = f"expected a rate between {base} and {quote} on or before {day}"
    if between:
        oldest = min(rate.as_of for rate in between)
        return f"currency: {expected}; the oldest is of {oldest}"
    return f"currency: {expected}, found none: add one to specs/currencies/"
