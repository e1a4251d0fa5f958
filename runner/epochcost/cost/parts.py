"""The hourly parts of a rented plan: its amount, its commitment, its components, their premiums."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache

from epochcost.cost.money import kept, kept_positive
from epochcost.specs.base import Identity
from epochcost.specs.price import Price
from epochcost.specs.terms import COMMITTED, COMPUTE, Commitment, Component
from epochcost.units import SECONDS_PER_HOUR, plain

# A year of 8760 hours has twelve such months; so EC2 and GCE count terms and disks.
HOURS_PER_BILLED_MONTH = 730


@dataclass(frozen=True, slots=True)
class Part:
    """What an hour of a machine costs: ``rate`` for each of ``units``, kept to 18 decimals.

    ``name`` is what premiums call it, ``label`` what the bill does.
    """

    name: str
    label: str
    rate: Decimal
    units: Decimal = Decimal(1)

    @property
    def unit(self) -> str:
        """What the rate is for."""
        return "hour" if self.units == 1 else "unit-hour"

    @property
    def hourly(self) -> Decimal:
        """What the part costs in an hour, kept to 18 decimals."""
        return self.rate if self.units == 1 else kept(self.rate * self.units)

    def amount(self, seconds: Decimal) -> Decimal:
        """What it costs for so long; never less for longer, to the last decimal."""
        return amount_at(self.rate * self.units, seconds)


def amount_at(rate_per_hour: Decimal, seconds: Decimal) -> Decimal:
    """What so much an hour comes to."""
    return kept(rate_per_hour * seconds / SECONDS_PER_HOUR)


def compute_part(rate_per_hour: Decimal) -> Part:
    """The part that a bare hourly rate is; raises InputError below 1e-18 and where not finite."""
    return Part(COMPUTE, f"{COMPUTE}, used", kept_positive(rate_per_hour))


def hourly_parts(price: Price) -> tuple[Part, ...]:
    """All that a rented plan charges by the hour, premiums last; to be called in exact_arithmetic.

    Raises InputError where a rate is below 1e-18.
    """
    return _hourly_parts(Identity(price))


# Prices are frozen, and each bills many jobs.
@lru_cache(maxsize=256)
def _hourly_parts(identity: Identity[Price]) -> tuple[Part, ...]:
    price = identity.value
    parts = [] if price.amount is None else [compute_part(price.amount)]
    if price.commitment is not None:
        parts.extend(_commitment_parts(price.commitment))
    parts.extend(
        Part(part.label, part.label, kept_positive(part.amount), kept(part.count))
        for part in price.components
        if part.amount is not None and part.per == "hour"
    )
    return (*parts, *_premiums(price.components, parts))


def _commitment_parts(terms: Commitment) -> Iterator[Part]:
    """An hour's payments, and those of the hours of the term that nobody uses.

    At utilisation u each used hour carries 1/u - 1 idle ones, so that it costs
    (upfront / (months x 730 h) + hourly) / u.
    """
    by_the_hour = terms.upfront / (terms.term_months * HOURS_PER_BILLED_MONTH)
    paid = [
        Part(COMMITTED, label, kept_positive(rate))
        for label, rate in (("upfront, by the hour", by_the_hour), ("commitment", terms.hourly))
        if rate > 0
    ]
    yield from paid
    idle = kept(1 / terms.utilisation - 1)
    if idle > 0:
        rate = sum((part.rate for part in paid), Decimal(0))
        yield Part(COMMITTED, "commitment, idle hours", rate, idle)


def _premiums(components: Iterable[Component], parts: Iterable[Part]) -> Iterator[Part]:
    for component in components:
        if component.percent is None:
            continue
        names = component.of or {part.name for part in parts}
        hourly = sum((part.hourly for part in parts if part.name in names), Decimal(0))
        label = f"{component.label}, {plain(component.percent)} %"
        yield Part(component.label, label, kept(hourly * component.percent / 100))
