"""One job under one plan: its bill, and the same job with one input changed.

Inputs are the figures of a price by key path, and the machine's speed. Every changed cost is a bill
of the engine, never a formula of its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from decimal import Decimal

from epochcost.cost.bill import quote, quote_at, share
from epochcost.cost.estimate import Time
from epochcost.cost.lines import Quote, Usage
from epochcost.cost.money import exact_arithmetic
from epochcost.errors import InputError
from epochcost.specs.price import Price
from epochcost.specs.price_fields import value_at, with_value

# The input that is no figure of a price: how many times as fast as it is.
SPEED = "speed"


@dataclass(frozen=True, slots=True)
class PricedJob:
    """A job of a time under a price, billed by itself or as a ``shared`` part of a longer one.

    ``vcpus`` and ``accelerated`` are as in ``Usage``.
    """

    price: Price
    time: Time
    vcpus: int | None = None
    accelerated: bool = False
    shared: bool = False

    def bill(self, seconds: Decimal | None = None) -> Quote:
        """The bill at the mean time or another, without credit; raises InputError as ``quote``."""
        usage = self._usage(self.time.mean if seconds is None else seconds)
        return (
            share(self.price, usage) if self.shared else quote(self.price, usage, credit=Decimal(0))
        )

    def bill_at(self, probability: float) -> Quote:
        """The bill that so large a share of all runs does not exceed, by interruptions alone."""
        return (
            self.bill()
            if self.shared
            else quote_at(self.price, self._usage(self.time.mean), probability)
        )

    @property
    def interrupted(self) -> bool:
        """Whether interruptions make the bill uncertain."""
        terms = self.price.interruptions
        return not self.shared and terms is not None and terms.rate_per_hour > 0

    def value(self, name: str) -> Decimal:
        """An input as it is; raises InputError where the price has no such figure."""
        return Decimal(1) if name == SPEED else value_at(self.price, name)

    def changed(self, name: str, value: Decimal) -> PricedJob:
        """The job with an input changed; raises InputError where no plan may have that figure."""
        if name != SPEED:
            return replace(self, price=with_value(self.price, name, value))
        if not value.is_finite() or value <= 0:
            raise InputError(f"speed: demanded a finite factor above 0; got {value}")
        with exact_arithmetic():
            return replace(self, time=self.time.scaled(1 / value))

    def inputs(self) -> Iterator[str]:
        """What a reader may ask about: prices, utilisation, electricity, interruptions, speed."""
        price = self.price
        if price.amount is not None:
            yield "amount"
        for position, part in enumerate(price.components):
            yield f"components[{position}].{'amount' if part.amount is not None else 'percent'}"
        if price.commitment is not None:
            yield "commitment.utilisation"
        if price.owned is not None:
            yield from ("owned.purchase", "owned.utilisation", "owned.electricity_per_kwh")
        if self.interrupted:
            yield "interruptions.rate_per_hour"
        yield SPEED

    def _usage(self, seconds: Decimal) -> Usage:
        return Usage(seconds, vcpus=self.vcpus, accelerated=self.accelerated)
